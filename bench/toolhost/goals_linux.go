package main

import (
	"fmt"
	"slices"

	"trunkline/bench/internal/goal"
)

// What the tool server is to reach beside its peers.
const (
	mustEcho   = 0.5
	mustScan   = 1.5
	mustWorker = 50
)

// goals evaluates every goal that the samples allow.
func goals(all []goal.Sample) []goal.Goal {
	list := slices.Concat(hotGoals(all, partTCP, echo, "pipelined over TCP / echo"),
		hotGoals(all, partPipes, constant, "pipelined over pipes / constant replies"), scanGoals(all))
	worker := goal.Goal{What: keptPy + " / " + perCallPy, Must: mustWorker, AtLeast: true}
	least := goal.Goal{What: kept + " / " + perCall + ", smallest program", AtLeast: true}
	start := goal.Goal{What: "start and answer / small program", AtLeast: true}
	for _, c := range ours(all) {
		peer := c
		switch c.Method { // the CPU time of tools is not the server's
		case keptPy:
			peer.Method = perCallPy
			worker.Add(sizeOf(c), goal.Ratio(all, c, peer, goal.Rate))
		case kept:
			peer.Method = perCall
			least.Add(sizeOf(c), goal.Ratio(all, c, peer, goal.Rate))
		case oneShot:
			against(&start, all, "starts/s", c, small)
		}
	}
	return goal.EvaluateAll(append(list, worker, least, start)...)
}

// hotGoals compares the pipelined kinds over a transport with a peer. The goal is about a trivial
// tool; the other kinds are reported.
func hotGoals(all []goal.Sample, via, peer, what string) (list []goal.Goal) {
	for _, kind := range hot() {
		g := goal.Goal{What: what + ", " + kind, AtLeast: true}
		if kind == evaluated {
			g.What, g.Must = what, mustEcho
		}
		for _, c := range ours(all) {
			if c.Via != via || c.Method != kind {
				continue
			}
			name := kind
			if via == partTCP {
				name += " " + sizeOf(c)
			}
			against(&g, all, name, c, peer)
		}
		list = append(list, g)
	}
	return list
}

// scanGoals compares the field scan with libraries that check the line, and with one that does not,
// which is reported.
func scanGoals(all []goal.Sample) []goal.Goal {
	scan := goal.Goal{What: "field scan / libraries that check the line", Must: mustScan, AtLeast: true}
	free := goal.Goal{What: "field scan / " + unchecked + ", which does not", AtLeast: true}
	for _, c := range ours(all) {
		if c.Method != fieldScan {
			continue
		}
		for _, library := range checking() {
			scan.Add(c.Via+" "+library, goal.Ratio(all, c, scanCell(library, c.Via), goal.Rate))
		}
		free.Add(c.Via, goal.Ratio(all, c, scanCell(unchecked, c.Via), goal.Rate))
	}
	return []goal.Goal{scan, free}
}

// ours are the cells of the tool server.
func ours(all []goal.Sample) (cells []goal.Cell) {
	for _, s := range all {
		if s.Cell.Server == trunkline && !slices.Contains(cells, s.Cell) {
			cells = append(cells, s.Cell)
		}
	}
	return cells
}

// against adds the ratio of requests/s of ours and the peer's in the same cell, and that of CPU
// time.
func against(g *goal.Goal, all []goal.Sample, name string, ours goal.Cell, server string) {
	peer := ours
	peer.Server = server
	g.AddCPU(name, goal.Ratio(all, ours, peer, goal.Rate), goal.Ratio(all, peer, ours, goal.CPU))
}

func sizeOf(c goal.Cell) string { return fmt.Sprintf("%d×%d", c.Conns, c.Depth) }

// line is a goal as it is printed: what, asked, measured, verdict, and the members with their ratio
// of CPU time.
func line(g *goal.Goal) string {
	must := "-"
	if g.Must > 0 {
		must = fmt.Sprintf("%s %.1f", g.Sign(), g.Must)
	}
	return fmt.Sprintf("%-46s %7s %8s  %-4s", g.What, must, goal.Known("%.2f", g.Measured), g.Verdict) + g.List("  ", "  ")
}
