package goal

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// Report is what a run found. Its JSON form is the part's file of figures.
type Report struct {
	Part     string    `json:"part"`
	Machine  Machine   `json:"machine"`
	Settings Settings  `json:"settings"`
	Cells    []Summary `json:"cells,omitempty"`
	Goals    []Goal    `json:"goals,omitempty"`
	Charts   []Chart   `json:"charts,omitempty"`
	Tables   []Grid    `json:"tables,omitempty"`
	Notes    []string  `json:"notes,omitempty"`  // what a reader of the figures has to know: a peer that is not installed, what could not be measured
	Faults   []string  `json:"faults,omitempty"` // what was wrong: the run fails

	Samples []Sample `json:"-"` // of all rounds; Cells are made of them at the end
	Checked bool     `json:"-"` // the part looks for faults: without any its last line is PASS
}

// Machine is where, when and on which revision a run took place, for its report. What cannot be
// read is "unknown".
type Machine struct {
	Date     string `json:"date"`     // of the run, in UTC
	Revision string `json:"revision"` // of the sources in the working directory, with "-dirty" if they were changed since; what is made of figures is none
	CPUs     int    `json:"cpus"`
	Model    string `json:"cpu_model,omitempty"` // as the system names it; empty where it does not
	Arch     string `json:"arch"`
	OS       string `json:"os"`
	Kernel   string `json:"kernel"`
	Go       string `json:"go"`
	Load     string `json:"load_average"`         // of the last minute
	Disk     string `json:"filesystem,omitempty"` // under the stores, where there are any
}

// Settings are the options of a part that its figures depend on.
type Settings struct {
	Rounds  int     `json:"rounds"`
	Window  float64 `json:"window_seconds"`
	Rows    int     `json:"rows"`
	Loops   int     `json:"loops"`
	Workers int     `json:"load_workers"`
	Spin    bool    `json:"load_polls"`
	Pinned  bool    `json:"pinned"`
	Quick   bool    `json:"quick,omitempty"`
	Only    string  `json:"only,omitempty"`
}

// Median is the median over the rounds of a cell's figure, 0 for a cell that was not measured.
func (r *Report) Median(c Cell, pick func(Sample) float64) float64 {
	var v []float64
	for _, s := range r.Samples {
		if s.Cell == c {
			v = append(v, pick(s))
		}
	}
	return Median(v)
}

// Ratio is the median over the rounds of pick(a)/pick(b), 0 if no round has both.
func (r *Report) Ratio(a, b Cell, pick func(Sample) float64) float64 {
	return Median(Ratios(r.Samples, a, b, pick))
}

// Chart adds a chart.
func (r *Report) Chart(c Chart) { r.Charts = append(r.Charts, c) }

// Goal adds a goal and sets its verdict.
func (r *Report) Goal(g Goal) {
	g.Evaluate()
	r.Goals = append(r.Goals, g)
}

// Table adds a table.
func (r *Report) Table(t Grid) { r.Tables = append(r.Tables, t) }

