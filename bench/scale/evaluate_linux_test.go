package scale

import (
	"math"
	"slices"
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/part"
)

func verdicts(r *part.Report) string {
	var all []string
	for _, g := range r.Goals {
		all = append(all, g.ID+" "+string(g.Verdict))
	}
	return strings.Join(all, ", ")
}

func TestRowsAreEvaluated(t *testing.T) {
	small, large := &server{way: way{name: "10k rows", rows: 10_000}, memory: 9000}, &server{way: way{name: "10M rows", rows: 10_000_000}}
	round := func(n int, a, b float64) (all []goal.Sample) {
		for _, m := range rowMethods() {
			all = append(all, goal.Sample{Cell: small.cell(m), Round: n, CPU: a}, goal.Sample{Cell: large.cell(m), Round: n, CPU: b})
		}
		return all
	}
	f := func(want string, memory float64, samples ...goal.Sample) {
		t.Helper()
		large.memory = memory
		r := &part.Report{Samples: samples}
		growth(r, []*server{small, large})
		if got := verdicts(r); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if len(r.Charts) != 2 || len(r.Charts[0].Lines) != len(rowMethods())+1 || len(r.Charts[1].Lines[0].Points) != 2 {
			t.Errorf("charts %+v", r.Charts)
		}
	}
	f("G5 moonshot, G10 moonshot", 256, round(0, 400, 600)...)
	f("G5 pass, G10 pass", 257, round(0, 400, 720)...)
	f("G5 MISS, G10 MISS", 381, round(0, 400, 721)...)
	// Growth is taken within a round, so a round in which everything is slow changes nothing.
	f("G5 pass, G10 pass", 300, append(append(round(0, 400, 700), round(1, 4000, 7000)...), round(2, 400, 700)...)...)
	one := round(0, 400, 400)
	one[len(one)-1].CPU = 900
	f("G5 MISS, G10 pass", 300, one...)
}

func TestSmallTablesAreNotEvaluatedForMemory(t *testing.T) {
	r := new(part.Report)
	growth(r, []*server{{way: way{name: "a", rows: 10_000}, memory: 900}, {way: way{name: "b", rows: 100_000}, memory: 300}})
	if g := r.Goals[1]; g.Measured != 300 || len(g.Members) != 1 {
		t.Errorf("%+v, want the largest table alone", g)
	}
}

func TestTraceIsRead(t *testing.T) {
	f := func(want collections, lines ...string) {
		t.Helper()
		var all trace
		for _, line := range lines {
			all.line(line)
		}
		if c := all.take(); c.cycles != want.cycles || c.pause != want.pause || math.Abs(c.cpu-want.cpu) > 1e-9 {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
	const (
		seven = "gc 7 @2.104s 0%: 0.018+1.3+0.002 ms clock, 0.037+0.33/1.2/0.5+0.004 ms cpu, 4->4->2 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P"
		eight = "gc 8 @2.5s 1%: 0.01+2+0.25 ms clock, 1+2/3/4+5 ms cpu, 4->4->2 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)"
	)
	f(collections{1, 0.018, 2.071}, "12:00:00 INF serving", seven)
	f(collections{2, 0.25, 17.071}, seven, eight, "scvg: 8 MB released")
	f(collections{}, "gc 9 @2s", "gc x @1s 0%", "")
}

func TestCollectionsAreEvaluated(t *testing.T) {
	s := &server{way: way{name: "x"}}
	// Each load used 1000 ms of CPU time.
	f := func(want string, names []string, found ...collections) {
		t.Helper()
		r, in := &part.Report{Samples: []goal.Sample{{Cell: s.cell("another section"), CPU: 1}}}, map[goal.Cell]collections{}
		for i, name := range names {
			in[s.cell(name)] = found[i]
			r.Samples = append(r.Samples, goal.Sample{Cell: s.cell(name), Requests: 1000, CPU: 1e6})
		}
		pauses(r, 1_000_000, in, 7)
		if got := verdicts(r); got != want || len(r.Tables[0].Rows) != len(names)+1 {
			t.Errorf("%s, want %s; %+v", got, want, r.Tables)
		}
	}
	f("G7 none, G7 none", []string{"hot"}, collections{})
	f("G7 moonshot, G7 moonshot", []string{"mixed"}, collections{pause: 0.1, cpu: 5})
	f("G7 pass, G7 pass", []string{"mixed"}, collections{pause: 0.3, cpu: 10})
	f("G7 MISS, G7 MISS", []string{"hot", "mixed"}, collections{pause: 0.1}, collections{pause: 0.31, cpu: 10.1})
	// How often collections are forced is no property of the server; how long they stop it is.
	f("G7 MISS, G7 moonshot", []string{"mixed", forced}, collections{pause: 0.1, cpu: 4}, collections{pause: 2, cpu: 500})
}

func TestSizes(t *testing.T) {
	f := func(got []int, want ...int) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	f(tens(10_000, 10_000_000), 10_000, 100_000, 1_000_000, 10_000_000)
	f(tens(64, 640), 64, 640)
	f(tens(1, 1), 1)
	f(tens(1, 500), 5, 50, 500)
	for n, want := range map[int]string{640: "640", 1000: "1k", 1500: "1500", 10_000: "10k", 1_000_000: "1M", 1_500_000: "1500k"} {
		if got := count(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
}
