package main

import (
	"fmt"
	"maps"
	"slices"
)

// goalRows is the table of the goal about a restart, and goalReplay the seconds it may take; a smaller table has as much less time.
const (
	goalRows   = 1_000_000
	goalReplay = 1.0
)

// Verdicts.
const (
	pass = "pass"
	miss = "MISS"
	none = "none" // not measured
)

// goal is one judged line. Measured is the worst member, each a median over the rounds of a ratio within one round.
type goal struct {
	What     string             `json:"what"`
	Measured float64            `json:"measured"`
	Must     float64            `json:"must"`
	AtLeast  bool               `json:"at_least"`
	Verdict  string             `json:"verdict"`
	Members  map[string]float64 `json:"members,omitempty"`
	// Bound is what the server in mode memory reaches with RecordUsage beside the same peer: durability cannot add to it. 0: not measured.
	Bound float64 `json:"memory_reaches,omitempty"`

	optional bool // left out when it was not measured
}

func rateOf(s sample) float64 { return s.PerSec }

// judge computes every goal that was measured.
func judge(all []sample, restarts []restart) []goal {
	goals := slices.Concat(peerGoals(all, appendRecord, loopAlways, loopEverysec, false), peerGoals(all, "SET", redisAlways, redisEverysec, true),
		memoryGoals(all), []goal{restartGoal(restarts)})
	kept := goals[:0]
	for _, g := range goals {
		g.decide()
		if g.Verdict != none || !g.optional {
			kept = append(kept, g)
		}
	}
	return kept
}

// peerGoals compare requests/s with a peer that syncs always, and one that syncs each second.
func peerGoals(all []sample, method, syncs, everysec string, optional bool) []goal {
	var goals []goal
	for _, at := range allSizes() {
		g := goal{What: fmt.Sprintf("%s / %s, %d×%d", always, syncs, at.conns, at.depth), Must: 1.5, AtLeast: true, optional: optional}
		if at.conns == manyConns {
			g.Must = 4
		}
		peer := cell{syncs, method, at.conns, at.depth}
		for _, m := range durableMethods() {
			g.add(m, ratio(all, cell{always, m, at.conns, at.depth}, peer, rateOf))
		}
		g.Bound = ratio(all, cell{memory, recordUsage, at.conns, at.depth}, peer, rateOf)
		goals = append(goals, g)
	}
	for _, at := range allSizes() {
		g := goal{What: fmt.Sprintf("%s / %s, %d×%d", interval, everysec, at.conns, at.depth), Must: 1.5, AtLeast: true, optional: optional}
		peer := cell{everysec, method, at.conns, at.depth}
		g.add(recordUsage, ratio(all, cell{interval, recordUsage, at.conns, at.depth}, peer, rateOf))
		g.Bound = ratio(all, cell{memory, recordUsage, at.conns, at.depth}, peer, rateOf)
		goals = append(goals, g)
	}
	return goals
}

// memoryGoals compare requests/s of mode always with those of mode memory, 1024 in flight.
func memoryGoals(all []sample) []goal {
	var durable, lazy []goal
	for _, at := range thousand() {
		d := goal{What: fmt.Sprintf("%s / %s, %d×%d", always, memory, at.conns, at.depth), Must: 0.6, AtLeast: true}
		for _, m := range durableMethods() {
			d.add(m, againstMemory(all, m, at))
		}
		l := goal{What: fmt.Sprintf("%s / %s, lazy, %d×%d", always, memory, at.conns, at.depth), Must: 0.85, AtLeast: true}
		l.add(checkRateLimit, againstMemory(all, checkRateLimit, at))
		durable, lazy = append(durable, d), append(lazy, l)
	}
	return append(durable, lazy...)
}

func againstMemory(all []sample, method string, at size) float64 {
	return ratio(all, cell{always, method, at.conns, at.depth}, cell{memory, method, at.conns, at.depth}, rateOf)
}

// restartGoal judges the seconds that recovery took.
func restartGoal(restarts []restart) goal {
	rows := goalRows
	if len(restarts) > 0 {
		rows = restarts[0].Rows
	}
	g := goal{What: fmt.Sprintf("seconds to recover %d processes", rows), Must: goalReplay * float64(rows) / goalRows}
	for _, r := range restarts {
		g.add(r.From, r.Recovery)
	}
	return g
}

// ratio returns the median over the rounds of pick(a)/pick(b), 0 if no round has both.
func ratio(all []sample, a, b cell, pick func(sample) float64) float64 {
	above, below := map[int]float64{}, map[int]float64{}
	for _, s := range all {
		switch s.Cell {
		case a:
			above[s.Round] = pick(s)
		case b:
			below[s.Round] = pick(s)
		}
	}
	var ratios []float64
	for round, v := range above {
		if below[round] > 0 {
			ratios = append(ratios, v/below[round])
		}
	}
	return median(ratios)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// add takes one member of the goal; a goal is as good as its worst member. 0 was not measured.
func (g *goal) add(name string, v float64) {
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

func (g *goal) decide() {
	reached := g.Measured <= g.Must
	if g.AtLeast {
		reached = g.Measured >= g.Must
	}
	switch {
	case len(g.Members) == 0:
		g.Verdict = none
	case reached:
		g.Verdict = pass
	default:
		g.Verdict = miss
	}
}

// String is the line: goal, measured, verdict, members.
func (g *goal) String() string {
	sign, measured := "<=", "-"
	if g.AtLeast {
		sign = ">="
	}
	if len(g.Members) > 0 {
		measured = fmt.Sprintf("%.2f", g.Measured)
	}
	s := fmt.Sprintf("%-42s %s %.2f %8s  %-5s", g.What, sign, g.Must, measured, g.Verdict)
	for _, name := range slices.Sorted(maps.Keys(g.Members)) {
		s += fmt.Sprintf("  %s %.2f", name, g.Members[name])
	}
	if g.Bound > 0 {
		s += fmt.Sprintf("  (memory %s %.2f)", recordUsage, g.Bound)
	}
	return s
}
