package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"trunkline/bench/internal/goal"
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
	unsure verdict = "unsure" // seems to have moved, and the machine is too noisy to know; or there is nothing to compare with
	added  verdict = "new"
	gone   verdict = "gone"
)

// evaluate compares all benchmarks. The first look only reports which of them seem to have moved;
// whether one did is decided by rounds that are taken afterwards for that, so that being picked for
// a chance deviation does not count.
func (c *comparison) evaluate(ctx context.Context) (list []*entry, err error) {
	for _, k := range c.now.seen.order {
		list = append(list, c.entryOf(k))
	}
	if c.base == nil {
		return list, nil
	}
	for _, k := range c.base.seen.order {
		if c.now.seen.of[k] == nil {
			list = append(list, c.entryOf(k))
		}
	}
	suspects := slices.DeleteFunc(slices.Clone(list), func(e *entry) bool { return e.Verdict != unsure || e.Change == nil })
	slices.SortStableFunc(suspects, worstFirst)
	return list, c.confirmAll(ctx, suspects)
}

// confirmAll has the time of the flag for all suspects. One may take almost twice its share of what
// is left, so that a single noisy one does not take it all; the last may take the rest.
func (c *comparison) confirmAll(ctx context.Context, suspects []*entry) error {
	deadline := time.Now().Add(c.again)
	for i, e := range suspects {
		fmt.Fprintf(c.progress, "measuring %s again, %d of %d\n", e.key(), i+1, len(suspects))
		left := time.Until(deadline)
		share := 2 * left / time.Duration(len(suspects)-i+1)
		if err := c.confirm(ctx, e, level(len(suspects)), time.Now().Add(share)); err != nil {
			return err
		}
	}
	return nil
}

// worstFirst orders by what happened to the time: slower before faster, and further before less
// far.
func worstFirst(a, b *entry) int {
	x, y := math.Log(a.Change.Ratio), math.Log(b.Change.Ratio)
	if x <= 0 && y <= 0 {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(y, x)
}

// entryOf is what the first look reports of a benchmark.
func (c *comparison) entryOf(k key) *entry {
	e := &entry{Package: k.pkg, Name: k.name, Verdict: same, Now: figuresOf(c.now.seen, k)}
	if c.base != nil {
		e.Baseline = figuresOf(c.base.seen, k)
	}
	if e.Baseline == nil {
		e.Verdict = added
		return e
	}
	if e.Now == nil {
		e.Verdict = gone
		return e
	}
	e.Memory = memoryOf(c.base.seen, c.now.seen, k)
	r := ratios(c.base.seen.figures(k, unitTime), c.now.seen.figures(k, unitTime))
	switch {
	case c.lost != "":
		e.Verdict = unsure
	case len(r) > 0:
		s := shiftOf(r)
		e.Change = &s
		if s.seems() {
			e.Verdict = unsure
		}
	}
	return e
}

// confirm measures one benchmark again, alone.
func (c *comparison) confirm(ctx context.Context, e *entry, alpha float64, deadline time.Time) error {
	dir, pattern := c.now.dirs[e.Package], exactly("Benchmark"+e.Name)
	base, now := newSet(), newSet()
	steps := []goal.Step{c.base.step(ctx, base, dir, pattern), c.now.step(ctx, now, dir, pattern)}
	done := 0
	s, v, err := settle(c.rounds, alpha, func(n int) ([]float64, error) {
		for ; done < n && time.Now().Before(deadline); done += 2 {
			if _, err := goal.Rounds(2, steps, io.Discard); err != nil {
				return nil, err
			}
		}
		return ratios(base.figures(e.key(), unitTime), now.figures(e.key(), unitTime)), nil
	})
	if err != nil || s.Rounds == 0 {
		return err
	}
	e.Change, e.Verdict = &s, v
	return nil
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

// seems reports whether the first look makes it worth to measure again.
func (s shift) seems() bool { return s.Ratio >= seeming || s.Ratio <= 1/seeming }

// level is the chance of calling a move what is none, at one look at one of n benchmarks.
func level(n int) float64 { return falsely / float64(n*looks) }

// verdict decides at the chance alpha of calling a move what is none.
func (s shift) verdict(alpha float64) verdict {
	switch {
	case s.P < alpha && s.Ratio >= least:
		return slower
	case s.P < alpha && s.Ratio <= 1/least:
		return faster
	case s.Low > 1/harmless && s.High < harmless:
		return same
	default:
		return unsure
	}
}
