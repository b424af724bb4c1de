package main

import (
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
)

// round builds the samples of one round: CPU of trunkline, baregnet, GET and gRPC, and requests/s at depth 1.
func round(n int, trunk, bare, get, grpc, trunkRate, bareRate float64) []goal.Sample {
	var out []goal.Sample
	add := func(server, method string, conns, depth int, cpu, rate float64) {
		out = append(out, goal.Sample{Cell: cell(server, method, conns, depth), Round: n, CPU: cpu, PerSec: rate})
	}
	add("redis", "GET", 64, 64, get, 1)
	add(grpcgo, "unary", 64, 64, grpc, 1)
	for _, m := range methods {
		add(trunkline, m, 64, 64, trunk, 1)
		add(baregnet, m, 64, 64, bare, 1)
	}
	for _, conns := range []int{64, manyConns} {
		add(trunkline, "GetProcess", conns, 1, 1, trunkRate)
		add(baregnet, "GetProcess", conns, 1, 1, bareRate)
	}
	return out
}

func TestJudge(t *testing.T) {
	o := options{conns: 64, depth: 64}
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
	f(nil, "G1 none, G2 none, G3 none, G4 none")
	f(round(0, 200, 100, 400, 10000, 97, 100), "G1 moonshot, G2 moonshot, G3 moonshot, G4 moonshot")
	f(round(0, 350, 100, 500, 8000, 90, 100), "G1 pass, G2 pass, G3 pass, G4 pass")
	f(round(0, 351, 100, 460, 7000, 89, 100), "G1 MISS, G2 MISS, G3 MISS, G4 MISS")
	// The ratio is taken within a round, so one slow round of everything changes nothing.
	slow := append(round(0, 200, 100, 400, 10000, 97, 100), round(1, 2000, 1000, 4000, 100000, 9.7, 10)...)
	f(append(slow, round(2, 200, 100, 400, 10000, 97, 100)...), "G1 moonshot, G2 moonshot, G3 moonshot, G4 moonshot")
	// A goal is as good as its worst member.
	one := round(0, 200, 100, 400, 10000, 97, 100)
	for i := range one {
		if one[i].Cell == cell(trunkline, "CheckQuota", 64, 64) {
			one[i].CPU = 400
		}
		if one[i].Cell == cell(trunkline, "GetProcess", manyConns, 1) {
			one[i].PerSec = 50
		}
	}
	f(one, "G1 MISS, G2 MISS, G3 pass, G4 MISS")
	for _, g := range goals(one, o) {
		if worst := g.Members[map[string]string{"G1": "CheckQuota", "G2": "CheckQuota", "G4": "1000 connections"}[g.ID]]; worst != 0 && worst != g.Measured {
			t.Errorf("%s is judged by %v, not by its worst member %v", g.ID, g.Measured, worst)
		}
	}
}

func TestJudgeTheOtherServer(t *testing.T) {
	o := options{conns: 64, depth: 64, also: "127.0.0.1:1"}
	all := append(round(0, 200, 100, 400, 10000, 97, 100), goal.Sample{Cell: cell(also, "GetProcess", 64, 64), PerSec: 0.05})
	judged := goals(all, o)
	if g := judged[len(judged)-1]; g.ID != "G11" || g.Verdict != "pass" || g.Measured != 20 {
		t.Errorf("%+v, want G11 passed with 20", g)
	}
}

func TestReport(t *testing.T) {
	o := options{conns: 64, depth: 64, rounds: 2}
	all := append(round(0, 200, 100, 400, 10000, 97, 100), round(1, 300, 100, 400, 10000, 97, 100)...)
	all[1].Peak = 5 << 20
	r := reportOf(all, o)
	if len(r.Cells) != 14 || len(r.Cells[0].Rounds) != 2 || r.Cells[1].Median.Peak != 5<<20 {
		t.Errorf("%d cells, first with %d rounds", len(r.Cells), len(r.Cells[0].Rounds))
	}
	var text strings.Builder
	r.print(&text)
	for _, want := range []string{"trunkline  TransitionState", "peak MiB", "0.250", "G1      2.500  moonshot  <= 3.50 (moonshot 2.50)  CPU per", ": CheckQuota 2.50, GetProcess 2.50"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, text.String())
		}
	}
}
