package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// rates are requests/s of one made-up round.
type rates struct{ always, interval, memory, few, many, everysec, lazy float64 }

func goodRates() rates {
	return rates{always: 400, interval: 150, memory: 500, few: 200, many: 100, everysec: 100, lazy: 425}
}

// round builds the samples of one round.
func round(n int, r rates) []goal.Sample {
	var out []goal.Sample
	add := func(server, method string, at size, rate float64) {
		out = append(out, goal.Sample{Cell: cell(server, method, at), Round: n, PerSec: rate, CPU: 1e9 / rate})
	}
	for _, at := range allSizes() {
		loop := r.few
		if at.conns == manyConns {
			loop = r.many
		}
		add(loopAlways, appendRecord, at, loop)
		add(loopEverysec, appendRecord, at, r.everysec)
		add(interval, recordUsage, at, r.interval)
		add(memory, recordUsage, at, r.memory)
		add(always, recordUsage, at, r.always)
	}
	for _, at := range thousand() {
		for _, m := range []string{transitionState, createProcess, updateEnvelope} {
			add(always, m, at, r.always)
			add(memory, m, at, r.memory)
		}
		add(always, checkRateLimit, at, r.lazy)
		add(memory, checkRateLimit, at, r.memory)
	}
	return out
}

// verdicts lists the goals that have another verdict than the given one.
func verdicts(goals []bounded, but goal.Verdict) string {
	var out []string
	for _, g := range goals {
		if g.Verdict != but {
			out = append(out, g.What+": "+string(g.Verdict))
		}
	}
	return strings.Join(out, "; ")
}

func TestEvaluate(t *testing.T) {
	quickStart := []restart{{From: "log", Rows: goalRows, Recovery: 1}, {From: "snapshot", Rows: goalRows, Recovery: 0.4}}
	f := func(all []goal.Sample, restarts []restart, want string) {
		t.Helper()
		if got := verdicts(goals(all, restarts), goal.Pass); got != want {
			t.Errorf("not passed: %q, want %q", got, want)
		}
	}
	f(round(0, goodRates()), quickStart, "")
	f(round(0, goodRates()), []restart{{From: "log", Rows: goalRows, Recovery: 1.01}}, "seconds to recover 1000000 processes: MISS")
	f(round(0, goodRates()), []restart{{From: "log", Rows: goalRows / 10, Recovery: 0.11}}, "seconds to recover 100000 processes: MISS")
	f(round(0, goodRates()), []restart{{From: "log", Rows: goalRows / 10, Recovery: 0.1}}, "")
	f(round(0, goodRates()), nil, "seconds to recover 1000000 processes: none")

	r := goodRates()
	r.few = 267
	f(round(0, r), quickStart, "always / bare loop, always, 64×1: MISS; always / bare loop, always, 64×16: MISS")
	r = goodRates()
	r.many = 101
	f(round(0, r), quickStart, "always / bare loop, always, 1024×1: MISS; always / bare loop, always, 1024×16: MISS")
	r = goodRates()
	r.lazy = 424
	f(round(0, r), quickStart, "always / memory, lazy, 1024×1: MISS; always / memory, lazy, 64×16: MISS")
	r = goodRates()
	r.memory = 667
	f(round(0, r), quickStart, "always / memory, 1024×1: MISS; always / memory, 64×16: MISS; "+
		"always / memory, lazy, 1024×1: MISS; always / memory, lazy, 64×16: MISS; "+
		"CPU of always / memory, 64×1: MISS; CPU of always / memory, 64×16: MISS")

	// The ratio is taken within a round, so one slow round of everything changes nothing.
	slow := rates{always: 40, interval: 15, memory: 50, few: 20, many: 10, everysec: 10, lazy: 42.5}
	f(append(round(0, goodRates()), round(1, slow)...), quickStart, "")

	// The CPU of the durable path has a goal of its own.
	costly := round(0, goodRates())
	for i := range costly {
		if costly[i].Cell == cell(always, recordUsage, few()) {
			costly[i].CPU = 1.61 * 1e9 / 500
		}
	}
	f(costly, quickStart, "CPU of always / memory, 64×1: MISS")

	// A goal is as good as its worst member.
	one := round(0, goodRates())
	for i := range one {
		if one[i].Cell == cell(always, updateEnvelope, fewDeep()) {
			one[i].PerSec = 299
		}
	}
	f(one, quickStart, "always / bare loop, always, 64×16: MISS; always / memory, 64×16: MISS")
}

