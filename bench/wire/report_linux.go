package main

import (
	"fmt"
	"io"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// report is everything a run found.
type report struct {
	load.Report
	Goals []goal.Goal `json:"goals"`
}

func reportOf(all []goal.Sample, o options) report {
	s := load.Settings{Rounds: o.rounds, Window: o.window.Seconds(), Rows: o.rows, Loops: o.loops, Workers: o.workers, Spin: o.spin, Pinned: o.pin}
	return report{load.Report{Machine: load.ThisMachine(), Settings: s, Cells: goal.Summarize(all)}, goals(all, o)}
}

func (r report) print(out io.Writer) {
	m, s := r.Machine, r.Settings
	fmt.Fprintf(out, "%d CPUs, %s/%s, %s; loopback TCP, load on the same machine; %d rounds of %.1f s, medians; %d rows, %d loops, pinned %v\n",
		m.CPUs, m.OS, m.Arch, m.Go, s.Rounds, s.Window, s.Rows, s.Loops, s.Pinned)
	goal.Table{Method: "method", P999: true, Peak: true}.Print(out, r.Cells)
	fmt.Fprintln(out, "\ngoal measured  verdict   asked")
	for i := range r.Goals {
		fmt.Fprintln(out, line(&r.Goals[i]))
	}
}
