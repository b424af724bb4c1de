package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
)

// made is one round of made-up cells: requests/s by server, the same for each size and, but for
// what waits for no sync, for each method.
func made(round int, rates map[string]float64) (all []goal.Sample) {
	for server, rate := range rates {
		for _, at := range allSizes {
			for _, m := range []string{recordUsage, transitionState, createProcess, updateEnvelope, checkRateLimit} {
				s := goal.Sample{Cell: cell(server, peerMethod(server, m), at), Round: round, PerSec: rate, CPU: 1e9 / rate}
				if server == always && m == checkRateLimit {
					s.PerSec = 0.85 * rates[memory]
				}
				all = append(all, s)
			}
		}
	}
	return all
}

// reached are rates that just reach all goals.
func reached() map[string]float64 {
	return map[string]float64{always: 950, loopAlways: 1000, memory: 1520, redisAlways: 380, interval: 600, redisEverysec: 400, loopEverysec: 700}
}

// changed is all with the samples of one cell changed.
func changed(all []goal.Sample, c goal.Cell, change func(s *goal.Sample)) []goal.Sample {
	for i := range all {
		if all[i].Cell == c {
			change(&all[i])
		}
	}
	return all
}

// others lists the goals that have none of the verdicts.
func others(goals []goal.Goal, verdicts ...goal.Verdict) string {
	var out []string
	for _, g := range goals {
		g.Evaluate()
		if !slices.Contains(verdicts, g.Verdict) {
			out = append(out, fmt.Sprintf("%s %s: %s", g.ID, strings.Replace(g.What, ", requests/s of", "", 1), g.Verdict))
		}
	}
	return strings.Join(out, "; ")
}

func TestStoreGoals(t *testing.T) {
	f := func(all []goal.Sample, want string) {
		t.Helper()
		if got := others(goals(all), goal.Pass, goal.Moonshot, goal.Reported); got != want {
			t.Errorf("not passed: %q, want %q", got, want)
		}
	}
	slower := func(server string, method string, at size, by float64) []goal.Sample {
		return changed(made(0, reached()), cell(server, method, at), func(s *goal.Sample) { s.PerSec /= by })
	}
	f(made(0, reached()), "")
	// The ratio is taken within a round, so one slow round of everything changes nothing.
	slow := reached()
	for server := range slow {
		slow[server] /= 10
	}
	f(append(made(0, reached()), made(1, slow)...), "")

	f(slower(always, recordUsage, few, 1.001), "G13 durable path always / bare loop, always, 64×1: MISS")
	f(slower(always, recordUsage, manyDeep, 1.001), "G14 durable path always / redis, always, 1024×16: MISS")
	f(slower(always, updateEnvelope, fewDeep, 1.05), " durable methods always / memory: MISS")
	f(slower(always, checkRateLimit, many, 1.001), " a lazy method always / memory: MISS")
	f(slower(interval, recordUsage, fewDeep, 1.001), " lazy sync interval / redis, everysec: MISS")
	f(changed(made(0, reached()), cell(always, recordUsage, fewDeep), func(s *goal.Sample) { s.CPU *= 1.01 }), "G12 durable path, server CPU per request of always / memory: MISS")
	// At depth 1, nine tenths of what mode memory reaches beside redis is enough.
	f(changed(slower(redisAlways, setValue, few, 0.5), cell(memory, recordUsage, few), func(s *goal.Sample) { s.PerSec = 1000 }), "")
}

func TestNothingMeasuredIsNoVerdict(t *testing.T) {
	for _, all := range [][]goal.Goal{goals(nil), threadGoals(nil), projectGoals(nil)} {
		if got := others(all, goal.None); got != "" || len(all) == 0 {
			t.Errorf("%d goals, evaluated without a sample: %s", len(all), got)
		}
	}
}

func TestDurabilityTable(t *testing.T) {
	all := made(0, map[string]float64{always: 2000, redisAlways: 500})
	g := durability(append(all, made(1, map[string]float64{always: 4000, redisAlways: 500})...))
	if len(g.Rows) != 7 || len(g.Head) != 9 || g.Rows[2][0] != always || g.Rows[2][1] != 3000.0 || g.Rows[2][2] != 375.0 || g.Rows[1][7] != 500.0 || g.Rows[0][1] != 0.0 {
		t.Errorf("%+v", g)
	}
}

