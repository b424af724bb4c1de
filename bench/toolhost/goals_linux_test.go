package main

import (
	"bytes"
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
)

// at returns samples of one cell, one for each round; figures are requests/s.
func at(c goal.Cell, figures ...float64) (all []goal.Sample) {
	for i, v := range figures {
		all = append(all, goal.Sample{Cell: c, Round: i, PerSec: v, CPU: 1e9 / v})
	}
	return all
}

func join(parts ...[]goal.Sample) (all []goal.Sample) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestEvaluate(t *testing.T) {
	f := func(what string, verdict goal.Verdict, measured float64, all []goal.Sample) {
		t.Helper()
		for _, g := range goals(all) {
			if g.What != what {
				continue
			}
			if g.Verdict != verdict || g.Measured < measured-0.001 || g.Measured > measured+0.001 {
				t.Errorf("%s, want %s with %.3f", line(&g), verdict, measured)
			}
			return
		}
		t.Errorf("no goal is %q", what)
	}
	const tcp, pipes, start = "pipelined over TCP / echo", "pipelined over pipes / constant replies", "start and answer / small program"
	const worker, least = keptPy + " / " + perCallPy, kept + " / " + perCall + ", smallest program"
	const scan, freely = "field scan / libraries that check the line", "field scan / " + unchecked + ", which does not"
	for _, what := range []string{tcp, tcp + ", hit", tcp + ", slot", pipes, pipes + ", hit", pipes + ", slot", scan, freely, worker, least, start} {
		f(what, goal.None, 0, nil)
	}
	over := func(server, kind, via string, conns int) goal.Cell { return cell(server, kind, via, conns, 64) }
	a, b := over(trunkline, noop, partTCP, 1), over(echo, noop, partTCP, 1)
	f(tcp, goal.Pass, 0.5, join(at(a, 50, 50, 50), at(b, 100, 100, 100)))
	f(tcp, goal.Miss, 0.49, join(at(a, 49, 49, 49), at(b, 100, 100, 100)))
	f(tcp, goal.Pass, 0.6, join(at(a, 10, 60, 900), at(b, 100, 100, 1000)))     // 0.1, 0.6, 0.9: the median of ratios, not of figures
	f(tcp, goal.None, 0, at(a, 10, 60))                                         // nothing to compare with
	f(tcp, goal.None, 0, join(at(a, 10), at(over(echo, noop, partTCP, 2), 10))) // of another size
	c, d := over(trunkline, noop, partTCP, 64), over(echo, noop, partTCP, 64)
	f(tcp, goal.Miss, 0.2, join(at(a, 90), at(b, 100), at(c, 20), at(d, 100))) // as good as its worst member
	f(pipes, goal.None, 0, join(at(a, 90), at(b, 100)))
	f(pipes, goal.Pass, 0.7, join(at(over(trunkline, noop, partPipes, 1), 7), at(over(constant, noop, partPipes, 1), 10)))

	// The goals are about the trivial tool: what the other kinds reach is reported beside it and
	// moves no verdict.
	for _, kind := range []string{hit, slot} {
		all := join(at(a, 50), at(b, 100), at(over(trunkline, kind, partTCP, 1), 30), at(over(echo, kind, partTCP, 1), 100),
			at(over(trunkline, kind, partPipes, 1), 4), at(over(constant, kind, partPipes, 1), 10))
		f(tcp, goal.Pass, 0.5, all)
		f(tcp+", "+kind, goal.Reported, 0.3, all)
		f(pipes, goal.None, 0, all)
		f(pipes+", "+kind, goal.Reported, 0.4, all)
		if goal.Missed(goals(all)) {
			t.Errorf("%s was evaluated", kind)
		}
	}

	ours, checks, free := scanCell(trunkline, "line"), scanCell("fastjson", "line"), scanCell(unchecked, "line")
	all := join(at(ours, 30, 30), at(checks, 20, 20), at(free, 40, 40))
	f(scan, goal.Pass, 1.5, all)
	f(freely, goal.Reported, 0.75, all)
	f(scan, goal.Miss, 1.4, join(at(ours, 28), at(checks, 20)))

	stays, goes := cell(trunkline, kept, partTCP, 1, 1), cell(trunkline, perCall, partTCP, 1, 1)
	f(least, goal.Reported, 49, join(at(stays, 4900), at(goes, 100)))
	f(worker, goal.None, 0, join(at(stays, 4900), at(goes, 100)))
	stays, goes = cell(trunkline, keptPy, partTCP, 1, 1), cell(trunkline, perCallPy, partTCP, 1, 1)
	f(worker, goal.Pass, 50, join(at(stays, 5000), at(goes, 100)))
	f(worker, goal.Miss, 49, join(at(stays, 4900), at(goes, 100)))
	f(tcp, goal.None, 0, join(at(stays, 5000), at(goes, 100)))
	f(start, goal.Reported, 0.25, join(at(cell(trunkline, oneShot, "processes", 1, 1), 25), at(cell(small, oneShot, "processes", 1, 1), 100)))
}

func TestGoalSaysBothRatios(t *testing.T) {
	c := cell(trunkline, noop, partTCP, 64, 64)
	p := c
	p.Server = echo
	all := join(at(c, 60), at(p, 100))
	all[0].CPU, all[1].CPU = 400, 100
	for _, g := range goals(all) {
		if g.What == "pipelined over TCP / echo" {
			if s := line(&g); !strings.Contains(s, ">= 0.5     0.60  pass  noop 64×64 0.60 (CPU 0.25)") {
				t.Error(s)
			}
		}
	}
}

func TestReport(t *testing.T) {
	c := cell(trunkline, noop, partTCP, 1, 64)
	all := join(at(c, 10, 30, 20), at(scanCell(trunkline, "plain300"), 1e9/180))
	r := reportOf(all, options{})
	if len(r.Cells) != 2 || r.Cells[0].Median.PerSec != 20 || len(r.Cells[0].Rounds) != 3 {
		t.Fatalf("%+v", r.Cells)
	}
	var out bytes.Buffer
	r.print(&out)
	for _, part := range []string{"CPUs, linux/", "kind", "via", "requests/s", "plain300", "180.0", "none"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in the report:\n%s", part, out.String())
		}
	}
}
