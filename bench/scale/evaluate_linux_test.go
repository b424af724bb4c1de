package main

import (
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// round makes a sample of each method for tables of two sizes, whose costs are in nanoseconds.
func round(n int, small, large float64) (all []goal.Sample) {
	for _, m := range rowMethods() {
		all = append(all, goal.Sample{Cell: rowCell("10k rows", m), Round: n, CPU: small}, goal.Sample{Cell: rowCell("10M rows", m), Round: n, CPU: large})
	}
	return all
}

func verdicts(r *report) string {
	var all []string
	for _, g := range r.Goals {
		all = append(all, g.ID+" "+string(g.Verdict))
	}
	return strings.Join(all, ", ")
}

func TestRowsAreEvaluated(t *testing.T) {
	f := func(want string, memory float64, samples ...goal.Sample) {
		t.Helper()
		r := newReport(options{})
		r.rows([]*filled{{rows: 10_000, create: 3, memory: 9000}, {rows: 10_000_000, create: 4, memory: memory}}, samples)
		if got := verdicts(r); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if len(r.Charts) != 2 || len(r.Charts[0].Lines) != len(rowMethods())+1 || len(r.Charts[1].Lines[0].Points) != 2 {
			t.Errorf("charts %+v", r.Charts)
		}
	}
	f("G5 moonshot, G10 moonshot", 256, round(0, 400, 600)...)
	f("G5 pass, G10 pass", 257, round(0, 400, 800)...)
	f("G5 MISS, G10 MISS", 401, round(0, 400, 801)...)
	// Growth is taken within a round, so a round in which everything is slow changes nothing.
	f("G5 pass, G10 pass", 300, append(append(round(0, 400, 700), round(1, 4000, 7000)...), round(2, 400, 700)...)...)
	one := round(0, 400, 400)
	one[len(one)-1].CPU = 900
	f("G5 MISS, G10 pass", 300, one...)
}

func TestSmallTablesAreNotEvaluatedForMemory(t *testing.T) {
	r := newReport(options{})
	r.rows([]*filled{{rows: 10_000, memory: 900}, {rows: 100_000, memory: 300}}, nil)
	if g := r.Goals[1]; g.Measured != 300 || len(g.Members) != 1 {
		t.Errorf("%+v, want the largest table alone", g)
	}
}

func TestIdleConnectionsAreEvaluated(t *testing.T) {
	f := func(want string, measured float64, each ...[]float64) {
		t.Helper()
		r := newReport(options{})
		r.idle([]int{1000, 10_000}[:len(each)], each)
		if got := verdicts(r); got != want || r.Goals[0].Measured != measured || len(r.Charts[0].Lines[0].Points) != len(each) {
			t.Errorf("%s with %v, want %s with %v", got, r.Goals[0].Measured, want, measured)
		}
	}
	f("G10 moonshot", 2048, []float64{2048})
	f("G10 pass", 4096, []float64{1, 4096, 9000})
	f("G10 pass", 3000, []float64{3000}, []float64{100}) // the worst size counts
	f("G10 MISS", 4097, []float64{100}, []float64{4097})
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.1234: "0.123", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 123456: "123456"} {
		if got := figure(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}

func TestMedianOfACell(t *testing.T) {
	all := append(round(0, 100, 9), append(round(1, 300, 9), round(2, 200, 9)...)...)
	if got := median(all, rowCell("10k rows", "GetProcess"), micros); got != 0.2 {
		t.Errorf("median %v µs, want 0.2", got)
	}
	if got := median(all, rowCell("10k rows", "Nothing"), micros); got != 0 {
		t.Errorf("median %v of nothing", got)
	}
}

func TestCollectionsAreEvaluated(t *testing.T) {
	f := func(want string, all ...collected) {
		t.Helper()
		r := newReport(options{})
		r.collector(1_000_000, all, 7)
		if got := verdicts(r); got != want || len(r.Tables[0].Rows) != len(all)+1 {
			t.Errorf("%s, want %s; %+v", got, want, r.Tables)
		}
	}
	f("G7 none, G7 none", collected{name: "hot"})
	f("G7 moonshot, G7 moonshot", collected{name: "mixed", pause: 0.3, share: 0.005})
	f("G7 pass, G7 pass", collected{name: "mixed", pause: 1, share: 0.02})
	f("G7 MISS, G7 MISS", collected{name: "hot", pause: 0.1}, collected{name: "mixed", pause: 1.1, share: 0.021})
	// How often collections are forced is no property of the server; how long they stop it is.
	f("G7 MISS, G7 moonshot", collected{name: "mixed", pause: 0.1, share: 0.004}, collected{name: "hot, forced", pause: 2, share: 0.5})
}

func TestFanoutIsEvaluated(t *testing.T) {
	f := func(want goal.Verdict, sizes []int, cpu float64) {
		t.Helper()
		var samples []goal.Sample
		for _, n := range sizes {
			samples = append(samples, goal.Sample{Cell: fanCell(n, depth), CPU: cpu, PerSec: 1}, goal.Sample{Cell: fanCell(n, 1), CPU: 9000})
		}
		r := newReport(options{})
		r.fanout(sizes, samples, make([]lostEvents, 2*len(sizes)))
		if g := r.Goals[0]; g.ID != "G9" || g.Verdict != want {
			t.Errorf("%+v, want %s", g, want)
		}
		if len(r.Charts[0].Lines) != 2 || len(r.Tables[0].Rows) != 2*len(sizes) {
			t.Errorf("%+v, %+v", r.Charts, r.Tables)
		}
	}
	f(goal.Moonshot, []int{1, 10, 100}, 250)
	f(goal.Pass, []int{1, 10, 100}, 500)
	f(goal.Miss, []int{100, 1000}, 501)
	f(goal.None, []int{1, 10}, 100)
}

func TestLostEvents(t *testing.T) {
	const dropped, published = "trunkline_bus_events_dropped_total", "trunkline_bus_events_published_total"
	var l lostEvents
	if l.share() != 0 {
		t.Errorf("nothing was published and %v of it lost", l.share())
	}
	l.add(map[string]float64{dropped: 5, published: 100}, map[string]float64{dropped: 5, published: 110}, 10)
	l.add(map[string]float64{dropped: 5, published: 110}, map[string]float64{dropped: 25, published: 120}, 10)
	if l.share() != 0.1 {
		t.Errorf("share %v, want 20 of 200", l.share())
	}
}

func TestPayloadCharts(t *testing.T) {
	var samples []goal.Sample
	for _, c := range carriers() {
		samples = append(samples, goal.Sample{Cell: payloadCell(c.name, 100), CPU: 1000}, goal.Sample{Cell: payloadCell(c.name, 4096), CPU: 8000})
	}
	r := newReport(options{})
	r.payload([]int{100, 4096}, samples)
	each, kib := r.Charts[0].Lines, r.Charts[1].Lines
	if len(each) != 3 || len(each[0].Points) != 2 || each[0].Points[1].Y != 8 || len(kib[2].Points) != 1 || kib[2].Points[0] != (goal.Point{X: 4096, Y: 2}) {
		t.Errorf("%+v and %+v", each, kib)
	}
}

func TestTuningTable(t *testing.T) {
	var samples []goal.Sample
	for i, v := range variants() {
		for _, m := range tuningLoads() {
			samples = append(samples, goal.Sample{Cell: rowCell(v.name, m), CPU: 500 * float64(1+i), PerSec: 1000, RSS: 1 << 20})
		}
	}
	r := newReport(options{})
	r.tuning(1000, samples)
	rows := r.Tables[0].Rows
	if len(rows) != len(variants())*len(tuningLoads()) || rows[0][0] != defaultName || rows[0][3] != "1.00" || rows[1][3] != "2.00" || rows[1][5] != "1.00" {
		t.Errorf("%q", rows)
	}
}

func TestReportIsPrinted(t *testing.T) {
	r := newReport(options{rounds: 3, loops: 1})
	var c goal.Chart
	c.Title, c.X, c.Y = "What grows", "rows", "µs"
	c.Add("get", 10, 0.1234)
	c.Add("get", 100, 12.34)
	c.Add("put", 100, 1234)
	r.Charts = append(r.Charts, c)
	r.Tables = append(r.Tables, grid{Title: "A table", Head: []string{"a", "b"}, Rows: [][]string{{"1", "2"}}})
	g := goal.Goal{ID: "G5", What: "growth", Must: 2, Moonshot: 1.5}
	g.Add("get", 1.6)
	r.evaluate(g)
	var out strings.Builder
	r.print(&out)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"3 rounds", "What grows (µs) rows get put 10 0.123 - 100 12.3 1234", "A table a b 1 2", "G5 1.600 pass <= 2 (moonshot 1.5) growth: get 1.60"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nlacks %q", out.String(), want)
		}
	}
	if r.Machine.CPUs == 0 || r.Settings != (load.Settings{Rounds: 3, Loops: 1, Workers: 1, Spin: true}) {
		t.Errorf("%+v, %+v", r.Machine, r.Settings)
	}
}
