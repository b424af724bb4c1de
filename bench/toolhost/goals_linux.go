package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// What the tool server is to reach beside its peers.
const (
	mustEcho   = 0.5
	mustScan   = 1.5
	mustWorker = 50
)

// Verdicts.
const (
	pass = "pass"
	miss = "MISS"
	none = "none" // not measured
	told = "told" // measured, not judged
)

// goal is one judged line. Measured is the worst member, each a median over the rounds of a ratio within one round.
type goal struct {
	What     string             `json:"what"`
	Measured float64            `json:"measured"`
	Must     float64            `json:"must"` // 0: told and not judged
	Verdict  string             `json:"verdict"`
	Members  map[string]float64 `json:"members,omitempty"`
	// CPU is, by member, the peer's CPU time per request over the tool server's: what the ratio would be if only the servers cost.
	CPU map[string]float64 `json:"cpu_ratios,omitempty"`
}

func rateOf(s sample) float64 { return s.PerSec }
func cpuOf(s sample) float64  { return s.CPU }

// judge computes every goal that the samples allow.
func judge(all []sample) []goal {
	tcp := goal{What: "pipelined over TCP / echo", Must: mustEcho}
	pipes := goal{What: "pipelined over pipes / constant replies", Must: mustEcho}
	scan := goal{What: "field scan / libraries that check the line", Must: mustScan}
	free := goal{What: "field scan / " + unchecked + ", which does not"}
	worker := goal{What: kept + " / " + perCall, Must: mustWorker}
	start := goal{What: "start and answer / small program"}
	for _, c := range cellsOf(all) {
		switch {
		case c.Kind == fieldScan && c.Server == trunkline:
			for _, library := range checking() {
				scan.add(c.Via+" "+library, ratio(all, c, scanCell(library, c.Via), rateOf), 0)
			}
			free.add(c.Via, ratio(all, c, scanCell(unchecked, c.Via), rateOf), 0)
		case c.Server != trunkline:
		case c.Kind == kept:
			worker.against(all, fmt.Sprintf("%d×%d", c.Conns, c.Depth), c, cell{trunkline, perCall, c.Via, c.Conns, c.Depth}, false)
		case c.Kind == oneShot:
			start.against(all, "starts/s", c, cell{small, c.Kind, c.Via, c.Conns, c.Depth}, true)
		case c.Via == partTCP && slices.Contains(hot(), c.Kind):
			tcp.against(all, fmt.Sprintf("%s %d×%d", c.Kind, c.Conns, c.Depth), c, cell{echo, c.Kind, c.Via, c.Conns, c.Depth}, true)
		case c.Via == partPipes:
			pipes.against(all, c.Kind, c, cell{constant, c.Kind, c.Via, c.Conns, c.Depth}, true)
		}
	}
	goals := []goal{tcp, pipes, scan, free, worker, start}
	for i := range goals {
		goals[i].decide()
	}
	return goals
}

func cellsOf(all []sample) (list []cell) {
	for _, s := range all {
		if !slices.Contains(list, s.Cell) {
			list = append(list, s.Cell)
		}
	}
	return list
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

// quantile returns the smallest value that a share q of all does not exceed.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[min(len(v)-1, max(0, int(math.Ceil(q*float64(len(v))))-1))]
}

// against adds the ratio of requests/s of ours and the peer's, and that of CPU time if it is the servers' own.
func (g *goal) against(all []sample, name string, ours, peer cell, cpu bool) {
	share := 0.0
	if cpu {
		share = ratio(all, peer, ours, cpuOf)
	}
	g.add(name, ratio(all, ours, peer, rateOf), share)
}

// add takes one member of the goal; a goal is as good as its worst member. 0 was not measured.
func (g *goal) add(name string, v, cpu float64) {
	if v == 0 {
		return
	}
	if g.Members == nil {
		g.Members, g.CPU = map[string]float64{}, map[string]float64{}
	}
	g.Members[name] = v
	if cpu > 0 {
		g.CPU[name] = cpu
	}
	if v < g.Measured || len(g.Members) == 1 {
		g.Measured = v
	}
}

func (g *goal) decide() {
	switch {
	case len(g.Members) == 0:
		g.Verdict = none
	case g.Must == 0:
		g.Verdict = told
	case g.Measured >= g.Must:
		g.Verdict = pass
	default:
		g.Verdict = miss
	}
}

// String is the line: what, goal, measured, verdict, and the members with their ratio of CPU time.
func (g *goal) String() string {
	must, measured := "-", "-"
	if g.Must > 0 {
		must = fmt.Sprintf(">= %.1f", g.Must)
	}
	if len(g.Members) > 0 {
		measured = fmt.Sprintf("%.2f", g.Measured)
	}
	s := fmt.Sprintf("%-46s %7s %8s  %-4s", g.What, must, measured, g.Verdict)
	for _, name := range slices.Sorted(maps.Keys(g.Members)) {
		s += fmt.Sprintf("  %s %.2f", name, g.Members[name])
		if cpu := g.CPU[name]; cpu > 0 {
			s += fmt.Sprintf(" (CPU %.2f)", cpu)
		}
	}
	return s
}
