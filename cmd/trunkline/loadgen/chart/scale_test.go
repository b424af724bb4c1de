package chart

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestAxes(t *testing.T) {
	f := func(s scale, log bool, labels string) {
		t.Helper()
		var got []string
		for _, x := range s.ticks {
			got = append(got, x.label)
		}
		if strings.Join(got, " ") != labels || s.log != log {
			t.Errorf("%q, log %v; want %q", got, s.log, labels)
		}
	}
	up := func(k Kind, v ...float64) scale { return upright(Axis{Kind: k}, v, 30) }
	f(up(Linear), false, "0.0 0.5 1.0")
	f(up(Linear, 412), false, "0 200 400 600")
	f(up(Linear, 0.1, 1.9), false, "0.0 0.5 1.0 1.5 2.0")
	f(up(Linear, 5000), false, "0 2,000 4,000 6,000")
	f(up(Linear, math.Inf(1)), false, "0.0 0.5 1.0")
	f(up(Ranging, 1, 29), false, "0 10 20 30")
	f(up(Ranging, 0, 1, 29), false, "0 10 20 30")
	f(up(Ranging, 0.25, 9), true, "0.2 0.5 1 2 5 10")
	f(up(Ranging, 0.09, 1025), true, "0.1 1 10 100 1,000")
	along := func(a Axis, v ...float64) scale { return bottom(a, v) }
	f(along(Axis{End: 10}), false, "0 2 4 6 8 10")
	f(along(Axis{End: 9}, 30), false, "0 2 4 6 8")
	f(along(Axis{Kind: Sizes}), false, "0.0 0.5 1.0")
	f(along(Axis{Kind: Sizes}, 5), false, "5")
	f(along(Axis{Kind: Sizes}, 0), false, "0")
	f(along(Axis{Kind: Sizes}, 2, 1, 2, 4), false, "1 2 4")
	f(along(Axis{Kind: Sizes}, 0, 100), false, "0 100")
	f(along(Axis{Kind: Sizes}, 1, 64, 1000, 1024), true, "1 64 1k 1024")
	f(along(Axis{Kind: Sizes}, 1e4, 1e5, 1e6, 1e7), true, "10k 100k 1M 10M")
	f(along(Axis{Kind: ByteSizes}, 100, 1024, 1<<16, 1<<20), true, "100 B 1 KiB 64 KiB 1 MiB")
}

// TestDecadesAreEven: whatever the values, a decade is as wide as the next.
func TestDecadesAreEven(t *testing.T) {
	s := bottom(Axis{Kind: Sizes}, []float64{1e4, 1e5, 1e6, 1e7})
	for i := range 2 {
		a, b, c := s.at(s.ticks[i].value), s.at(s.ticks[i+1].value), s.at(s.ticks[i+2].value)
		if math.Abs((c-b)-(b-a)) > 1e-9 || a <= 0 || c >= 1 {
			t.Errorf("decades at %v, %v and %v", a, b, c)
		}
	}
}

// FuzzAxis: every axis holds its values in order, and has few ticks, at different places.
func FuzzAxis(f *testing.F) {
	f.Add(0.0, 1.0, 0)
	f.Add(3.6e12, 1e-3, 1)
	f.Add(1e-9, 1e9, 2)
	f.Add(3.5e-10, 1.3e12, 1)
	f.Add(math.MaxFloat64, 4.0, 3)
	f.Fuzz(func(t *testing.T, a, b float64, kind int) {
		if !(a >= 0 && b >= a && b > 1e-12 && b < 1e18 && (a == 0 || a > 1e-12)) {
			return
		}
		k := Kind(uint(kind) % 4)
		s := upright(Axis{Kind: k}, []float64{a, b}, lineSpread)
		if k >= Sizes {
			s = bottom(Axis{Kind: k}, []float64{a, b})
		}
		places := make([]float64, len(s.ticks))
		for i, x := range s.ticks {
			places[i] = s.at(x.value)
		}
		if low, high := s.at(a), s.at(b); low > high || len(places) == 0 || len(places) > mostTicks+1 || !slices.IsSorted(places) {
			t.Errorf("%g to %g: %v to %v, ticks at %v", a, b, low, high, places)
		}
	})
}

func TestFigure(t *testing.T) {
	f := func(v float64, want string) {
		t.Helper()
		if got := Figure(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	f(0, "0")
	f(0.0261, "0.0261")
	f(0.5, "0.5")
	f(2.964, "2.96")
	f(99.96, "100")
	f(1612262.4, "1,612,262")
	f(-1234.5, "-1,234")
	f(64, "64")
}

func TestWrap(t *testing.T) {
	f := func(s string, pixels float64, want ...string) {
		t.Helper()
		if got := wrap(s, textSize, pixels); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
	f("", 10)
	f("  one   two ", 1000, "one two")
	f("one two", 30, "one", "two")
	f("abcdef gh", 24, "abc", "def", "gh")
	f("abc", 1, "a", "b", "c")
}
