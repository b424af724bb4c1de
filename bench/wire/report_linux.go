package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// report is everything a run found.
type report struct {
	load.Report
	GridRounds int          `json:"grid_rounds"`       // of the cells that no goal but G11 is about; Settings has those of the others
	Peer       string       `json:"peer,omitempty"`    // the address given with -peer
	Missing    []string     `json:"missing,omitempty"` // what could not be measured of it
	Goals      []goal.Goal  `json:"goals"`
	Charts     []goal.Chart `json:"charts"`
}

func reportOf(all []goal.Sample, missing []string, o options) report {
	s := load.Settings{Rounds: o.rounds, Window: o.window.Seconds(), Rows: o.rows, Loops: o.loops, Workers: o.workers, Spin: o.spin, Pinned: o.pin}
	cells := goal.Summarize(all)
	sortCells(cells)
	return report{load.Report{Machine: load.ThisMachine(), Settings: s, Cells: cells}, o.gridRounds, o.peer, missing, goals(all, o), charts(all, o)}
}

// sortCells brings cells of one size together, small ones first, paced ones last.
func sortCells(cells []goal.Summary) {
	isPaced := func(c goal.Summary) int {
		if c.Method == paced {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(cells, func(a, b goal.Summary) int {
		return cmp.Or(isPaced(a)-isPaced(b), a.Conns-b.Conns, a.Depth-b.Depth)
	})
}

func (r report) print(out io.Writer) {
	m, s := r.Machine, r.Settings
	fmt.Fprintf(out, "%d CPUs, %s/%s %s, %s, load average %s; loopback TCP, load on the same machine; %d rounds of %.1f s, %d of the wider grid, medians; %d rows, %d loops, pinned %v\n",
		m.CPUs, m.OS, m.Arch, m.Kernel, m.Go, m.Load, s.Rounds, s.Window, r.GridRounds, s.Rows, s.Loops, s.Pinned)
	goal.Table{Method: "method", P999: true, Peak: true}.Print(out, r.Cells)
	if r.Peer != "" {
		fmt.Fprintf(out, "\npeer: %s\n", r.Peer)
	}
	for _, what := range r.Missing {
		fmt.Fprintln(out, what)
	}
	fmt.Fprintln(out, "\ngoal measured  verdict   asked")
	for i := range r.Goals {
		fmt.Fprintln(out, line(&r.Goals[i]))
	}
}
