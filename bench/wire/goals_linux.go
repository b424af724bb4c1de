package main

import (
	"fmt"

	"trunkline/bench/internal/goal"
)

// goals judges every goal that the samples allow.
func goals(all []goal.Sample, o options) []goal.Goal {
	g1 := goal.Goal{ID: "G1", What: "CPU per request against the constant-reply server", Must: 3.5, Moonshot: 2.5}
	g2 := goal.Goal{ID: "G2", What: "CPU per request against GET", Must: 0.75, Moonshot: 0.5}
	g3 := goal.Goal{ID: "G3", What: "CPU per request against grpc-go unary", Must: 0.05, Moonshot: 0.03}
	g4 := goal.Goal{ID: "G4", What: "depth 1, requests/s against the constant-reply server", Must: 0.90, Moonshot: 0.97, AtLeast: true}
	g11 := goal.Goal{ID: "G11", What: "requests/s against the other kernel server", Must: 10, Moonshot: 30, AtLeast: true}
	get := deep(getPeer(all), "GET", o)
	for _, m := range methods {
		ours := deep(trunkline, m, o)
		g1.Add(m, goal.Ratio(all, ours, deep(baregnet, m, o), goal.CPU))
		g2.Add(m, goal.Ratio(all, ours, get, goal.CPU))
		g3.Add(m, goal.Ratio(all, ours, deep(grpcgo, "unary", o), goal.CPU))
	}
	for _, conns := range []int{o.conns, manyConns} {
		ours := cell(trunkline, "GetProcess", conns, 1)
		g4.Add(fmt.Sprintf("%d connections", conns), goal.Ratio(all, ours, cell(baregnet, "GetProcess", conns, 1), goal.Rate))
	}
	if o.also == "" {
		return goal.JudgeAll(g1, g2, g3, g4)
	}
	g11.Add("GetProcess", goal.Ratio(all, deep(trunkline, "GetProcess", o), deep(also, "GetProcess", o), goal.Rate))
	return goal.JudgeAll(g1, g2, g3, g4, g11)
}

func cell(server, method string, conns, depth int) goal.Cell {
	return goal.Cell{Server: server, Method: method, Conns: conns, Depth: depth}
}

// deep is a cell at full depth.
func deep(server, method string, o options) goal.Cell { return cell(server, method, o.conns, o.depth) }

func getPeer(all []goal.Sample) string {
	for _, s := range all {
		if s.Cell.Method == "GET" {
			return s.Cell.Server
		}
	}
	return ""
}

// line is a goal as it is printed: measured, verdict, and what was asked.
func line(g *goal.Goal) string {
	return fmt.Sprintf("%-4s %8s  %-8s  %s %.2f (moonshot %.2f)  %s", g.ID, goal.Known("%.3f", g.Measured), g.Verdict, g.Sign(), g.Must, g.Moonshot, g.What) +
		g.List(": ", ", ")
}
