package compare

import (
	"math"
	"slices"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*math.Abs(b) }

// TestSignedRank has critical values as every table of the test has them.
func TestSignedRank(t *testing.T) {
	f := func(n, w int, want float64) {
		t.Helper()
		if got := signedRank(n)[w]; !near(got, want) {
			t.Errorf("of %d ranks at most %d: %.6f, want %.6f", n, w, got, want)
		}
	}
	f(1, 0, 0.5)
	f(3, 6, 1)
	f(3, 2, 0.375)
	f(10, 0, 1.0/1024)
	f(10, 8, 25.0/1024)
	f(10, 10, 43.0/1024)
	f(20, 52, 0.02422)
	f(640, 0, math.Pow(2, -640))
}

func TestShiftOf(t *testing.T) {
	f := func(why string, ratios []float64, want shift) {
		t.Helper()
		got := shiftOf(ratios)
		if !near(got.Ratio, want.Ratio) || !near(got.Low, want.Low) || !near(got.High, want.High) || !near(got.P, want.P) || got.Rounds != len(ratios) {
			t.Errorf("%s: %+v, want %+v", why, got, want)
		}
	}
	f("nothing differs", []float64{1, 1, 1, 1, 1, 1}, shift{Ratio: 1, Low: 1, High: 1, P: 1})
	f("one round says nothing", []float64{2}, shift{Ratio: 2, Low: 2, High: 2, P: 1})
	f("a tenth more in each of ten", slices.Repeat([]float64{1.1}, 10), shift{Ratio: 1.1, Low: 1.1, High: 1.1, P: 2.0 / 1024})
	f("two wild rounds", []float64{1.1, 1.1, 1.1, 1.1, 9, 1.1, 1.1, 0.1, 1.1, 1.1}, shift{Ratio: 1.1, Low: 0.3317, High: 3.146, P: 2 * 43.0 / 1024})
	f("up and down", []float64{1.2, 1 / 1.2, 1.1, 1 / 1.1}, shift{Ratio: 1, Low: 1 / 1.2, High: 1.2, P: 1})
}

func TestShiftOfNothing(t *testing.T) {
	if s := shiftOf(nil); s.Rounds != 0 || s.verdict(1) != unsure {
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
	a, b := shiftOf(r), shiftOf(back)
	if !near(a.Ratio, 1/b.Ratio) || !near(a.Low, 1/b.High) || !near(a.High, 1/b.Low) || !near(a.P, b.P) {
		t.Errorf("%+v, turned around %+v", a, b)
	}
}

func TestVerdict(t *testing.T) {
	f := func(s shift, want verdict) {
		t.Helper()
		if got := s.verdict(0.001); got != want {
			t.Errorf("%+v is %s, want %s", s, got, want)
		}
	}
	f(shift{Ratio: 1.10, Low: 1.08, High: 1.12, P: 1e-6}, slower)
	f(shift{Ratio: 0.90, Low: 0.88, High: 0.92, P: 1e-6}, faster)
	f(shift{Ratio: 1.10, Low: 1.01, High: 1.19, P: 0.01}, unsure)
	f(shift{Ratio: 1.01, Low: 0.99, High: 1.03, P: 0.2}, same)
	f(shift{Ratio: 1.02, Low: 1.01, High: 1.03, P: 1e-6}, same) // for sure, and too little to speak of
	f(shift{Ratio: 1.00, Low: 0.90, High: 1.10, P: 1}, unsure)
	f(shift{Ratio: 1.04, Low: 1.02, High: 1.06, P: 0.002}, unsure)
}
