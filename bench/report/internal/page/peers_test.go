package page

import (
	"slices"
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
	"trunkline/bench/report/internal/figures"
)

// summary is a cell with two rounds of that CPU time, in nanoseconds.
func summary(server, method string, conns, depth int, cpu ...float64) goal.Summary {
	c := goal.Cell{Server: server, Method: method, Conns: conns, Depth: depth}
	var all []goal.Sample
	for i, v := range cpu {
		all = append(all, goal.Sample{Cell: c, Round: i, CPU: v, PerSec: 1e9 / max(v, 1)})
	}
	return goal.Summarize(all)[0]
}

func TestSplit(t *testing.T) {
	cells := []goal.Summary{
		summary("a", "get", 64, 1, 1), summary("a", "set", 64, 64, 1), summary("a", "get", 64, 64, 1), summary("b", "GET", 64, 1, 1),
		summary("a", "get", 1, 16, 1), summary("b", "GET", 1, 1, 1), summary("a", "get paced", 64, 64, 1), summary("b", "GET", 64, 64, 1),
		summary("c", "m", 64, 1, 1), summary("a", "get", 1, 1, 1),
	}
	grid, methods, even := split(cells)
	f := func(l list, want ...string) {
		t.Helper()
		var got []string
		for _, c := range l {
			got = append(got, c.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f(grid, "a get, 1×1", "b GET, 1×1", "a get, 1×16", "a get, 64×1", "b GET, 64×1", "c m, 64×1", "a get, 64×64", "b GET, 64×64")
	f(methods, "a set, 64×64")
	f(even, "a get paced, 64×64")
}

func TestOverBound(t *testing.T) {
	cells := []goal.Summary{
		summary(bound, "get", 64, 64, 100, 200), summary("a", "get", 64, 64, 200, 800), summary("a", "set", 64, 64, 150, 150),
		summary("a", "get", 1, 1, 100), summary("b", "GET", 64, 64, 100, 400), summary("c", "GET", 64, 64, 0, 0),
	}
	all := (&figures.Run{Cells: cells}).Samples()
	f := func(cell int, want string) {
		t.Helper()
		if got := overBound(all, cells[cell]); got != want {
			t.Errorf("%v costs %s times the bound, want %s", cells[cell].Cell, got, want)
		}
	}
	f(0, "1.00")
	f(1, "3.00") // 2 in one round, 4 in the other
	f(2, "1.12") // of another method: against the one that the bound has there
	f(3, "-")    // the bound was not measured under this load
	f(4, "1.50")
	f(5, "-")
}

func TestPeerBars(t *testing.T) {
	grid := list{summary("a", "get", 64, 1, 5000), summary("a", "get", 64, 64, 500), summary("b", "GET", 64, 64, 700), summary("b", "GET", 1, 64, 900)}
	micros := func(s goal.Sample) float64 { return s.CPU / 1e3 }
	if s := grid.series("x", 64, micros); !slices.Equal(s.Values, []float64{0.5, 0.7}) {
		t.Errorf("at full depth %v", s.Values)
	}
	if s := grid.series("x", 1, micros); !slices.Equal(s.Values, []float64{5, 0}) {
		t.Errorf("at depth 1 %v, what was not measured is 0", s.Values)
	}
	all := grid.depths(micros)
	if len(all) != 2 || all[0].Name != "1 in flight" || all[1].Name != "64 in flight" {
		t.Errorf("%+v", all)
	}
}

func TestGivenPeer(t *testing.T) {
	run := &figures.Run{Cells: []goal.Summary{summary("a", "get", 64, 64, 500)}, Peer: "localhost:1", Missing: []string{"the peer at 1000 connections: refused"}}
	text, err := (&builder{set: &figures.Set{Runs: map[string]*figures.Run{"peers": run}}, charts: map[string][]byte{}}).peers()
	if err != nil || !strings.Contains(text, "One more server was given: `localhost:1`.\n\nNot measured: the peer at 1000 connections: refused.") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestTallPeer: a server that presses the others flat has them drawn again without it.
func TestTallPeer(t *testing.T) {
	f := func(grpc float64, want bool) {
		t.Helper()
		b := &builder{charts: map[string][]byte{}, folder: "f"}
		text, err := b.peerCharts(list{summary("a", "get", 64, 64, 500), summary("b", "GET", 64, 64, 700), summary("grpc", "unary", 64, 64, grpc)})
		_, drawn := b.charts["peers-cpu-near.svg"]
		if err != nil || drawn != want || strings.Contains(text, "64 in flight, without grpc](f/peers-cpu-near.svg)") != want {
			t.Errorf("grpc at %v ns: drawn again %v, %v\n%s", grpc, drawn, err, text)
		}
	}
	f(2000, false)
	f(25000, true)
}
