package chart

import (
	"math"
	"testing"

	"gonum.org/v1/plot"
)

func TestUpright(t *testing.T) {
	f := func(top, end float64, labels ...string) {
		t.Helper()
		var a plot.Axis
		upright(&a, top)
		marks := a.Tick.Marker.Ticks(a.Min, a.Max)
		if a.Min != 0 || math.Abs(a.Max-end) > 1e-9*end || a.Max < top*(1-1e-9) || len(marks) != len(labels) {
			t.Fatalf("to %v: from %v to %v with %v, want to %v with %v", top, a.Min, a.Max, marks, end, labels)
		}
		for i, m := range marks {
			if m.Label != labels[i] {
				t.Errorf("to %v: mark %d is %q, want %q", top, i, m.Label, labels[i])
			}
		}
	}
	f(0, 1, "0", "1")
	f(1, 1, "0", "0.2", "0.4", "0.6", "0.8", "1")
	f(1.25, 1.25, "0", "0.25", "0.5", "0.75", "1", "1.25")
	f(7.2e6, 8e6, "0", "2M", "4M", "6M", "8M")
	f(27.345, 30, "0", "10", "20", "30")
	f(0.0123, 0.0125, "0", "0.0025", "0.005", "0.0075", "0.01", "0.0125")
}

func TestRoundStep(t *testing.T) {
	f := func(v, want float64) {
		t.Helper()
		if got := roundStep(v); math.Abs(got-want) > 1e-9*want {
			t.Errorf("step %v for %v, want %v", got, v, want)
		}
	}
	f(1, 1)
	f(1.1, 2)
	f(2.2, 2.5)
	f(3, 5)
	f(5.1, 10)
	f(0.03, 0.05)
	f(-1, 1)
	f(math.NaN(), 1)
	f(math.Inf(1), 1)
}

func TestShort(t *testing.T) {
	f := func(v float64, want string) {
		t.Helper()
		if got := Short(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
	f(0, "0")
	f(0.25, "0.25")
	f(0.0123456, "0.0123")
	f(27.345, "27.3")
	f(100, "100")
	f(1000, "1000")
	f(10_000, "10k")
	f(12_500, "12.5k")
	f(999_400, "999k")
	f(999_600, "1M")
	f(1e7, "10M")
	f(-2.5, "-2.5")
}

func TestWrap(t *testing.T) {
	f := func(s string, letters int, want string) {
		t.Helper()
		if got := wrap(s, letters); got != want {
			t.Errorf("%q in %d is %q, want %q", s, letters, got, want)
		}
	}
	f("", 5, "")
	f("a b", 5, "a b")
	f("aa bb cc", 5, "aa bb\ncc")
	f("µµ µµ c", 5, "µµ µµ\nc")
	f("longest b", 3, "longest\nb")
}
