package goal

import (
	"fmt"
	"maps"
	"slices"
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

// Sign is how what was measured has to compare with what is asked.
func (g *Goal) Sign() string {
	if g.AtLeast {
		return ">="
	}
	return "<="
}

// List is the members in the order of their names, lead before the first and between the others;
// empty without any.
func (g *Goal) List(lead, between string) (s string) {
	for _, name := range slices.Sorted(maps.Keys(g.Members)) {
		s += fmt.Sprintf("%s%s %.2f", lead, name, g.Members[name])
		if cpu := g.CPU[name]; cpu > 0 {
			s += fmt.Sprintf(" (CPU %.2f)", cpu)
		}
		lead = between
	}
	return s
}
