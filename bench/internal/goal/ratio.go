package goal

import (
	"math"
	"slices"
)

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
