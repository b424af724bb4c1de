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
	Machine  machine   `json:"machine"`
	Settings settings  `json:"settings"`
	Cells    []summary `json:"cells"`
	Goals    []goal    `json:"goals"`
}

type machine struct {
	CPUs   int    `json:"cpus"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Load   string `json:"load_average"` // at the end of the run, of the last minute
}

type settings struct {
	Rounds  int     `json:"rounds"`
	Window  float64 `json:"window_seconds"`
	Workers int     `json:"load_workers"`
	Spin    bool    `json:"load_polls"`
}

// summary is one cell: medians over the rounds, and the rounds.
type summary struct {
	cell
	Median sample   `json:"median"`
	Rounds []sample `json:"rounds"`
}

func thisMachine() machine {
	m := machine{CPUs: runtime.NumCPU(), Arch: runtime.GOARCH, Go: runtime.Version(), Kernel: "unknown", Load: "unknown"}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(b), &m.Load)
	}
	return m
}

func settingsOf(o options) settings {
	return settings{o.rounds, o.window.Seconds(), o.workers, o.spin}
}

// summarize groups the samples by cell in the order they first came.
func summarize(all []sample) (out []summary) {
	for _, c := range cellsOf(all) {
		s := summary{cell: c}
		for _, one := range all {
			if one.Cell == c {
				s.Rounds = append(s.Rounds, one)
			}
		}
		s.Median = medianSample(s.Rounds)
		out = append(out, s)
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
		CPU:      of(cpuOf),
		P50:      of(func(s sample) float64 { return s.P50 }),
		P99:      of(func(s sample) float64 { return s.P99 }),
		RSS:      int64(of(func(s sample) float64 { return float64(s.RSS) })),
	}
}

func (r report) print(out io.Writer) {
	m, s := r.Machine, r.Settings
	fmt.Fprintf(out, "%d CPUs, linux/%s %s, %s, load average %s; load on the same machine; %d rounds of %.1f s, medians\n",
		m.CPUs, m.Arch, m.Kernel, m.Go, m.Load, s.Rounds, s.Window)
	r.printCells(out)
	r.printScan(out)
	fmt.Fprintf(out, "\n%-46s %7s %8s  %-4s  members (CPU: peer's time per request / ours)\n", "requests/s, ours / peer's", "goal", "measured", "verdict")
	for i := range r.Goals {
		fmt.Fprintln(out, r.Goals[i].String())
	}
}

func table(out io.Writer) *tabwriter.Writer {
	fmt.Fprintln(out)
	return tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
}

func (r report) printCells(out io.Writer) {
	t := table(out)
	fmt.Fprintln(t, "server\tkind\tvia\tconns\tin flight\trequests/s\tserver CPU µs/req\tp50 µs\tp99 µs\tRSS MiB\t")
	for _, c := range r.Cells {
		if m := c.Median; c.Kind != fieldScan {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%.0f\t%.3f\t%s\t%s\t%s\t\n", c.Server, c.Kind, c.Via, c.Conns, c.Depth, m.PerSec, m.CPU/1e3,
				known(m.P50, "%.0f"), known(m.P99, "%.0f"), known(float64(m.RSS)/(1<<20), "%.1f"))
		}
	}
	t.Flush()
}

func (r report) printScan(out io.Writer) {
	t, begun := table(out), false
	for _, c := range r.Cells {
		if c.Kind == fieldScan {
			if !begun {
				fmt.Fprintln(t, "field scan\tline\tCPU ns/line\t")
			}
			begun = true
			fmt.Fprintf(t, "%s\t%s\t%.1f\t\n", c.Server, c.Via, c.Median.CPU)
		}
	}
	t.Flush()
}

// known is "-" for what was not measured.
func known(v float64, format string) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

func (r report) writeJSON(name string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the report: %w", err)
	}
	if err := os.WriteFile(name, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}
