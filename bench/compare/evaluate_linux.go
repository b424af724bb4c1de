package compare

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchmath"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/gobench"
)

// What counts.
const (
	seeming  = 1.02  // a ratio of the first look that is measured again, so that few of 1.03 are missed
	least    = 1.03  // the smallest ratio that is called a move, up or down
	harmless = 1.05  // when the interval is within this, up and down, there is nothing more to find out
	falsely  = 0.001 // how often a run in which nothing moved may report that something did
	looks    = 6     // at what was measured again: after twice the rounds, and after each doubling of that
)

// verdict is what became of a benchmark's time, or that only one side has it.
type verdict string

const (
	same   verdict = "same"
	slower verdict = "slower"
	faster verdict = "faster"
	unsure verdict = "unsure" // seems to have moved, and the machine is too noisy to know
	added  verdict = "new"
	gone   verdict = "gone"
)

// evaluate compares all benchmarks, and measures those again that seem to have moved: those whose
// memory did and the clearest ones first, so that a noisy one does not take all of the time.
func (c *comparison) evaluate() error {
	var suspects []*benchmark
	for _, b := range c.list {
		if b.first(); b.verdict == unsure {
			suspects = append(suspects, b)
		}
	}
	slices.SortStableFunc(suspects, func(a, b *benchmark) int {
		return cmp.Or(cmp.Compare(len(b.memory), len(a.memory)), cmp.Compare(b.change.clear(), a.change.clear()))
	})
	deadline := time.Now().Add(c.again)
	for i, b := range suspects {
		fmt.Fprintf(os.Stderr, "measuring %s again, %d of %d\n", b.name, i+1, len(suspects))
		if err := c.confirm(b, level(len(suspects)), deadline); err != nil {
			return err
		}
	}
	return nil
}

// first is what the first look finds.
func (b *benchmark) first() {
	b.verdict = same
	switch {
	case len(b.figures[base]) == 0:
		b.verdict = added
	case len(b.figures[now]) == 0:
		b.verdict = gone
	default:
		b.change, b.memory = shiftOf(b.ratios()), b.moves()
		if b.change.seems() || !b.exact() {
			b.verdict = unsure
		}
	}
}

// clear is how far all of the interval is from 1, as a ratio above it; below 1 it is not.
func (s shift) clear() float64 { return max(s.Low, 1/s.High) }

// seems reports whether the first look makes it worth to measure again.
func (s shift) seems() bool { return s.Ratio >= seeming || s.Ratio <= 1/seeming }

// confirm measures one benchmark again, alone.
func (c *comparison) confirm(b *benchmark, alpha float64, deadline time.Time) error {
	var list []*benchmark
	again := find(&list, b.name)
	steps := c.steps(exactly("Benchmark"+b.name), &list)
	done := 0
	s, v, err := settle(c.Options.Rounds, alpha, func(n int) ([]float64, error) {
		for ; done < n && time.Now().Before(deadline); done += 2 {
			if _, err := goal.Rounds(2, steps, io.Discard); err != nil {
				return nil, err
			}
		}
		return again.ratios(), nil
	})
	if err == nil && len(s.ratios) > 0 {
		b.change, b.verdict = s, v
	}
	if !b.exact() {
		if b.memory = nil; len(s.ratios) >= 2*c.Options.Rounds {
			b.memory = again.moves()
		}
	}
	return err
}

// settle takes more and more rounds until it is clear whether the time moved. take returns the
// ratios of n rounds, those it returned before among them, or fewer when there is no time for more.
func settle(rounds int, alpha float64, take func(n int) ([]float64, error)) (s shift, v verdict, err error) {
	v = unsure
	for n := 2 * rounds; n <= rounds<<looks && v == unsure; n *= 2 {
		r, err := take(n)
		if err != nil {
			return shift{}, unsure, err
		}
		s = shiftOf(r)
		v = s.verdict(alpha)
		if len(r) < n {
			break
		}
	}
	return s, v, nil
}

// level is the chance of calling a move what is none, at one look at one of n benchmarks.
func level(n int) float64 { return falsely / float64(n*looks) }

// verdict decides at the chance alpha of calling a move what is none.
func (s shift) verdict(alpha float64) verdict {
	low, high := s.within(1 - alpha)
	switch {
	case low > 1 && s.Ratio >= least:
		return slower
	case high < 1 && s.Ratio <= 1/least:
		return faster
	case s.Low > 1/harmless && s.High < harmless:
		return same
	}
	return unsure
}