// Note adds a sentence that a reader of the figures has to know.
func (r *Report) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Fault adds what was wrong.
func (r *Report) Fault(format string, args ...any) {
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

// Write writes the report to the file of that name, as JSON.
func (r *Report) Write(name string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the report: %w", err)
	}
	if err := os.WriteFile(name, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}

// Print prints the report.
func (r *Report) Print(out io.Writer) {
	m, s := r.Machine, r.Settings
	fmt.Fprintf(out, "%s at %s: %d CPUs, %s/%s %s, %s, load average %s", r.Part, m.Revision, m.CPUs, m.OS, m.Arch, m.Kernel, m.Go, m.Load)
	if m.Disk != "" {
		fmt.Fprintf(out, ", files on %s", m.Disk)
	}
	fmt.Fprintf(out, "; %d rounds of %.2g s, medians; %d rows, %d loops, pinned %v\n", s.Rounds, s.Window,
		s.Rows, s.Loops, s.Pinned)
	if len(r.Cells) > 0 {
		g := Grid{Head: []string{"server", "method", "via", "connections", "in flight", "requests/s", "CPU µs/request", "p50 µs", "p99 µs", "p99.9 µs", "RSS MiB", "peak MiB"}}
		for _, s := range r.Cells {
			m := s.Median
			g.Add(s.Server, s.Method, s.Via, s.Conns, s.Depth, m.PerSec, m.CPU/1e3, m.P50, m.P99, m.P999, MiB(m.RSS), MiB(m.Peak))
		}
		g.Print(out)
	}
	for _, c := range r.Charts {
		c.grid().Print(out)
	}
	for _, t := range r.Tables {
		t.Print(out)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(out, "\n"+note)
	}
	if len(r.Goals) > 0 {
		table := Grid{Head: []string{"goal", "asked (moonshot)", "measured", "verdict", "what"}}
		for _, g := range r.Goals {
			what := g.What
			if len(g.Members) > 0 {
				what += ": " + g.list()
			}
			table.Add(g.ID, g.Asked(), g.Measured, string(g.Verdict), what)
		}
		table.Print(out)
	}
	for _, f := range r.Faults {
		fmt.Fprintln(out, "FAIL", strings.TrimSpace(f))
	}
	if r.Checked && len(r.Faults) == 0 {
		fmt.Fprintln(out, "PASS")
	}
}

// Cell names one row of a table. It is compared by value: two cells are the same if all of it is.
type Cell struct {
	Server string `json:"server"`
	Method string `json:"method"`        // what is asked of it
	Via    string `json:"via,omitempty"` // how the requests get there, in the tables that separate them
	Conns  int    `json:"connections"`
	Depth  int    `json:"in_flight"` // on each connection
}

// String is the cell in a message.
func (c Cell) String() string {
	via := ""
	if c.Via != "" {
		via = " over " + c.Via
	}
	return fmt.Sprintf("%s %s%s, %d×%d", c.Server, c.Method, via, c.Conns, c.Depth)
}

// Sample is what one cell showed in one round. A figure of 0 was not measured.
type Sample struct {
	Cell     Cell    `json:"-"`
	Round    int     `json:"round"`
	Requests uint64  `json:"requests"`
	PerSec   float64 `json:"requests_per_second"`
	CPU      float64 `json:"cpu_ns_per_request"` // user and system time of the server's process, without its children
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	P999     float64 `json:"p999_us"`
	RSS      int64   `json:"rss_bytes"`
	Peak     int64   `json:"peak_rss_bytes"`
}

// Quantiles sets the latencies of a sample, given what a share of all requests did not exceed.
func (s *Sample) Quantiles(of func(share float64) time.Duration) {
	s.P50, s.P99, s.P999 = Micros(of(0.5)), Micros(of(0.99)), Micros(of(0.999))
}

// Rate picks the requests per second of a sample, for a ratio.
func Rate(s Sample) float64 { return s.PerSec }

// CPU picks the server's CPU nanoseconds per request of a sample, for a ratio.
func CPU(s Sample) float64 { return s.CPU }

// Summary is one cell of a report: the medians over its rounds, and the rounds.
type Summary struct {
	Cell
	Median Sample   `json:"median"`
	Rounds []Sample `json:"rounds"`
}

// Summarize groups samples by cell, in order of first appearance. Each figure is the median of the
// rounds, peak memory the maximum.
func Summarize(all []Sample) []Summary {
	var out []Summary
	for _, s := range all {
		i := slices.IndexFunc(out, func(o Summary) bool { return o.Cell == s.Cell })
		if i < 0 {
			i, out = len(out), append(out, Summary{Cell: s.Cell})
		}
		out[i].Rounds = append(out[i].Rounds, s)
	}
	for i := range out {
		of := func(pick func(Sample) float64) float64 {
			var v []float64
			for _, s := range out[i].Rounds {
				v = append(v, pick(s))
			}
			return Median(v)
		}
		m := Sample{
			Cell:     out[i].Cell,
			Requests: uint64(of(func(s Sample) float64 { return float64(s.Requests) })),
			PerSec:   of(Rate),
			CPU:      of(CPU),
			P50:      of(func(s Sample) float64 { return s.P50 }),
			P99:      of(func(s Sample) float64 { return s.P99 }),
			P999:     of(func(s Sample) float64 { return s.P999 }),
			RSS:      int64(of(func(s Sample) float64 { return float64(s.RSS) })),
		}
		for _, s := range out[i].Rounds {
			m.Peak = max(m.Peak, s.Peak)
		}
		out[i].Median = m
	}
	return out
}

// Micros is d in microseconds, the unit of latencies in samples.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// MiB is n bytes in mebibytes, the unit of memory in tables.
func MiB(n int64) float64 { return float64(n) / (1 << 20) }

// Median returns the middle of v, between the two middle ones if their number is even, and 0 for
// none. v stays as it is.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// Quantile returns the smallest value of v that a share q of all does not exceed, and 0 for none. v
// stays as it is.
func Quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[min(len(v)-1, max(0, int(math.Ceil(q*float64(len(v))))-1))]
}

// Ratios returns pick(a)/pick(b) of every round that has both, in the order of the rounds.
func Ratios(all []Sample, a, b Cell, pick func(Sample) float64) (ratios []float64) {
	below := map[int]float64{}
	for _, s := range all {
		if s.Cell == b {
			below[s.Round] = pick(s)
		}
	}
	for _, s := range all {
		if s.Cell == a && below[s.Round] > 0 {
			ratios = append(ratios, pick(s)/below[s.Round])
		}
	}
	return ratios
}

// Step is one turn within a round. It may leave no sample, or one each of several cells.
type Step struct {
	Name    string // in the message when it fails
	Measure func() ([]Sample, error)
}

// One is the step that measures one cell. The sample need not name the cell.
func One(c Cell, measure func() (Sample, error)) Step {
	return Step{c.String(), func() ([]Sample, error) {
		s, err := measure()
		s.Cell = c
		return []Sample{s}, err
	}}
}

// Rounds takes all steps n times, each second time in the opposite order, and returns what they
// left, by round. It reports on progress when a round is done. It ends at the first error.
func Rounds(n int, steps []Step, progress io.Writer) (all []Sample, err error) {
	for round := range n {
		for i := range steps {
			step := steps[i]
			if round%2 == 1 {
				step = steps[len(steps)-1-i]
			}
			got, err := step.Measure()
			if err != nil {
				return nil, fmt.Errorf("cannot measure %s: %w", step.Name, err)
			}
			for _, s := range got {
				s.Round = round
				all = append(all, s)
			}
		}
		fmt.Fprintf(progress, "round %d of %d done\n", round+1, n)
	}
	return all, nil
}
