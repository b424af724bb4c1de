package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"
)

// report is everything a run found; its JSON form is what -json writes.
type report struct {
	Machine  machine   `json:"machine"`
	Settings settings  `json:"settings"`
	Cells    []summary `json:"cells"`
	Goals    []goal    `json:"goals"`
}

type machine struct {
	CPUs int    `json:"cpus"`
	Arch string `json:"arch"`
	OS   string `json:"os"`
	Go   string `json:"go"`
}

type settings struct {
	Rounds  int     `json:"rounds"`
	Window  float64 `json:"window_seconds"`
	Rows    int     `json:"rows"`
	Loops   int     `json:"loops"`
	Workers int     `json:"load_workers"`
	Pinned  bool    `json:"pinned"`
}

// summary is one cell: medians over the rounds, and the rounds.
type summary struct {
	cell
	Median sample   `json:"median"`
	Rounds []sample `json:"rounds"`
}

func thisMachine() machine {
	return machine{CPUs: runtime.NumCPU(), Arch: runtime.GOARCH, OS: runtime.GOOS, Go: runtime.Version()}
}

func settingsOf(o options) settings {
	return settings{o.rounds, o.window.Seconds(), o.rows, o.loops, o.workers, o.pin}
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

// medianSample takes the median of every figure by itself, except the peak memory, which is the highest.
func medianSample(rounds []sample) sample {
	of := func(pick func(sample) float64) float64 {
		var v []float64
		for _, s := range rounds {
			v = append(v, pick(s))
		}
		return median(v)
	}
	m := sample{Cell: rounds[0].Cell, PerSec: of(rateOf), CPU: of(cpuOf)}
	m.Requests = uint64(of(func(s sample) float64 { return float64(s.Requests) }))
	m.P50 = of(func(s sample) float64 { return s.P50 })
	m.P99 = of(func(s sample) float64 { return s.P99 })
	m.P999 = of(func(s sample) float64 { return s.P999 })
	m.RSS = int64(of(func(s sample) float64 { return float64(s.RSS) }))
	for _, s := range rounds {
		m.Peak = max(m.Peak, s.Peak)
	}
	return m
}

func (r report) print(out io.Writer) {
	fmt.Fprintf(out, "%d CPUs, %s/%s, %s; loopback TCP, load on the same machine; %d rounds of %.1f s, medians; %d rows, %d loops, pinned %v\n\n",
		r.Machine.CPUs, r.Machine.OS, r.Machine.Arch, r.Machine.Go, r.Settings.Rounds, r.Settings.Window, r.Settings.Rows, r.Settings.Loops, r.Settings.Pinned)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "server\tmethod\tconns\tin flight\trequests/s\tserver CPU µs/req\tp50 µs\tp99 µs\tp99.9 µs\tRSS MiB\tpeak MiB\t")
	for _, c := range r.Cells {
		m := c.Median
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%.0f\t%.3f\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t\n", c.Server, c.Method, c.Conns, c.Depth,
			m.PerSec, m.CPU/1e3, m.P50, m.P99, m.P999, mebibytes(m.RSS), mebibytes(m.Peak))
	}
	t.Flush()
	fmt.Fprintln(out, "\ngoal measured  verdict   asked")
	for _, g := range r.Goals {
		fmt.Fprintln(out, g.String())
	}
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

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
