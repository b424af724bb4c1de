package main

import (
	"bytes"
	"strings"
	"testing"
)

// at returns samples of one cell, one for each round; figures are requests/s.
func at(c cell, figures ...float64) (all []sample) {
	for i, v := range figures {
		all = append(all, sample{Cell: c, Round: i, PerSec: v, CPU: 1e9 / v})
	}
	return all
}

func join(parts ...[]sample) (all []sample) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestJudge(t *testing.T) {
	f := func(what, verdict string, measured float64, all []sample) {
		t.Helper()
		for _, g := range judge(all) {
			if !strings.HasPrefix(g.What, what) {
				continue
			}
			if g.Verdict != verdict || g.Measured < measured-0.001 || g.Measured > measured+0.001 {
				t.Errorf("%s, want %s with %.3f", g.String(), verdict, measured)
			}
			return
		}
		t.Errorf("no goal begins with %q", what)
	}
	const tcp, pipes, scan, worker, start = "pipelined over TCP", "pipelined over pipes", "field scan / lib", kept, "start and"
	for _, what := range []string{tcp, pipes, scan, worker, start, "field scan / sonic"} {
		f(what, none, 0, nil)
	}
	over := func(server, kind, via string, conns int) cell { return cell{server, kind, via, conns, 64} }
	a, b := over(trunkline, noop, partTCP, 1), over(echo, noop, partTCP, 1)
	f(tcp, pass, 0.5, join(at(a, 50, 50, 50), at(b, 100, 100, 100)))
	f(tcp, miss, 0.49, join(at(a, 49, 49, 49), at(b, 100, 100, 100)))
	f(tcp, pass, 0.6, join(at(a, 10, 60, 900), at(b, 100, 100, 1000)))     // 0.1, 0.6, 0.9: the median of ratios, not of figures
	f(tcp, none, 0, at(a, 10, 60))                                         // nothing to compare with
	f(tcp, none, 0, join(at(a, 10), at(over(echo, noop, partTCP, 2), 10))) // of another size
	c, d := over(trunkline, hit, partTCP, 64), over(echo, hit, partTCP, 64)
	f(tcp, miss, 0.2, join(at(a, 90), at(b, 100), at(c, 20), at(d, 100))) // as good as its worst member
	f(pipes, none, 0, join(at(a, 90), at(b, 100)))
	f(pipes, pass, 0.7, join(at(over(trunkline, slot, partPipes, 1), 7), at(over(constant, slot, partPipes, 1), 10)))

	ours, checks, free := scanCell(trunkline, "line"), scanCell("fastjson", "line"), scanCell(unchecked, "line")
	all := join(at(ours, 30, 30), at(checks, 20, 20), at(free, 40, 40))
	f(scan, pass, 1.5, all)
	f("field scan / sonic", told, 0.75, all)
	f(scan, miss, 1.4, join(at(ours, 28), at(checks, 20)))

	stays, goes := cell{trunkline, kept, partTCP, 1, 1}, cell{trunkline, perCall, partTCP, 1, 1}
	f(worker, pass, 50, join(at(stays, 5000), at(goes, 100)))
	f(worker, miss, 49, join(at(stays, 4900), at(goes, 100)))
	f(tcp, none, 0, join(at(stays, 5000), at(goes, 100)))
	f(start, told, 0.25, join(at(cell{trunkline, oneShot, "processes", 1, 1}, 25), at(cell{small, oneShot, "processes", 1, 1}, 100)))
}

func TestGoalSaysBothRatios(t *testing.T) {
	c := cell{trunkline, noop, partTCP, 64, 64}
	p := c
	p.Server = echo
	all := join(at(c, 60), at(p, 100))
	all[0].CPU, all[1].CPU = 400, 100
	for _, g := range judge(all) {
		if strings.HasPrefix(g.What, "pipelined over TCP") {
			if s := g.String(); !strings.Contains(s, ">= 0.5     0.60  pass  noop 64×64 0.60 (CPU 0.25)") {
				t.Error(s)
			}
		}
	}
}

func TestQuantiles(t *testing.T) {
	f := func(q, want float64, v ...float64) {
		t.Helper()
		if got := quantile(v, q); got != want {
			t.Errorf("quantile %v of %v is %v, want %v", q, v, got, want)
		}
	}
	f(0.99, 0)
	f(0.99, 3, 3)
	f(0.5, 2, 4, 1, 3, 2)
	f(0, 1, 4, 1, 3, 2)
	f(1, 4, 4, 1, 3, 2)
	f(0.75, 3, 4, 1, 3, 2)
	m := func(want float64, v ...float64) {
		t.Helper()
		if got := median(v); got != want {
			t.Errorf("the median of %v is %v, want %v", v, got, want)
		}
	}
	m(0)
	m(2, 3, 1, 2)
	m(2.5, 4, 1, 3, 2)
}

func TestReport(t *testing.T) {
	c := cell{trunkline, noop, partTCP, 1, 64}
	all := join(at(c, 10, 30, 20), at(scanCell(trunkline, "plain300"), 1e9/180))
	r := report{Machine: thisMachine(), Cells: summarize(all), Goals: judge(all)}
	if len(r.Cells) != 2 || r.Cells[0].Median.PerSec != 20 || len(r.Cells[0].Rounds) != 3 {
		t.Fatalf("%+v", r.Cells)
	}
	var out bytes.Buffer
	r.print(&out)
	for _, part := range []string{"CPUs, linux/", "requests/s", "plain300", "180.0", "none"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in the report:\n%s", part, out.String())
		}
	}
}
