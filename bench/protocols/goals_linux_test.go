package protocols

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
)

// round builds the samples of one round: CPU of trunkline, baregnet, GET and gRPC, and requests/s
// at depth 1.
func round(n int, trunk, bare, getCPU, grpc, trunkRate, bareRate float64) []goal.Sample {
	var out []goal.Sample
	add := func(server, method string, conns, depth int, cpu, rate float64) {
		out = append(out, goal.Sample{Cell: cell(server, method, conns, depth), Round: n, CPU: cpu, PerSec: rate})
	}
	add(redis, get, 64, 64, getCPU, 1)
	add(grpcgo, unary, 64, 64, grpc, 1)
	for _, m := range methods {
		add(trunkline, m, 64, 64, trunk, 1)
		add(baregnet, m, 64, 64, bare, 1)
	}
	for _, conns := range []int{64, 1000} {
		add(trunkline, evaluated, conns, 1, 1, trunkRate)
		add(baregnet, evaluated, conns, 1, 1, bareRate)
	}
	return out
}

func TestEvaluate(t *testing.T) {
	f := func(all []goal.Sample, want string) *field {
		t.Helper()
		x := empty(t)
		x.Report.Samples = all
		x.goals()
		var got []string
		for _, g := range x.Report.Goals {
			got = append(got, g.ID+" "+string(g.Verdict))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("verdicts %s, want %s", s, want)
		}
		return x
	}
	// Each of the first three is of the methods that change no state, and of TransitionState.
	const best = "G1 moonshot, G1 moonshot, G2 moonshot, G2 moonshot, G3 moonshot, G3 moonshot, G4 moonshot, G8 none"
	f(nil, "G1 none, G1 none, G2 none, G2 none, G3 none, G3 none, G4 none, G8 none")
	f(round(0, 200, 100, 500, 10000, 100, 100), best)
	f(round(0, 250, 100, 500, 8400, 97, 100), "G1 pass, G1 pass, G2 pass, G2 pass, G3 pass, G3 pass, G4 pass, G8 none")
	f(round(0, 251, 100, 500, 8000, 96, 100), "G1 MISS, G1 pass, G2 MISS, G2 pass, G3 MISS, G3 MISS, G4 MISS, G8 none")
	f(round(0, 301, 100, 430, 20000, 97, 100), "G1 MISS, G1 MISS, G2 MISS, G2 pass, G3 moonshot, G3 moonshot, G4 pass, G8 none")
	// The ratio is taken within a round, so one slow round of everything changes nothing.
	slow := append(round(0, 200, 100, 500, 10000, 100, 100), round(1, 2000, 1000, 5000, 100000, 10, 10)...)
	f(append(slow, round(2, 200, 100, 500, 10000, 100, 100)...), best)
	// A goal is as good as its worst member.
	one := round(0, 200, 100, 500, 10000, 100, 100)
	for i := range one {
		if one[i].Cell == cell(trunkline, "CheckQuota", 64, 64) {
			one[i].CPU = 400
		}
		if one[i].Cell == cell(trunkline, evaluated, 1000, 1) {
			one[i].PerSec = 50
		}
	}
	x := f(one, "G1 MISS, G1 moonshot, G2 MISS, G2 moonshot, G3 MISS, G3 moonshot, G4 MISS, G8 none")
	if g := x.Report.Goals; g[0].Measured != 4 || g[0].Members["CheckQuota"] != 4 || g[6].Measured != 0.5 || g[6].Members["1000 connections"] != 0.5 {
		t.Errorf("%+v and %+v are not evaluated by their worst members", g[0], g[6])
	}
}

func TestEvaluateLatency(t *testing.T) {
	x := empty(t)
	f := func(ours, bare float64, verdict goal.Verdict) {
		t.Helper()
		x.Report.Samples = []goal.Sample{{Cell: x.deep(trunkline, evaluated), PerSec: 4000}, {Cell: x.deep(baregnet, evaluated), PerSec: 9000},
			{Cell: x.deep(trunkline, paced), P99: ours}, {Cell: x.deep(baregnet, paced), P99: bare}}
		g := x.latencyGoal()
		if g.Evaluate(); g.Verdict != verdict || !strings.Contains(g.What, "at 2000 requests/s: half of what the slower one answers at 64×64") {
			t.Errorf("%+v, want %s", g, verdict)
		}
	}
	f(100, 100, goal.Moonshot)
	f(120, 100, goal.Pass)
	f(121, 100, goal.Miss)
	if x.Report.Samples = x.Report.Samples[:1]; x.halfLoad() != 0 {
		t.Error("half of a load that was not measured")
	}
}

