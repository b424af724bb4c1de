package goal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
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

// Conclude makes cells of what was measured.
func (r *Report) Conclude() { r.Cells = append(r.Cells, Summarize(r.Samples)...) }

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
	fmt.Fprintf(out, "; %d rounds of %.2g s, medians; %d rows, %d loops, pinned %v\n", s.Rounds, s.Window, s.Rows, s.Loops, s.Pinned)
	if len(r.Cells) > 0 {
		cells(r.Cells).Print(out)
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
		verdicts(r.Goals).Print(out)
	}
	for _, f := range r.Faults {
		fmt.Fprintln(out, "FAIL", strings.TrimSpace(f))
	}
	if r.Checked && len(r.Faults) == 0 {
		fmt.Fprintln(out, "PASS")
	}
}
