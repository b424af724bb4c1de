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
	s := load.Settings{Rounds: o.rounds, Window: o.window.Seconds(), Workers: o.workers, Spin: o.spin}
	return report{load.Report{Machine: load.ThisMachine(), Settings: s, Cells: goal.Summarize(all)}, goals(all)}
}

func (r report) print(out io.Writer) {
	m, s := r.Machine, r.Settings
	fmt.Fprintf(out, "%d CPUs, linux/%s %s, %s, load average %s; load on the same machine; %d rounds of %.1f s, medians\n",
		m.CPUs, m.Arch, m.Kernel, m.Go, m.Load, s.Rounds, s.Window)
	lines, cells := r.apart()
	goal.Table{Method: "kind", Via: true}.Print(out, cells)
	printScan(out, lines)
	fmt.Fprintf(out, "\n%-46s %7s %8s  %-4s  members (CPU: peer's time per request / ours)\n", "requests/s, ours / peer's", "goal", "measured", "verdict")
	for i := range r.Goals {
		fmt.Fprintln(out, line(&r.Goals[i]))
	}
}

// apart takes the rows of the field scan, which have a table of their own, from the others.
func (r report) apart() (scan, others []goal.Summary) {
	for _, c := range r.Cells {
		if c.Method == fieldScan {
			scan = append(scan, c)
		} else {
			others = append(others, c)
		}
	}
	return scan, others
}

func printScan(out io.Writer, lines []goal.Summary) {
	if len(lines) == 0 {
		return
	}
	t := goal.NewTable(out)
	fmt.Fprintln(t, "field scan\tline\tCPU ns/line\t")
	for _, c := range lines {
		fmt.Fprintf(t, "%s\t%s\t%.1f\t\n", c.Server, c.Via, c.Median.CPU)
	}
	t.Flush()
}
