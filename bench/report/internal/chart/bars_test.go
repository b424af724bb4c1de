package chart

import (
	"slices"
	"strings"
	"testing"
)

func bars(names []string, series ...Series) Bars {
	return Bars{Name: "b", Title: "Costs beside each other", Y: "µs per request", Names: names, Series: series}
}

func TestBars(t *testing.T) {
	b := bars([]string{"bare loop", ours, "none"}, Series{"p50", []float64{1, 2, 0}}, Series{"p99", []float64{3, 4, 0}})
	svg := must(t)(b.SVG())
	golden(t, "bars.svg", svg)
	has(t, svg, b.Title, b.Y, "bare", "loop", ours, "none", "p50", "p99", "0", "4")
}

func TestOneSeries(t *testing.T) {
	svg := must(t)(bars([]string{"a", ours, "none"}, Series{"p50", []float64{1.234, 0.056, 0}}).SVG())
	has(t, svg, "1.23", "0.056", "a", ours, "none")
	hasNot(t, svg, "p50")
	for _, colour := range []string{"fill:#0072B2", "fill:#999999"} {
		if !strings.Contains(string(svg), colour) {
			t.Errorf("no bar is %s", colour)
		}
	}
}

func TestNoBars(t *testing.T) {
	for _, b := range []Bars{bars(nil, Series{}), bars([]string{"a"})} {
		if _, err := b.SVG(); err == nil || !b.Empty() {
			t.Errorf("%+v was drawn", b)
		}
	}
	if b := bars([]string{"a"}, Series{"", []float64{0}}); !b.Empty() {
		t.Error("nothing measured is something")
	}
	if b := bars([]string{"a"}, Series{"", []float64{1}}); b.Empty() {
		t.Error("something measured is nothing")
	}
}

func TestBarsWithout(t *testing.T) {
	b := bars([]string{"a", "b", "high"}, Series{"x", []float64{1, 2, 3}}, Series{"y", []float64{1, 2, 30}})
	name, ok := b.Outlier(3)
	if !ok || name != "high" {
		t.Fatalf("%s stands out, %v", name, ok)
	}
	less := b.Without(name)
	if !slices.Equal(less.Names, []string{"a", "b"}) || !slices.Equal(less.Series[1].Values, []float64{1, 2}) || len(b.Names) != 3 || b.Series[1].Values[2] != 30 {
		t.Errorf("%+v of %+v", less, b)
	}
	if same := b.Without("c"); len(same.Names) != 3 {
		t.Errorf("%+v", same)
	}
}
