package storage

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/part"
)

// made is one round of made-up cells: requests/s by server, the same for each size and, but for
// what waits for no sync, for each method.
func made(round int, rates map[string]float64) (all []goal.Sample) {
	for server, rate := range rates {
		for _, at := range allSizes {
			for _, m := range []string{recordUsage, transitionState, createProcess, updateEnvelope, checkRateLimit} {
				s := goal.Sample{Cell: cell(server, done(server, m), at), Round: round, PerSec: rate, CPU: 1e9 / rate}
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
	return map[string]float64{always: 950, loopAlways: 1000, memory: 1330, redisAlways: 431.8, interval: 800, redisEverysec: 400, loopEverysec: 700}
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

// but lists the goals that have none of the verdicts.
func but(goals []goal.Goal, verdicts ...goal.Verdict) string {
	var out []string
	for _, g := range goals {
		if !slices.Contains(verdicts, g.Verdict) {
			out = append(out, fmt.Sprintf("%s %s: %s", g.ID, strings.Replace(g.What, ", requests/s of", "", 1), g.Verdict))
		}
	}
	return strings.Join(out, "; ")
}

// concluded is the report on these samples.
func concluded(t *testing.T, all []goal.Sample) *part.Report {
	t.Helper()
	r := &part.Report{Samples: all}
	if err := conclude(r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStoreGoals(t *testing.T) {
	f := func(all []goal.Sample, want string) {
		t.Helper()
		if got := but(concluded(t, all).Goals, goal.Pass, goal.Moonshot, goal.Reported); got != want {
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

	f(slower(always, recordUsage, few, 1.001), "G13 durable path at 64×1 always / bare loop, always: MISS")
	f(slower(always, recordUsage, manyDeep, 1.001), "G13 durable path at 1024×16 always / bare loop, always: MISS; G14 durable path at 1024×16 always / redis, always: MISS")
	f(slower(always, updateEnvelope, fewDeep, 1.2), " durable methods always / memory: MISS")
	f(slower(always, checkRateLimit, many, 1.001), " a lazy method always / memory: MISS")
	f(slower(interval, recordUsage, manyDeep, 1.001), " lazy sync at 1024×16 interval / redis, everysec: MISS")
	f(changed(made(0, reached()), cell(always, recordUsage, few), func(s *goal.Sample) { s.CPU *= 1.01 }),
		"G12 durable path at 64×1, server CPU per request of always / memory: MISS")
	f(slower(always, transitionState, many, 2.5), " other durable methods always / redis, always: MISS;  durable methods always / memory: MISS")
}

func TestNothingMeasuredIsNoVerdict(t *testing.T) {
	r := concluded(t, nil)
	if got := but(r.Goals, goal.None); got != "" || len(r.Goals) != 21 {
		t.Errorf("%d goals, evaluated without a sample: %s", len(r.Goals), got)
	}
}

func TestDurabilityTable(t *testing.T) {
	all := made(0, map[string]float64{always: 2000, redisAlways: 500})
	g := concluded(t, append(all, made(1, map[string]float64{always: 4000, redisAlways: 500})...)).Tables[0]
	if len(g.Rows) != 7 || len(g.Head) != 9 || g.Rows[2][0] != always || g.Rows[2][1] != 3000.0 || g.Rows[2][2] != 375.0 || g.Rows[1][7] != 500.0 || g.Rows[0][1] != 0.0 {
		t.Errorf("%+v", g)
	}
}

// TestCompare: a goal of two cells has the verdict of their requests/s, and shows their CPU time.
func TestCompare(t *testing.T) {
	f := func(must, ours float64, want goal.Verdict) {
		t.Helper()
		b := &bench{Run: &part.Run{Report: &part.Report{Part: "p"}}}
		x, y := cell("x", "m", few), cell("y", "m", few)
		b.compare("x / y", must, x, y)
		if ours > 0 {
			b.Report.Samples = []goal.Sample{{Cell: x, PerSec: ours, CPU: 4}, {Cell: y, PerSec: 100, CPU: 2}}
		}
		if err := inOrder(b.after...); err != nil || len(b.Report.Goals) != 1 {
			t.Fatal(err, b.Report.Goals)
		}
		if g := b.Report.Goals[0]; g.Verdict != want || g.What != "p: x / y, 64×1" || g.Measured != ours/100 || ours > 0 && g.CPU["requests/s"] != 0.5 {
			t.Errorf("%v of 100, asked for %v: %+v", ours, must, g)
		}
	}
	f(0.5, 50, goal.Pass)
	f(0.5, 49, goal.Miss)
	f(0, 49, goal.Reported)
	f(0.5, 0, goal.None)
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