// memory is a unit of memory that moved, from and to medians.
type memory struct {
	unit     string
	from, to float64
	exact    bool // each side has one figure in all its rounds
}

func (m memory) more() bool { return m.to > m.from }

// String is the move in a report.
func (m memory) String() string {
	word := "less"
	if m.more() {
		word = "more"
	}
	return fmt.Sprintf("%s memory: %g to %g %s", word, m.from, m.to, m.unit)
}

// exact reports whether what moved of the memory is certain, as it is for most benchmarks. Where
// buffers grow by chance, the few rounds of the first look come into such an order once in 35
// times, those of a second one once in thousands.
func (b *benchmark) exact() bool {
	return !slices.ContainsFunc(b.memory, func(m memory) bool { return !m.exact })
}

// moves reports what moved of a benchmark's memory: every round of one side is above every round of
// the other.
func (b *benchmark) moves() (moved []memory) {
	for _, unit := range []string{gobench.Allocs, gobench.Bytes} {
		before, after := b.figures[base][unit], b.figures[now][unit]
		if len(before) == 0 || len(after) == 0 {
			continue
		}
		least, most := slices.Min(before), slices.Max(before)
		if from, to := slices.Min(after), slices.Max(after); from > most || to < least {
			moved = append(moved, memory{unit, goal.Median(before), goal.Median(after), least == most && from == to})
		}
	}
	return moved
}

// shift is how far the ratios of rounds are from 1: the middle of the means of all pairs of rounds,
// which moves less by chance than their median, and the 95 % interval of the median. It assumes
// nothing about them but that a ratio and its inverse are equally likely when nothing moved, which
// the turns of the two sides see to.
type shift struct {
	Ratio, Low, High float64 // now over baseline
	ratios           []float64
}

// confidence is that of the interval which is shown.
const confidence = 0.95

func shiftOf(ratios []float64) shift {
	if len(ratios) == 0 {
		return shift{Ratio: 1, High: math.MaxFloat64}
	}
	s := shift{ratios: ratios}
	var means []float64
	for i := range ratios {
		for j := range i + 1 {
			means = append(means, math.Sqrt(ratios[i]*ratios[j]))
		}
	}
	s.Ratio = goal.Median(means)
	s.Low, s.High = s.within(confidence)
	if math.IsInf(s.Low, 0) || math.IsInf(s.High, 0) { // too few for it
		s.Low, s.High = slices.Min(ratios), slices.Max(ratios)
	}
	return s
}

// within returns the interval in which the median is with such a confidence at least. That of
// benchmath may lean to one side: what it would be with the sides exchanged counts too.
func (s shift) within(confidence float64) (low, high float64) {
	back := make([]float64, len(s.ratios))
	for i, r := range s.ratios {
		back[i] = 1 / r
	}
	of := func(v []float64) benchmath.Summary {
		return benchmath.AssumeNothing.Summary(benchmath.NewSample(v, &benchmath.DefaultThresholds), confidence)
	}
	a, b := of(slices.Clone(s.ratios)), of(back)
	return min(a.Lo, 1/b.Hi), max(a.Hi, 1/b.Lo)
}

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
	var others []string // shown and not evaluated: most of it is a time in another unit
	for _, unit := range slices.Sorted(maps.Keys(b.figures[now])) {
		if unit != gobench.Time && unit != gobench.Bytes && unit != gobench.Allocs {
			others = append(others, goal.Text(goal.Median(b.figures[now][unit]))+" "+unit)
		}
	}
	times := b.figures[now][gobench.Time]
	row := []any{b.name, median(now, gobench.Time), goal.Quantile(times, 0.25), goal.Quantile(times, 0.75), median(now, gobench.Bytes), median(now, gobench.Allocs),
		median(base, gobench.Time), median(base, gobench.Bytes), median(base, gobench.Allocs), nil, nil, nil, nil,
		string(b.verdict), strings.Join(others, ", ")}
	if s := b.change; s.Ratio != 0 {
		copy(row[9:], []any{s.Ratio, s.Low, s.High, len(s.ratios)})
	}
	return row
}

// percent is a ratio as a change.
func percent(ratio float64) float64 { return (ratio - 1) * 100 }
