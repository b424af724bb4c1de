package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/gobench"
)

// report adds a table of all benchmarks, one of what moved, worst first, and what must not be: more
// time than the flag allows, or more memory.
func (c *comparison) report() {
	all := goal.Grid{Title: "benchmarks: medians and quartiles over rounds; the ratio is the time now over the time before, in the rounds in which it was measured again, if it was",
		Head: []string{"benchmark", "ns/op", "Q1", "Q3", "B/op", "allocs/op", "before: ns/op", "before: B/op",
			"before: allocs/op", "ratio", "from", "to", "rounds", "verdict", "in other units"}}
	moved := goal.Grid{Title: "what moved", Head: []string{"benchmark", "how"}}
	doubts := 0
	for _, b := range c.list {
		all.Add(b.row()...)
		if b.verdict == unsure {
			doubts++
		}
	}
	slices.SortStableFunc(c.list, worstFirst)
	for _, b := range c.list {
		if b.verdict != same && b.verdict != unsure && c.Report.Checked {
			moved.Add(b.name, b.how())
		}
		if b.verdict == slower && percent(b.change.Ratio) > c.fail {
			c.Report.Fault("%s is %s, at most %g %%", b.name, b.how(), c.fail)
		}
		for _, m := range b.memory {
			moved.Add(b.name, m.String())
			if m.more() {
				c.Report.Fault("%s uses %v", b.name, m)
			}
		}
	}
	c.Report.Table(all)
	c.allocations()
	switch {
	case len(moved.Rows) > 0:
		c.Report.Table(moved)
	case c.Report.Checked:
		c.Report.Note("Nothing moved in %d benchmarks.", len(c.list))
	}
	if doubts > 0 {
		c.Report.Note("%d benchmarks are unsure: the machine was too noisy to know. Once more with -only for these.", doubts)
	}
}

// allocations evaluates those of the hot methods through a whole session. The bound is 0, which a
// goal cannot keep apart from none.
func (c *comparison) allocations() {
	g := goal.Goal{ID: "G6", What: "heap allocations per hot request, frame in to reply out", Verdict: goal.Pass, Members: map[string]float64{}}
	for _, b := range c.list {
		method, hot := strings.CutPrefix(b.name, "KernelMethod/")
		if v := b.figures[now][gobench.Allocs]; hot && method != "CreateTerminate" && len(v) > 0 {
			g.Members[method] = goal.Median(v)
			if g.Measured = max(g.Measured, g.Members[method]); g.Measured > 0 {
				g.Verdict = goal.Miss
			}
		}
	}
	if len(g.Members) > 0 {
		c.Report.Goals = append(c.Report.Goals, g)
	}
}

// how is what became of the benchmark's time.
func (b *benchmark) how() string {
	s := b.change
	if s.Ratio == 0 {
		return string(b.verdict)
	}
	return fmt.Sprintf("%s: %+.1f %% [%+.1f, %+.1f], %d rounds", b.verdict,
		percent(s.Ratio), percent(s.Low), percent(s.High), len(s.ratios))
}

// row is the benchmark's in the table.
func (b *benchmark) row() []any {
	median := func(side int, unit string) any {
		if v := b.figures[side][unit]; len(v) > 0 {
			return goal.Median(v)
		}
		return nil
	}
	times := b.figures[now][gobench.Time]
	row := []any{b.name, median(now, gobench.Time), goal.Quantile(times, 0.25), goal.Quantile(times, 0.75), median(now, gobench.Bytes), median(now, gobench.Allocs),
		median(base, gobench.Time), median(base, gobench.Bytes), median(base, gobench.Allocs), nil, nil, nil, nil,
		string(b.verdict), b.others()}
	if s := b.change; s.Ratio != 0 {
		copy(row[9:], []any{s.Ratio, s.Low, s.High, len(s.ratios)})
	}
	return row
}

// others are the medians in the units that are shown and not evaluated: most of it is a time in
// another unit.
func (b *benchmark) others() string {
	var list []string
	for _, unit := range slices.Sorted(maps.Keys(b.figures[now])) {
		if unit != gobench.Time && unit != gobench.Bytes && unit != gobench.Allocs {
			list = append(list, goal.Text(goal.Median(b.figures[now][unit]))+" "+unit)
		}
	}
	return strings.Join(list, ", ")
}

// percent is a ratio as a change.
func percent(ratio float64) float64 { return (ratio - 1) * 100 }