func TestEvaluateTheGivenServer(t *testing.T) {
	x := empty(t)
	x.Options.Peer = "127.0.0.1:1"
	f := func(want goal.Verdict, measured float64, samples ...goal.Sample) {
		t.Helper()
		x.Report.Samples = append(round(0, 200, 100, 500, 10000, 97, 100), samples...)
		x.goals()
		if g := x.Report.Goals[len(x.Report.Goals)-1]; g.ID != "G11" || g.Verdict != want || g.Measured != measured {
			t.Errorf("%+v, want %s with %v", g, want, measured)
		}
	}
	f(goal.None, 0)
	fast := goal.Sample{Cell: cell(given, evaluated, 64, 64), PerSec: 0.05}
	f(goal.Pass, 20, fast)
	f(goal.Pass, 20, fast, goal.Sample{Cell: cell(given, evaluated, 64, 1), PerSec: 1000}) // of another depth
	f(goal.Miss, 2, fast, goal.Sample{Cell: cell(given, evaluated, 1, 64), PerSec: 50}, goal.Sample{Cell: cell(trunkline, evaluated, 1, 64), PerSec: 100})
}

func TestGetPeer(t *testing.T) {
	x := empty(t)
	x.Report.Samples = []goal.Sample{{Cell: x.deep(redcon, get), CPU: 1}}
	before := x.getPeer()
	x.Report.Samples = append(x.Report.Samples, goal.Sample{Cell: x.deep(redis, get), CPU: 1})
	if before != redcon || x.getPeer() != redis {
		t.Error("G2 is evaluated against another server than redis, or redcon without it")
	}
}

func TestCharts(t *testing.T) {
	x := empty(t)
	x.entrants = []entrant{{name: grpcgo, method: unary}, {name: baregnet, method: evaluated}, {name: given, method: evaluated}}
	add := func(server, method string, conns, depth int, micros float64) {
		x.Report.Samples = append(x.Report.Samples, goal.Sample{Cell: cell(server, method, conns, depth), CPU: micros * 1e3})
	}
	// The hot cells come first in a run; a chart's points are in order.
	add(baregnet, evaluated, 64, 64, 0.25)
	add(baregnet, paced, 64, 64, 99)
	add(baregnet, "RecordUsage", 64, 64, 99)
	if x.charts(); len(x.Report.Charts) != 0 {
		t.Errorf("charts without the grid: %+v", x.Report.Charts)
	}
	for _, at := range x.sizes() {
		if at != [2]int{64, 64} {
			add(baregnet, evaluated, at[0], at[1], float64(at[0])/float64(at[1]))
		}
		add(grpcgo, unary, at[0], at[1], 10+float64(at[1]))
		add(given, evaluated, at[0], at[1], 0) // its CPU time is unknown
	}
	x.sortCells()
	x.charts()
	var got []string
	for _, c := range x.Report.Charts {
		got = append(got, fmt.Sprint(c.Name, ", ", c.Title, " ", c.Lines))
	}
	want := []string{
		"peers-depth, Server CPU per request as depth grows, at 64 connections [{grpc-go [{1 11} {16 26} {64 74}]} {baregnet [{1 64} {16 4} {64 0.25}]}]",
		"peers-connections-depth-1, Server CPU per request as connections grow, 1 in flight on each [{grpc-go [{1 11} {64 11} {1000 11}]} {baregnet [{1 1} {64 64} {1000 1000}]}]",
		"peers-connections-depth-64, Server CPU per request as connections grow, 64 in flight on each [{grpc-go [{1 74} {64 74} {1000 74}]} {baregnet [{1 0.015625} {64 0.25} {1000 15.625}]}]",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("charts\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
