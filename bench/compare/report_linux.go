package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// report is everything a run found.
type report struct {
	Machine    load.Machine `json:"machine"`
	Baseline   *origin      `json:"baseline,omitempty"`
	Rounds     int          `json:"rounds"`
	Benchtime  float64      `json:"benchtime_seconds"`
	Benchmarks []*entry     `json:"benchmarks"`
}

// origin is where the baseline's figures come from.
type origin struct {
	Revision string `json:"revision"`
	Date     string `json:"date"`
	Measured bool   `json:"measured"` // in this run; else only memory is compared
}

func (c *comparison) reportOf(list []*entry) report {
	r := report{Machine: load.ThisMachine(), Rounds: c.rounds, Benchtime: c.benchtime.Seconds(), Benchmarks: list}
	if c.base != nil {
		r.Baseline = &origin{c.revision(), c.file.config["date"], c.lost == ""}
	}
	return r
}

// writeReport writes the file of figures, in a folder that need not be there yet.
func (c *comparison) writeReport(r report) error {
	if c.json == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.json), 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of the report: %w", err)
	}
	return goal.WriteJSON(c.json, r)
}

// print reports what moved: slower first, worst first.
func (r report) print(out io.Writer) {
	if r.Baseline == nil {
		fmt.Fprintf(out, "\n%d benchmarks, %d rounds\n", len(r.Benchmarks), r.Rounds)
		return
	}
	fmt.Fprintf(out, "\nwhat moved since %s of %s: ", short(r.Baseline.Revision), r.Baseline.Date)
	groups := [][]string{r.times(slower), r.memory(true), r.times(faster), r.memory(false), r.sided(added), r.sided(gone)}
	lines := slices.Concat(groups...)
	if len(lines) == 0 {
		fmt.Fprintf(out, "nothing moved in %d benchmarks\n", len(r.Benchmarks))
	} else {
		fmt.Fprintf(out, "%d of %d benchmarks\n", r.count(), len(r.Benchmarks))
	}
	if doubts := r.times(unsure); len(doubts) > 0 {
		lines = append(append(lines, "", "too noisy to tell; once more with -bench for these:"), doubts...)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	w.Flush()
}

// count is how many benchmarks moved in some way.
func (r report) count() (n int) {
	for _, e := range r.Benchmarks {
		if e.Verdict != same && e.Verdict != unsure || len(e.Memory) > 0 {
			n++
		}
	}
	return n
}

// times is a line for each benchmark whose time has this verdict and was compared.
func (r report) times(v verdict) (lines []string) {
	list := slices.DeleteFunc(slices.Clone(r.Benchmarks), func(e *entry) bool { return e.Verdict != v || e.Change == nil })
	slices.SortStableFunc(list, worstFirst)
	for _, e := range list {
		s := e.Change
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%+.1f %%\t[%+.1f, %+.1f]\tp=%.2g, %d rounds", v, e.key(), unitTime,
			percent(s.Ratio), percent(s.Low), percent(s.High), s.P, s.Rounds))
	}
	return lines
}

// memory is a line for each unit of memory that became more, or less.
func (r report) memory(more bool) (lines []string) {
	word := map[bool]string{true: "more", false: "less"}[more]
	for _, e := range r.Benchmarks {
		for _, m := range e.Memory {
			if m.More == more {
				lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%g to %g", word, e.key(), m.Unit, m.From, m.To))
			}
		}
	}
	return lines
}

// sided is a line for each benchmark that only one side has.
func (r report) sided(v verdict) (lines []string) {
	for _, e := range r.Benchmarks {
		if e.Verdict == v {
			lines = append(lines, fmt.Sprintf("%s\t%s", v, e.key()))
		}
	}
	return lines
}

// faults is what must not be: more time than the flag allows, or more memory.
func (r report) faults(above float64) (faults []string) {
	for _, e := range r.Benchmarks {
		if e.Verdict == slower && percent(e.Change.Ratio) > above {
			faults = append(faults, fmt.Sprintf("%s is slower by %.1f %%, at most %g %%", e.key(), percent(e.Change.Ratio), above))
		}
		for _, m := range e.Memory {
			if m.More {
				faults = append(faults, fmt.Sprintf("%s uses more memory: %g %s, before %g", e.key(), m.To, m.Unit, m.From))
			}
		}
	}
	return faults
}

// percent is a ratio as a change.
func percent(ratio float64) float64 { return (ratio - 1) * 100 }
