package main

import (
	"fmt"
	"maps"
	"slices"
)

// goal is one judged line. Measured is the median over the rounds of a ratio within one round, of the worst member.
type goal struct {
	ID       string             `json:"goal"`
	What     string             `json:"what"`
	Measured float64            `json:"measured"`
	Must     float64            `json:"must"`
	Moonshot float64            `json:"moonshot"`
	AtLeast  bool               `json:"at_least"`
	Verdict  string             `json:"verdict"` // pass, moonshot, MISS, or none when it was not measured
	Members  map[string]float64 `json:"members,omitempty"`
}

// cpuOf and rateOf pick what a ratio is made of.
func cpuOf(s sample) float64  { return s.CPU }
func rateOf(s sample) float64 { return s.PerSec }

// judge computes every goal that the samples allow.
func judge(all []sample, o options) []goal {
	g1 := goal{ID: "G1", What: "CPU per request against the constant-reply server", Must: 3.5, Moonshot: 2.5}
	g2 := goal{ID: "G2", What: "CPU per request against GET", Must: 0.75, Moonshot: 0.5}
	g3 := goal{ID: "G3", What: "CPU per request against grpc-go unary", Must: 0.05, Moonshot: 0.03}
	g4 := goal{ID: "G4", What: "depth 1, requests/s against the constant-reply server", Must: 0.90, Moonshot: 0.97, AtLeast: true}
	g11 := goal{ID: "G11", What: "requests/s against the other kernel server", Must: 10, Moonshot: 30, AtLeast: true}
	get := cell{getPeer(all), "GET", o.conns, o.depth}
	for _, m := range methods {
		ours := cell{trunkline, m, o.conns, o.depth}
		g1.add(m, ratio(all, ours, cell{baregnet, m, o.conns, o.depth}, cpuOf))
		g2.add(m, ratio(all, ours, get, cpuOf))
		g3.add(m, ratio(all, ours, cell{grpcgo, "unary", o.conns, o.depth}, cpuOf))
	}
	for _, conns := range []int{o.conns, manyConns} {
		ours := cell{trunkline, "GetProcess", conns, 1}
		g4.add(fmt.Sprintf("%d connections", conns), ratio(all, ours, cell{baregnet, "GetProcess", conns, 1}, rateOf))
	}
	g11.add("GetProcess", ratio(all, cell{trunkline, "GetProcess", o.conns, o.depth}, cell{also, "GetProcess", o.conns, o.depth}, rateOf))
	goals := []goal{g1, g2, g3, g4}
	if o.also != "" {
		goals = append(goals, g11)
	}
	for i := range goals {
		goals[i].decide()
	}
	return goals
}

func getPeer(all []sample) string {
	for _, s := range all {
		if s.Cell.Method == "GET" {
			return s.Cell.Server
		}
	}
	return ""
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

// add takes one member of the goal; a goal is as good as its worst member. A ratio of 0 was not measured.
func (g *goal) add(name string, ratio float64) {
	if ratio == 0 {
		return
	}
	if g.Members == nil {
		g.Members = map[string]float64{}
	}
	g.Members[name] = ratio
	worse := ratio > g.Measured
	if g.AtLeast {
		worse = ratio < g.Measured
	}
	if worse || len(g.Members) == 1 {
		g.Measured = ratio
	}
}

func (g *goal) decide() {
	reached := func(bound float64) bool {
		if g.AtLeast {
			return g.Measured >= bound
		}
		return g.Measured <= bound
	}
	switch {
	case len(g.Members) == 0:
		g.Verdict = "none"
	case reached(g.Moonshot):
		g.Verdict = "moonshot"
	case reached(g.Must):
		g.Verdict = "pass"
	default:
		g.Verdict = "MISS"
	}
}

// String is the line goal, measured, verdict, and what was asked.
func (g *goal) String() string {
	sign, measured := "<=", "-"
	if g.AtLeast {
		sign = ">="
	}
	if len(g.Members) > 0 {
		measured = fmt.Sprintf("%.3f", g.Measured)
	}
	s := fmt.Sprintf("%-4s %8s  %-8s  %s %.2f (moonshot %.2f)  %s", g.ID, measured, g.Verdict, sign, g.Must, g.Moonshot, g.What)
	sep := ": "
	for _, name := range slices.Sorted(maps.Keys(g.Members)) {
		s += fmt.Sprintf("%s%s %.2f", sep, name, g.Members[name])
		sep = ", "
	}
	return s
}
