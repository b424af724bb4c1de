package main

import (
	"fmt"
	"slices"

	"trunkline/bench/internal/goal"
)

// goals evaluates every goal that the samples allow.
func goals(all []goal.Sample, o options) []goal.Goal {
	g1 := goal.Goal{ID: "G1", What: "CPU per request against the constant-reply server", Must: 3.5, Moonshot: 2.5}
	g2 := goal.Goal{ID: "G2", What: "CPU per request against GET", Must: 0.75, Moonshot: 0.5}
	g3 := goal.Goal{ID: "G3", What: "CPU per request against grpc-go unary", Must: 0.05, Moonshot: 0.03}
	getCell := deep(getPeer(all), get, o)
	for _, m := range methods {
		ours := deep(trunkline, m, o)
		g1.Add(m, goal.Ratio(all, ours, deep(baregnet, m, o), goal.CPU))
		g2.Add(m, goal.Ratio(all, ours, getCell, goal.CPU))
		g3.Add(m, goal.Ratio(all, ours, deep(grpcgo, unary, o), goal.CPU))
	}
	list := []goal.Goal{g1, g2, g3, depthOneGoal(all, o), latencyGoal(all, o)}
	if o.peer != "" {
		list = append(list, peerGoal(all, o))
	}
	return goal.EvaluateAll(list...)
}

// depthOneGoal is G4: what a request costs beyond its system calls.
func depthOneGoal(all []goal.Sample, o options) goal.Goal {
	g := goal.Goal{ID: "G4", What: "depth 1, requests/s against the constant-reply server", Must: 0.90, Moonshot: 0.97, AtLeast: true}
	for _, conns := range []int{o.conns, o.many} {
		g.Add(connections(conns), goal.Ratio(all, cell(trunkline, evaluated, conns, 1), cell(baregnet, evaluated, conns, 1), goal.Rate))
	}
	return g
}

// latencyGoal is G8: both servers at the same rate, which leaves both of them room.
func latencyGoal(all []goal.Sample, o options) goal.Goal {
	what := "p99 at half of the maximum load against the constant-reply server"
	if rate := halfLoad(all, o); rate > 0 {
		ours, bare := median(all, deep(trunkline, evaluated, o), goal.Rate), median(all, deep(baregnet, evaluated, o), goal.Rate)
		slower := trunkline
		if bare < ours {
			slower = baregnet
		}
		what += fmt.Sprintf(", both at %.0f requests/s: half of what %s answers at %d×%d", rate, slower, o.conns, o.depth)
	}
	g := goal.Goal{ID: "G8", What: what, Must: 1.5, Moonshot: 1.2}
	g.Add(evaluated, goal.Ratio(all, deep(trunkline, paced, o), deep(baregnet, paced, o), func(s goal.Sample) float64 { return s.P99 }))
	return g
}

// peerGoal is G11: against the server at -peer, whatever the number of connections.
func peerGoal(all []goal.Sample, o options) goal.Goal {
	g := goal.Goal{ID: "G11", What: "full depth, requests/s against the given kernel server", Must: 10, Moonshot: 30, AtLeast: true}
	for _, conns := range []int{1, o.conns, o.many} {
		ours, theirs := cell(trunkline, evaluated, conns, o.depth), cell(given, evaluated, conns, o.depth)
		g.AddCPU(connections(conns), goal.Ratio(all, ours, theirs, goal.Rate), goal.Ratio(all, theirs, ours, goal.CPU))
	}
	return g
}

func connections(n int) string { return fmt.Sprintf("%d connections", n) }

func cell(server, method string, conns, depth int) goal.Cell {
	return goal.Cell{Server: server, Method: method, Conns: conns, Depth: depth}
}

// deep is a cell at full depth.
func deep(server, method string, o options) goal.Cell { return cell(server, method, o.conns, o.depth) }

// getPeer is redis-server, or redcon where that was not measured.
func getPeer(all []goal.Sample) string {
	if slices.ContainsFunc(all, func(s goal.Sample) bool { return s.Cell.Server == redis }) {
		return redis
	}
	return redcon
}

// median returns the median of a figure of one cell, 0 if it was not measured.
func median(all []goal.Sample, c goal.Cell, pick func(goal.Sample) float64) float64 {
	var v []float64
	for _, s := range all {
		if s.Cell == c {
			v = append(v, pick(s))
		}
	}
	return goal.Median(v)
}

// line is a goal as it is printed: measured, verdict, and what was asked.
func line(g *goal.Goal) string {
	return fmt.Sprintf("%-4s %8s  %-8s  %s %.2f (moonshot %.2f)  %s", g.ID, goal.Known("%.3f", g.Measured), g.Verdict, g.Sign(), g.Must, g.Moonshot, g.What) +
		g.List(": ", ", ")
}
