package goal

import (
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	f := func(want float64, v ...float64) {
		t.Helper()
		was := slices.Clone(v)
		if got := Median(v); got != want || !slices.Equal(v, was) {
			t.Errorf("the median of %v is %v, want %v; it became %v", was, got, want, v)
		}
	}
	f(0)
	f(3, 3)
	f(2, 3, 1)
	f(2, 9, 1, 2)
	f(2.5, 4, 1, 2, 3)
}

func TestQuantile(t *testing.T) {
	f := func(q, want float64, v ...float64) {
		t.Helper()
		was := slices.Clone(v)
		if got := Quantile(v, q); got != want || !slices.Equal(v, was) {
			t.Errorf("quantile %v of %v is %v, want %v; it became %v", q, was, got, want, v)
		}
	}
	f(0.99, 0)
	f(0.99, 3, 3)
	f(0.5, 2, 4, 1, 3, 2)
	f(0, 1, 4, 1, 3, 2)
	f(1, 4, 4, 1, 3, 2)
	f(0.75, 3, 4, 1, 3, 2)
	f(0.76, 4, 4, 1, 3, 2)
}

// figures makes a sample of a cell for each round, requests/s and their inverse as CPU time.
func figures(c Cell, perSec ...float64) (all []Sample) {
	for i, v := range perSec {
		all = append(all, Sample{Cell: c, Round: i, PerSec: v, CPU: 1e9 / v})
	}
	return all
}

func TestRatio(t *testing.T) {
	a, b := Cell{Server: "a", Conns: 1}, Cell{Server: "b", Conns: 1}
	f := func(want float64, ratios []float64, samples ...[]Sample) {
		t.Helper()
		all := slices.Concat(samples...)
		if got := Ratios(all, a, b, Rate); !slices.Equal(got, ratios) {
			t.Errorf("ratios %v, want %v", got, ratios)
		}
		if got := (&Report{Samples: all}).Ratio(a, b, Rate); got != want {
			t.Errorf("ratio %v, want %v", got, want)
		}
	}
	f(0, nil)
	f(0, nil, figures(a, 1, 2))
	f(0, nil, figures(a, 1, 2), figures(Cell{Server: "b", Conns: 2}, 1, 2)) // of another size
	f(2, []float64{2, 1, 5}, figures(a, 2, 10, 500), figures(b, 1, 10, 100))
	f(2, []float64{2, 1, 5}, figures(b, 1, 10, 100), figures(a, 2, 10, 500)) // whichever came first
	f(1.5, []float64{2, 1}, figures(a, 2, 10, 500), figures(b, 1, 10))       // one round has no peer
	f(2, []float64{2}, figures(a, 2, 10), []Sample{{Cell: b, PerSec: 1}, {Cell: b, Round: 1}})
	r := Report{Samples: slices.Concat(figures(a, 100), figures(b, 25))}
	if got := r.Ratio(a, b, CPU); got != 0.25 {
		t.Errorf("ratio of CPU time %v, want 0.25", got)
	}
}
