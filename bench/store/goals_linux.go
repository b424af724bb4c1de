package store

import (
	"fmt"
	"slices"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/part"
)

// Server names as they stand in the tables: modes of trunkline, and peers.
const (
	always        = "always"
	interval      = "interval"
	memory        = "memory"
	loopAlways    = "bare loop, always"
	loopEverysec  = "bare loop, everysec"
	redisAlways   = "redis, always"
	redisEverysec = "redis, everysec"
)

// done is what a server does where trunkline does a method.
func done(server, method string) string {
	if slices.Contains([]string{always, interval, memory}, server) {
		return method
	}
	return appendRecord
}

// conclude evaluates what durability may cost (performance G12 to G14, durability §7), reports
// ratios beside that (what mode memory reaches beside a peer bounds what a durable mode can), and
// shows in one table what each mode and each peer made of RecordUsage, or of as much.
func conclude(r *part.Report) error {
	ratio := func(ours, theirs, method string, at size, of func(goal.Sample) float64) float64 {
		return r.Ratio(cell(ours, method, at), cell(theirs, done(theirs, method), at), of)
	}
	ask := func(id, what, ours, theirs string, must, moonshot float64, sizes []size, methods ...string) {
		if len(sizes) == 1 {
			what += " at " + sizes[0].String()
		}
		g := goal.Goal{ID: id, What: fmt.Sprintf("%s, requests/s of %s / %s", what, ours, theirs), Must: must, Moonshot: moonshot, AtLeast: true}
		for _, at := range sizes {
			for _, m := range methods {
				g.Add(m+" "+at.String(), ratio(ours, theirs, m, at, goal.Rate))
			}
		}
		r.Goal(g)
	}
	cpu := goal.Goal{ID: "G12", What: "durable path, server CPU per request of always / memory", Must: 1.6, Moonshot: 1.3}
	for _, at := range []size{few, fewDeep} {
		cpu.Add(recordUsage+" "+at.String(), ratio(always, memory, recordUsage, at, goal.CPU))
	}
	r.Goal(cpu)
	for i, at := range allSizes {
		ask("G13", "durable path", always, loopAlways, []float64{0.95, 0.9, 0.8, 0}[i], 1, []size{at}, recordUsage)
	}
	for i, at := range allSizes {
		must := []float64{1.5, 1.5, 2.5, 2.5}[i]
		if bound := ratio(memory, redisAlways, recordUsage, at, goal.Rate); bound > 0 && at.depth == 1 {
			must = min(must, 0.9*bound)
		}
		ask("G14", "durable path", always, redisAlways, must, []float64{2, 2, 4, 4}[i], []size{at}, recordUsage)
	}
	others := []string{transitionState, createProcess, updateEnvelope}
	ask("", "lazy sync", interval, redisEverysec, 1.5, 0, allSizes, recordUsage)
	ask("", "durable methods", always, memory, 0.6, 0, thousand, append(others, recordUsage)...)
	ask("", "a lazy method", always, memory, 0.85, 0, thousand, checkRateLimit)
	ask("", "lazy sync", interval, loopEverysec, 0, 0, allSizes, recordUsage)
	for _, peer := range []string{loopAlways, redisAlways} {
		ask("", "other durable methods", always, peer, 0, 0, thousand, others...)
		ask("", "the bound of these", memory, peer, 0, 0, allSizes, recordUsage)
	}
	table := goal.Grid{Title: "what durability costs: requests/s, and server CPU µs/request", Head: []string{"server"}}
	for _, at := range allSizes {
		table.Head = append(table.Head, at.String()+"/s", "CPU µs")
	}
	for _, server := range []string{loopAlways, redisAlways, always, loopEverysec, redisEverysec, interval, memory} {
		row := []any{server}
		for _, at := range allSizes {
			c := cell(server, done(server, recordUsage), at)
			row = append(row, r.Median(c, goal.Rate), r.Median(c, goal.CPU)/1e3)
		}
		table.Add(row...)
	}
	r.Table(table)
	return nil
}
