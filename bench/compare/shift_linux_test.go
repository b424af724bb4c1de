package compare

import (
	"math"
	"slices"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*math.Abs(b) }

func TestShiftOf(t *testing.T) {
	f := func(why string, ratios []float64, ratio, low, high float64) {
		t.Helper()
		was := slices.Clone(ratios)
		got := shiftOf(ratios)
		if !near(got.Ratio, ratio) || !near(got.Low, low) || !near(got.High, high) || !slices.Equal(got.ratios, was) {
			t.Errorf("%s: %+v, want %v from %v to %v", why, got, ratio, low, high)
		}
	}
	f("nothing differs", []float64{1, 1, 1, 1, 1, 1}, 1, 1, 1)
	f("one round says nothing", []float64{2}, 2, 2, 2)
	f("a tenth more in each of ten", slices.Repeat([]float64{1.1}, 10), 1.1, 1.1, 1.1)
	f("two wild rounds", []float64{1.1, 1.1, 1.1, 1.1, 9, 1.1, 1.1, 0.1, 1.1, 1.1}, 1.1, 1.1, 1.1)
	f("up and down", []float64{1.2, 1 / 1.2, 1.1, 1 / 1.1}, 1, 1/1.2, 1.2)
}

func TestShiftOfNothing(t *testing.T) {
	if s := shiftOf(nil); len(s.ratios) != 0 || s.verdict(1) != unsure {
		t.Errorf("no ratios are %+v, %s", s, s.verdict(1))
	}
}

// TestShiftTurnsAround: with the sides exchanged it is the inverse.
func TestShiftTurnsAround(t *testing.T) {
	r := []float64{1.07, 1.01, 0.98, 1.2, 1.11, 1.04, 0.93, 1.3, 1.02, 1.08, 1.05}
	var back []float64
	for _, v := range r {
		back = append(back, 1/v)
	}
	if a, b := shiftOf(r), shiftOf(back); !near(a.Ratio, 1/b.Ratio) || !near(a.Low, 1/b.High) || !near(a.High, 1/b.Low) {
		t.Errorf("%+v, turned around %+v", a, b)
	}
}

// TestVerdict: at a level of a thousandth eleven rounds are the fewest that can show a move.
func TestVerdict(t *testing.T) {
	f := func(want verdict, rounds int, ratios ...float64) {
		t.Helper()
		s := shiftOf(slices.Repeat(ratios, rounds/len(ratios)))
		if got := s.verdict(0.001); got != want {
			t.Errorf("%d rounds of %v are %s, want %s", rounds, ratios, got, want)
		}
	}
	f(slower, 12, 1.08, 1.10, 1.12)
	f(faster, 12, 0.88, 0.90, 0.92)
	f(unsure, 9, 1.08, 1.10, 1.12)
	f(unsure, 12, 0.9, 1.10, 1.12, 1.15) // one in four is below
	f(same, 20, 0.99, 1.01, 1.03, 1.01)
	f(same, 20, 1.01, 1.02, 1.02, 1.03) // for sure, and too little to speak of
	f(unsure, 20, 0.9, 1.1)
	f(unsure, 8, 1.02, 1.04, 1.04, 1.06)
}