func TestNothingMeasuredIsNoVerdict(t *testing.T) {
	evaluated := goals(nil, nil)
	if got := verdicts(evaluated, goal.None); got != "" || len(evaluated) != 18 || missed(evaluated) {
		t.Errorf("%d goals, evaluated without a sample: %s", len(evaluated), got)
	}
}

func TestRedisIsEvaluatedWhereItWasMeasured(t *testing.T) {
	all := append(round(0, goodRates()), goal.Sample{Cell: cell(redisAlways, "SET", few()), PerSec: 100})
	ask := func(at size, always, memoryMode float64) goal.Verdict {
		beside := goal.Sample{Cell: cell(redisAlways, "SET", at), PerSec: 100}
		for _, g := range goals(append(round(0, rates{always: always, memory: memoryMode}), beside), nil) {
			if g.What == fmt.Sprintf("always / redis, always, RecordUsage, %d×%d", at.conns, at.depth) {
				return g.Verdict
			}
		}
		return goal.None
	}
	for _, c := range []struct {
		at                 size
		always, memoryMode float64
		want               goal.Verdict
	}{
		{few(), 150, 500, goal.Pass}, {few(), 149, 500, goal.Miss}, {few(), 91, 100, goal.Pass}, {few(), 89, 100, goal.Miss},
		{fewDeep(), 250, 500, goal.Pass}, {fewDeep(), 249, 500, goal.Miss},
	} {
		if got := ask(c.at, c.always, c.memoryMode); got != c.want {
			t.Errorf("%v, always %v, memory %v beside redis at 100: %v, want %v", c.at, c.always, c.memoryMode, got, c.want)
		}
	}
	for _, g := range goals(all, nil) {
		if strings.Contains(g.What, redisAlways) {
			if g.Verdict != goal.Pass || g.Measured != 4 || g.Bound != 5 || !strings.Contains(line(&g), "(memory RecordUsage 5.00)") {
				t.Errorf("beside redis: %+v, line %q", g, line(&g))
			}
			return
		}
	}
	t.Error("no goal beside redis")
}

func TestReport(t *testing.T) {
	r := report{parts: []string{partCells, partRestart}, samples: append(round(0, goodRates()), round(1, goodRates())...), disk: diskTimes{4 << 10: new(load.Histogram)},
		Restarts:  []restart{{From: "log", Rows: goalRows, Tail: 7, Recovery: 0.9, Replay: 0.7, Answer: 1.5, RSS: 300 << 20}},
		Latencies: []latency{{Method: getProcess, PerSec: 1000, Snapshots: 3, Took: 0.25, During: quantiles{Requests: 9, P99: 777}}}}
	r.disk[4<<10].Add(int64(250*time.Microsecond), 60)
	r.conclude()
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"4 KiB: p50 25", "(60 samples)", "bare loop, everysec", "0.90", "  -  ", "777", "always / memory, 64×16", "0.80  pass   CreateProcess 0.80  RecordUsage 0.80", "p99.9 µs"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
	name := filepath.Join(t.TempDir(), "out.json")
	if err := goal.WriteJSON(name, r); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	var back report
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if err != nil || len(back.Cells) != len(r.Cells) || len(back.Cells[0].Rounds) != 2 || back.Latencies[0].During.P99 != 777 {
		t.Errorf("read back %d cells: %v", len(back.Cells), err)
	}
}
