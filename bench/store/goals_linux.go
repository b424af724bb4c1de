package main

import (
	"fmt"
	"slices"

	"trunkline/bench/internal/goal"
)

// goalRows is the table of the goal about a restart, and goalReplay the seconds it may take; a
// smaller table has as much less time.
const (
	goalRows   = 1_000_000
	goalReplay = 1.0
)

// bounded is a goal, with what bounds it.
type bounded struct {
	goal.Goal
	// Bound is what the server in mode memory reaches with RecordUsage beside the same peer:
	// durability cannot add to it. 0: not measured.
	Bound float64 `json:"memory_reaches,omitempty"`

	optional bool // left out when it was not measured
}

// goals evaluates every goal that was measured.
func goals(all []goal.Sample, restarts []restart) []bounded {
	list := slices.Concat(peerGoals(all, appendRecord, loopAlways, loopEverysec, false), peerGoals(all, "SET", redisAlways, redisEverysec, true),
		memoryGoals(all), pathGoals(all), []bounded{restartGoal(restarts)})
	for i := range list {
		list[i].Evaluate()
	}
	return slices.DeleteFunc(list, func(g bounded) bool { return g.optional && g.Verdict == goal.None })
}

func missed(goals []bounded) bool {
	return slices.ContainsFunc(goals, func(g bounded) bool { return g.Verdict == goal.Miss })
}

// cell is a server under the load of a method at a size.
func cell(server, method string, at size) goal.Cell {
	return goal.Cell{Server: server, Method: method, Conns: at.conns, Depth: at.depth}
}

// asked asks for requests/s of one mode beside another server.
func asked(mode, beside, which string, at size, must float64) bounded {
	what := fmt.Sprintf("%s / %s%s, %d×%d", mode, beside, which, at.conns, at.depth)
	return bounded{Goal: goal.Goal{What: what, Must: must, AtLeast: true}}
}

// peerGoals compare requests/s with a peer that syncs always, and one that syncs each second.
func peerGoals(all []goal.Sample, method, syncs, everysec string, optional bool) (list []bounded) {
	add := func(mode, peer string, at size, must float64, methods ...string) {
		g, beside := asked(mode, peer, "", at, must), cell(peer, method, at)
		for _, m := range methods {
			g.Add(m, goal.Ratio(all, cell(mode, m, at), beside, goal.Rate))
		}
		g.optional, g.Bound = optional, goal.Ratio(all, cell(memory, recordUsage, at), beside, goal.Rate)
		list = append(list, g)
	}
	for _, at := range allSizes() {
		must := 1.5
		if at.conns == manyConns {
			must = 4
		}
		add(always, syncs, at, must, durableMethods()...)
	}
	for _, at := range allSizes() {
		add(interval, everysec, at, 1.5, recordUsage)
	}
	return list
}

// memoryGoals compare requests/s of mode always with those of mode memory, 1024 in flight.
func memoryGoals(all []goal.Sample) (list []bounded) {
	add := func(which string, must float64, methods ...string) {
		for _, at := range thousand() {
			g := asked(always, memory, which, at, must)
			for _, m := range methods {
				g.Add(m, goal.Ratio(all, cell(always, m, at), cell(memory, m, at), goal.Rate))
			}
			list = append(list, g)
		}
	}
	add("", 0.6, durableMethods()...)
	add(", lazy", 0.85, checkRateLimit)
	return list
}

// pathGoals are about the durable path of RecordUsage: its rate beside a bare loop and redis, and
// its CPU beside mode memory. At depth 1, nine tenths of what mode memory reaches beside redis is
// enough.
func pathGoals(all []goal.Sample) (list []bounded) {
	ratio := func(server, peer, method string, at size, of func(goal.Sample) float64) float64 {
		return goal.Ratio(all, cell(server, recordUsage, at), cell(peer, method, at), of)
	}
	for _, at := range allSizes() {
		var loop float64
		switch {
		case at.depth == 1 && at.conns == manyConns:
			loop = 0.9
		case at.depth == 1:
			loop = 0.95
		case at.conns != manyConns:
			loop = 0.8
		}
		if loop > 0 {
			g := asked(always, loopAlways, ", "+recordUsage, at, loop)
			g.Add(recordUsage, ratio(always, loopAlways, appendRecord, at, goal.Rate))
			list = append(list, g)
		}
		bound, redis := ratio(memory, redisAlways, "SET", at, goal.Rate), 2.5
		if at.depth == 1 {
			redis = 1.5
			if bound > 0 {
				redis = min(redis, 0.9*bound)
			}
		}
		g := asked(always, redisAlways, ", "+recordUsage, at, redis)
		g.Add(recordUsage, ratio(always, redisAlways, "SET", at, goal.Rate))
		g.optional, g.Bound = true, bound
		list = append(list, g)
		if at.conns != manyConns {
			g := bounded{Goal: goal.Goal{What: fmt.Sprintf("CPU of always / memory, %d×%d", at.conns, at.depth), Must: 1.6}}
			g.Add(recordUsage, ratio(always, memory, recordUsage, at, goal.CPU))
			list = append(list, g)
		}
	}
	return list
}

// restartGoal evaluates the seconds that recovery took.
func restartGoal(restarts []restart) bounded {
	rows := goalRows
	if len(restarts) > 0 {
		rows = restarts[0].Rows
	}
	g := bounded{Goal: goal.Goal{What: fmt.Sprintf("seconds to recover %d processes", rows), Must: goalReplay * float64(rows) / goalRows}}
	for _, r := range restarts {
		g.Add(r.From, r.Recovery)
	}
	return g
}

// line is a goal as it is printed: what is asked, measured, verdict, members.
func line(g *bounded) string {
	must := "-"
	if g.Must > 0 {
		must = fmt.Sprintf("%s %.2f", g.Sign(), g.Must)
	}
	s := fmt.Sprintf("%-42s %7s %8s  %-5s", g.What, must, goal.Known("%.2f", g.Measured), g.Verdict) + g.List("  ", "  ")
	if g.Bound > 0 {
		s += fmt.Sprintf("  (memory %s %.2f)", recordUsage, g.Bound)
	}
	return s
}
