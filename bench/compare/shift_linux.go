package compare

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"

	"trunkline/bench/internal/goal"
)

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
