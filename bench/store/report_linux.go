package main

import (
	"fmt"
	"io"
	"slices"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// report is everything a run found.
type report struct {
	load.Report
	Disk      []diskRow `json:"disk"`
	Restarts  []restart `json:"restarts,omitempty"`
	Latencies []latency `json:"latencies,omitempty"`
	Goals     []bounded `json:"goals"`

	parts   []string
	samples []goal.Sample
	disk    diskTimes
}

func newReport(dir string, o options) report {
	r := report{Report: load.Report{Machine: load.ThisMachine()}, disk: diskTimes{}, parts: o.parts}
	r.Machine.Disk = filesystem(dir)
	r.Settings = load.Settings{Rounds: o.rounds, Window: o.window.Seconds(), Rows: o.rows, Loops: o.loops, Workers: o.workers, Spin: o.spin, Pinned: o.pin}
	return r
}

// conclude makes rows and goals of what was measured.
func (r *report) conclude() {
	r.Disk, r.Cells = r.disk.rows(), goal.Summarize(r.samples)
	if slices.Contains(r.parts, partCells) || slices.Contains(r.parts, partRestart) {
		r.Goals = goals(r.samples, r.Restarts)
	}
	if slices.Contains(r.parts, partThreads) {
		r.Goals = append(r.Goals, threadGoals(r.samples)...)
	}
	if slices.Contains(r.parts, partProjects) {
		r.Goals = append(r.Goals, projectGoals(r.samples)...)
	}
}

func (r *report) print(out io.Writer) {
	m, s := r.Machine, r.Settings
	fmt.Fprintf(out, "%d CPUs, linux/%s %s, %s; stores on %s; loopback TCP, load on the same machine; %d rounds of %.1f s, medians; %d rows, %d loops, pinned %v\n",
		m.CPUs, m.Arch, m.Kernel, m.Go, m.Disk, s.Rounds, s.Window, s.Rows, s.Loops, s.Pinned)
	for _, d := range r.Disk {
		fmt.Fprintf(out, "bare write and fdatasync of %d KiB: p50 %.0f µs, p99 %.0f µs (%d samples)\n", d.Bytes>>10, d.P50, d.P99, d.Samples)
	}
	if len(r.Cells) > 0 {
		goal.Table{Method: "method", P999: true, Via: slices.Contains(r.parts, partThreads) || slices.Contains(r.parts, partProjects)}.Print(out, r.Cells)
	}
	r.printRestarts(out)
	r.printLatencies(out)
	fmt.Fprintf(out, "\n%-42s %7s %8s  %-5s  members\n", "goal", "must", "measured", "")
	for i := range r.Goals {
		fmt.Fprintln(out, line(&r.Goals[i]))
	}
}

func (r *report) printRestarts(out io.Writer) {
	if len(r.Restarts) == 0 {
		return
	}
	t := goal.NewTable(out)
	fmt.Fprintln(t, "restart from\tprocesses\ttail records\tstore MiB\trecovery s\tof it snapshot s\tlog s\tfirst reply s\tRSS MiB\tpeak MiB\t")
	for _, x := range r.Restarts {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.0f\t%.2f\t%s\t%s\t%.2f\t%.0f\t%.0f\t\n", x.From, x.Rows, x.Tail, goal.MiB(x.Store), x.Recovery,
			goal.Known("%.2f", x.Snapshot), goal.Known("%.2f", x.Replay), x.Answer, goal.MiB(x.RSS), goal.MiB(x.Peak))
	}
	t.Flush()
}

func (r *report) printLatencies(out io.Writer) {
	if len(r.Latencies) == 0 {
		return
	}
	t := goal.NewTable(out)
	fmt.Fprintln(t, "paced\trequests/s\tsnapshots\ttook s\twritten\trequests\tp50 µs\tp99 µs\tp99.9 µs\t")
	for _, l := range r.Latencies {
		for _, q := range []struct {
			when string
			quantiles
		}{{"no", l.Beside}, {"yes", l.During}} {
			fmt.Fprintf(t, "%s\t%.0f\t%d\t%.2f\t%s\t%d\t%.0f\t%.0f\t%.0f\t\n", l.Method, l.PerSec, l.Snapshots, l.Took, q.when, q.Requests, q.P50, q.P99, q.P999)
		}
	}
	t.Flush()
}
