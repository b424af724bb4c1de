package main

import (
	"slices"
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
	o := options{conns: 64, many: 1000, depth: 64}
	f := func(all []goal.Sample, want string) {
		t.Helper()
		var got []string
		for _, g := range goals(all, o) {
			got = append(got, g.ID+" "+string(g.Verdict))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("verdicts %s, want %s", s, want)
		}
	}
	f(nil, "G1 none, G2 none, G3 none, G4 none, G8 none")
	f(round(0, 200, 100, 400, 10000, 97, 100), "G1 moonshot, G2 moonshot, G3 moonshot, G4 moonshot, G8 none")
	f(round(0, 350, 100, 500, 8000, 90, 100), "G1 pass, G2 pass, G3 pass, G4 pass, G8 none")
	f(round(0, 351, 100, 460, 7000, 89, 100), "G1 MISS, G2 MISS, G3 MISS, G4 MISS, G8 none")
	// The ratio is taken within a round, so one slow round of everything changes nothing.
	slow := append(round(0, 200, 100, 400, 10000, 97, 100), round(1, 2000, 1000, 4000, 100000, 9.7, 10)...)
	f(append(slow, round(2, 200, 100, 400, 10000, 97, 100)...), "G1 moonshot, G2 moonshot, G3 moonshot, G4 moonshot, G8 none")
	// A goal is as good as its worst member.
	one := round(0, 200, 100, 400, 10000, 97, 100)
	for i := range one {
		if one[i].Cell == cell(trunkline, "CheckQuota", 64, 64) {
			one[i].CPU = 400
		}
		if one[i].Cell == cell(trunkline, "GetProcess", 1000, 1) {
			one[i].PerSec = 50
		}
	}
	f(one, "G1 MISS, G2 MISS, G3 pass, G4 MISS, G8 none")
	for _, g := range goals(one, o) {
		if worst := g.Members[map[string]string{"G1": "CheckQuota", "G2": "CheckQuota", "G4": "1000 connections"}[g.ID]]; worst != 0 && worst != g.Measured {
			t.Errorf("%s is evaluated by %v, not by its worst member %v", g.ID, g.Measured, worst)
		}
	}
}

func TestEvaluateLatency(t *testing.T) {
	o := options{conns: 64, many: 1000, depth: 64}
	f := func(ours, bare float64, verdict goal.Verdict) {
		t.Helper()
		all := []goal.Sample{{Cell: deep(trunkline, evaluated, o), PerSec: 4000}, {Cell: deep(baregnet, evaluated, o), PerSec: 9000},
			{Cell: deep(trunkline, paced, o), P99: ours}, {Cell: deep(baregnet, paced, o), P99: bare}}
		g := latencyGoal(all, o)
		if g.Evaluate(); g.Verdict != verdict || !strings.Contains(g.What, "at 2000 requests/s: half of what trunkline answers at 64×64") {
			t.Errorf("%+v, want %s", g, verdict)
		}
	}
	f(120, 100, goal.Moonshot)
	f(150, 100, goal.Pass)
	f(151, 100, goal.Miss)
	all := []goal.Sample{{Cell: deep(trunkline, evaluated, o), PerSec: 4000}, {Cell: deep(baregnet, evaluated, o), PerSec: 1000}}
	if g := latencyGoal(all, o); halfLoad(all, o) != 500 || !strings.Contains(g.What, "half of what baregnet") {
		t.Errorf("%v requests/s, %+v", halfLoad(all, o), g)
	}
	if halfLoad(all[:1], o) != 0 {
		t.Error("half of a load that was not measured")
	}
}

func TestEvaluateTheGivenServer(t *testing.T) {
	o := options{conns: 64, many: 1000, depth: 64, peer: "127.0.0.1:1"}
	f := func(want goal.Verdict, measured float64, samples ...goal.Sample) {
		t.Helper()
		evaluated := goals(append(round(0, 200, 100, 400, 10000, 97, 100), samples...), o)
		if g := evaluated[len(evaluated)-1]; g.ID != "G11" || g.Verdict != want || g.Measured != measured {
			t.Errorf("%+v, want G11 %s with %v", g, want, measured)
		}
	}
	f(goal.None, 0)
	fast := goal.Sample{Cell: cell(given, evaluated, 64, 64), PerSec: 0.05}
	f(goal.Pass, 20, fast)
	f(goal.Pass, 20, fast, goal.Sample{Cell: cell(given, evaluated, 64, 1), PerSec: 1000}) // of another depth
	f(goal.Miss, 2, fast, goal.Sample{Cell: cell(given, evaluated, 1, 64), PerSec: 50}, goal.Sample{Cell: cell(trunkline, evaluated, 1, 64), PerSec: 100})
}

func TestGetPeer(t *testing.T) {
	all := []goal.Sample{{Cell: cell(redcon, get, 64, 64)}}
	if getPeer(nil) != redcon || getPeer(all) != redcon || getPeer(append(all, goal.Sample{Cell: cell(redis, get, 64, 64)})) != redis {
		t.Error("G2 is evaluated against another server than redis, or redcon without it")
	}
}

func TestReport(t *testing.T) {
	o := options{conns: 64, many: 1000, depth: 64, rounds: 2, gridRounds: 1, peer: "127.0.0.1:1"}
	all := append(round(0, 200, 100, 400, 10000, 97, 100), round(1, 300, 100, 400, 10000, 97, 100)...)
	all[1].Peak = 5 << 20
	all = append(all, goal.Sample{Cell: cell(trunkline, paced, 64, 64), P99: 1}, goal.Sample{Cell: cell(baregnet, evaluated, 1, 1), P99: 1})
	r := reportOf(all, []string{"cannot measure something"}, o)
	if len(r.Cells) != 16 || r.Cells[0].Conns != 1 || r.Cells[15].Method != paced || len(r.Cells[1].Rounds) != 2 {
		t.Errorf("%d cells, by size %+v", len(r.Cells), r.Cells)
	}
	if i := slices.IndexFunc(r.Cells, func(s goal.Summary) bool { return s.Cell == all[1].Cell }); r.Cells[i].Median.Peak != 5<<20 {
		t.Errorf("%+v", r.Cells[i])
	}
	var text strings.Builder
	r.print(&text)
	for _, want := range []string{"peer: 127.0.0.1:1\ncannot measure something", "trunkline   TransitionState", "peak MiB", "0.250", "G1      2.500  moonshot  <= 3.50 (moonshot 2.50)  CPU per", ": CheckQuota 2.50, GetProcess 2.50"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, text.String())
		}
	}
}
