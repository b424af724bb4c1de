// Package goal is how the benchmark commands evaluate: cells measured in rounds, ratios within a
// round, and goals that the ratios reach or miss.
//
// A Cell is one row of a table: a server under one load. Rounds has all cells take turns, in
// alternating order, and every turn leaves a Sample. On a shared machine only ratios of one round
// mean anything, so Ratio divides within each round and takes the median of that. A Goal is as good
// as its worst member; one that asks for nothing is reported and not evaluated.
//
// The package knows figures alone: no server, no clock, no flag. Who measures is
// bench/internal/load, and what is asked is written in the commands.
package goal

import (
	"maps"
	"slices"
	"strings"

	"trunkline/cmd/trunkline/loadgen/chart"
)

// Verdict is what became of a goal.
type Verdict string

// The verdicts.
const (
	Pass     Verdict = "pass"
	Moonshot Verdict = "moonshot" // far beyond what is asked
	Miss     Verdict = "MISS"
	None     Verdict = "none"     // not measured
	Reported Verdict = "reported" // measured, and nothing is asked
)

// Goal is one evaluated line. Its members are set with Add, its verdict with Evaluate.
type Goal struct {
	ID       string  `json:"goal,omitempty"`
	What     string  `json:"what"`
	Measured float64 `json:"measured"` // the worst member; 0 without any
	Must     float64 `json:"must"`     // 0: reported and not evaluated
	Moonshot float64 `json:"moonshot,omitempty"`
	AtLeast  bool    `json:"at_least"` // more is better; else less is
	Verdict  Verdict `json:"verdict"`
	// Members are what the goal is about by name, most often the medians of ratios.
	Members map[string]float64 `json:"members,omitempty"`
	// CPU is reported beside members that are ratios of requests/s: by member, the peer's CPU time
	// per request over ours, which is what the ratio would be if only the servers cost.
	CPU map[string]float64 `json:"cpu_ratios,omitempty"`
}

// Add takes one member of the goal. 0 was not measured and is left out.
func (g *Goal) Add(name string, v float64) {
	if v == 0 {
		return
	}
	if g.Members == nil {
		g.Members = map[string]float64{}
	}
	g.Members[name] = v
	worse := v > g.Measured
	if g.AtLeast {
		worse = v < g.Measured
	}
	if worse || len(g.Members) == 1 {
		g.Measured = v
	}
}

// AddCPU is Add with a ratio of CPU time that is reported beside the member, unless it was not
// measured.
func (g *Goal) AddCPU(name string, v, cpu float64) {
	g.Add(name, v)
	if v == 0 || cpu == 0 {
		return
	}
	if g.CPU == nil {
		g.CPU = map[string]float64{}
	}
	g.CPU[name] = cpu
}

// Evaluate sets the verdict.
func (g *Goal) Evaluate() {
	switch {
	case len(g.Members) == 0:
		g.Verdict = None
	case g.Must == 0:
		g.Verdict = Reported
	case g.Moonshot != 0 && g.reaches(g.Moonshot):
		g.Verdict = Moonshot
	case g.reaches(g.Must):
		g.Verdict = Pass
	default:
		g.Verdict = Miss
	}
}

func (g *Goal) reaches(bound float64) bool {
	if g.AtLeast {
		return g.Measured >= bound
	}
	return g.Measured <= bound
}

// Missed reports whether one of the goals was missed.
func Missed(goals []Goal) bool {
	return slices.ContainsFunc(goals, func(g Goal) bool { return g.Verdict == Miss })
}

// Asked is what is asked, with what is far beyond it; empty for a goal that asks for nothing.
func (g *Goal) Asked() string {
	sign := "≤ "
	if g.AtLeast {
		sign = "≥ "
	}
	switch {
	case g.Verdict == Reported:
		return ""
	case g.Moonshot == 0:
		return sign + chart.Figure(g.Must)
	}
	return sign + chart.Figure(g.Must) + " (" + chart.Figure(g.Moonshot) + ")"
}

// list is the members in the order of their names.
func (g *Goal) list() string {
	var members []string
	for _, name := range slices.Sorted(maps.Keys(g.Members)) {
		member := name + " " + chart.Figure(g.Members[name])
		if cpu := g.CPU[name]; cpu > 0 {
			member += " (CPU " + chart.Figure(cpu) + ")"
		}
		members = append(members, member)
	}
	return strings.Join(members, ", ")
}
