package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"

	"golang.org/x/sys/unix"
)

// report is everything a run found; its JSON form is what -json writes.
type report struct {
	Machine   machine   `json:"machine"`
	Settings  settings  `json:"settings"`
	Disk      []diskRow `json:"disk"`
	Cells     []summary `json:"cells,omitempty"`
	Restarts  []restart `json:"restarts,omitempty"`
	Latencies []latency `json:"latencies,omitempty"`
	Goals     []goal    `json:"goals"`

	samples []sample
}

type machine struct {
	CPUs       int    `json:"cpus"`
	Arch       string `json:"arch"`
	Kernel     string `json:"kernel"`
	Go         string `json:"go"`
	Filesystem string `json:"filesystem"`
}

type settings struct {
	Rounds  int     `json:"rounds"`
	Window  float64 `json:"window_seconds"`
	Rows    int     `json:"rows"`
	Loops   int     `json:"loops"`
	Workers int     `json:"load_workers"`
	Spin    bool    `json:"load_polls"`
	Pinned  bool    `json:"pinned"`
}

// summary is one cell: medians over the rounds, and the rounds.
type summary struct {
	cell
	Median sample   `json:"median"`
	Rounds []sample `json:"rounds"`
}

func thisMachine(dir string) machine {
	m := machine{CPUs: runtime.NumCPU(), Arch: runtime.GOARCH, Go: runtime.Version(), Kernel: "unknown", Filesystem: filesystem(dir)}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	return m
}

func settingsOf(o options) settings {
	return settings{o.rounds, o.window.Seconds(), o.rows, o.loops, o.workers, o.spin, o.pin}
}

// summarize groups the samples by cell in the order they first came.
func summarize(all []sample) []summary {
	var out []summary
	at := map[cell]int{}
	for _, s := range all {
		i, ok := at[s.Cell]
		if !ok {
			i = len(out)
			at[s.Cell] = i
			out = append(out, summary{cell: s.Cell})
		}
		out[i].Rounds = append(out[i].Rounds, s)
	}
	for i := range out {
		out[i].Median = medianSample(out[i].Rounds)
	}
	return out
}

// medianSample takes the median of every figure by itself.
func medianSample(rounds []sample) sample {
	of := func(pick func(sample) float64) float64 {
		var v []float64
		for _, s := range rounds {
			v = append(v, pick(s))
		}
		return median(v)
	}
	return sample{
		Cell:     rounds[0].Cell,
		Requests: uint64(of(func(s sample) float64 { return float64(s.Requests) })),
		PerSec:   of(rateOf),
		CPU:      of(func(s sample) float64 { return s.CPU }),
		P50:      of(func(s sample) float64 { return s.P50 }),
		P99:      of(func(s sample) float64 { return s.P99 }),
		P999:     of(func(s sample) float64 { return s.P999 }),
		RSS:      int64(of(func(s sample) float64 { return float64(s.RSS) })),
	}
}

func (r *report) print(out io.Writer) {
	m, s := r.Machine, r.Settings
	r.Cells = summarize(r.samples)
	fmt.Fprintf(out, "%d CPUs, linux/%s %s, %s; stores on %s; loopback TCP, load on the same machine; %d rounds of %.1f s, medians; %d rows, %d loops, pinned %v\n",
		m.CPUs, m.Arch, m.Kernel, m.Go, m.Filesystem, s.Rounds, s.Window, s.Rows, s.Loops, s.Pinned)
	for _, d := range r.Disk {
		fmt.Fprintf(out, "bare write and fdatasync of %d KiB: p50 %.0f µs, p99 %.0f µs (%d samples)\n", d.Bytes>>10, d.P50, d.P99, d.Samples)
	}
	r.printCells(out)
	r.printRestarts(out)
	r.printLatencies(out)
	fmt.Fprintf(out, "\n%-42s %7s %8s  %-5s  members\n", "goal", "must", "measured", "")
	for i := range r.Goals {
		fmt.Fprintln(out, r.Goals[i].String())
	}
}

func table(out io.Writer) *tabwriter.Writer {
	fmt.Fprintln(out)
	return tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
}

func (r *report) printCells(out io.Writer) {
	if len(r.Cells) == 0 {
		return
	}
	t := table(out)
	fmt.Fprintln(t, "server\tmethod\tconns\tin flight\trequests/s\tserver CPU µs/req\tp50 µs\tp99 µs\tp99.9 µs\tRSS MiB\t")
	for _, c := range r.Cells {
		m := c.Median
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%.0f\t%.3f\t%.0f\t%.0f\t%.0f\t%.1f\t\n", c.Server, c.Method, c.Conns, c.Depth,
			m.PerSec, m.CPU/1e3, m.P50, m.P99, m.P999, mebibytes(m.RSS))
	}
	t.Flush()
}

func (r *report) printRestarts(out io.Writer) {
	if len(r.Restarts) == 0 {
		return
	}
	t := table(out)
	fmt.Fprintln(t, "restart from\tprocesses\ttail records\tstore MiB\trecovery s\tof it snapshot s\tlog s\tfirst reply s\tRSS MiB\tpeak MiB\t")
	for _, x := range r.Restarts {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.0f\t%.2f\t%s\t%s\t%.2f\t%.0f\t%.0f\t\n", x.From, x.Rows, x.Tail, mebibytes(x.Store), x.Recovery,
			seconds(x.Snapshot), seconds(x.Replay), x.Answer, mebibytes(x.RSS), mebibytes(x.Peak))
	}
	t.Flush()
}

func (r *report) printLatencies(out io.Writer) {
	if len(r.Latencies) == 0 {
		return
	}
	t := table(out)
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

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// seconds is "-" for what was not said.
func seconds(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

func (r *report) writeJSON(name string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the report: %w", err)
	}
	if err := os.WriteFile(name, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}