// madeUp are the cells of one round of agent threads with their requests/s: all goals are just
// reached.
func madeUp() map[goal.Cell]float64 {
	return map[goal.Cell]float64{
		cell(kernelServer, recordUsage, fewDeep):           400,
		over(viaLines, threadServer, postOwn, fewDeep):     200,
		over(viaLines, threadServer, postOne, fewDeep):     100,
		over(viaLines, toolServer, noopTool, polled):       1000,
		over(viaLines, threadServer, pollLast, polled):     600,
		over(viaHTTP, bareHandler, readBody, crowd):        50,
		over(viaHTTP, threadServer, postOwn, crowd):        25,
		over(viaHTTP, threadServer, callTool, few):         80,
		over(viaHTTP, goSDK, callTool, few):                8,
		handlerCell(threadServer, "2025-11-25"):            100,
		handlerCell(goSDK, "2025-11-25"):                   10,
		handlerCell(threadServer, "2026-07-28"):            300,
		handlerCell(goSDK, "2026-07-28"):                   10,
		over(viaHTTP, nodeSDK, callTool, few):              16,
		over(viaLines, threadServer, postOwn, few):         1,
		over(viaLines, kernelServer, recordUsage, fewDeep): 1,
	}
}

func TestThreadGoals(t *testing.T) {
	f := func(want string, worse goal.Cell, by float64) {
		t.Helper()
		var all []goal.Sample
		for c, rate := range madeUp() {
			if c == worse {
				rate *= by
			}
			all = append(all, goal.Sample{Cell: c, PerSec: rate, CPU: 1e9})
		}
		var got []string
		for _, g := range threadGoals(all) {
			g.Evaluate()
			if g.Verdict != goal.Pass && g.Verdict != goal.Reported {
				got = append(got, g.What+": "+string(g.Verdict))
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("not passed: %q, want %q", got, want)
		}
	}
	f("", goal.Cell{}, 1)
	f("threads: posts to 64 threads / RecordUsage, 64×16: MISS", over(viaLines, threadServer, postOwn, fewDeep), 0.99)
	f("threads: posts to one thread / RecordUsage, 64×16: MISS", over(viaLines, threadServer, postOne, fewDeep), 0.99)
	f("threads: empty polls / a trivial tool, 64×64: MISS", over(viaLines, threadServer, pollLast, polled), 0.99)
	f("threads: posts over HTTP / a bare net/http handler, 256×1: MISS", over(viaHTTP, threadServer, postOwn, crowd), 0.99)
	f("threads: MCP / Go SDK, handler alone: MISS", handlerCell(threadServer, "2025-11-25"), 0.99)
	f("threads: MCP calls / TypeScript SDK on node, 64×1: MISS", over(viaHTTP, threadServer, callTool, few), 0.99)
	f("threads: MCP calls / TypeScript SDK on node, 64×1: none", over(viaHTTP, nodeSDK, callTool, few), 0)
}

func TestProjectGoals(t *testing.T) {
	f := func(want string, worse goal.Cell) {
		t.Helper()
		var all []goal.Sample
		for _, at := range controlSizes {
			all = append(all, goal.Sample{Cell: over(viaLines, toolServer, noopTool, at), PerSec: 1000, CPU: 1},
				goal.Sample{Cell: over(viaLines, projectServer, pauseIdle, at), PerSec: 300, CPU: 2})
		}
		for _, depth := range eventDepths {
			all = append(all, goal.Sample{Cell: deliveries(busServer, depth), PerSec: 1, CPU: 2}, goal.Sample{Cell: deliveries(projectServer, depth), PerSec: 1, CPU: 3})
		}
		changed(all, worse, func(s *goal.Sample) { s.PerSec *= 0.99; s.CPU *= 1.01 })
		var got []string
		for _, g := range projectGoals(all) {
			g.Evaluate()
			got = append(got, string(g.Verdict))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %q, want %q", worse, got, want)
		}
	}
	f("pass pass reported", goal.Cell{})
	f("MISS pass reported", over(viaLines, projectServer, pauseIdle, polled))
	f("pass MISS reported", deliveries(projectServer, 1))
	f("pass pass reported", deliveries(projectServer, polled.depth))
}

func TestRestartGoal(t *testing.T) {
	f := func(rows int, seconds float64, want goal.Verdict) {
		t.Helper()
		g := restartGoal(rows)
		g.Add("log", seconds)
		g.Add("snapshot", seconds/10)
		if g.Evaluate(); g.Verdict != want {
			t.Errorf("%d rows in %v s: %s, want %s", rows, seconds, g.Verdict, want)
		}
	}
	f(goalRows, 1, goal.Pass)
	f(goalRows, 1.01, goal.Miss)
	f(goalRows, 0.5, goal.Moonshot)
	f(goalRows/10, 0.1, goal.Pass)
	f(goalRows/10, 0.11, goal.Miss)
}
