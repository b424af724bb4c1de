package chart

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/plot"

	"trunkline/bench/internal/goal"
)

func TestLines(t *testing.T) {
	c := chartOf([]float64{10_000, 1e6, 1e7}, map[string][]float64{"first": {1, 2, 3}, ours: {0.5, 0.6, 0.75}})
	svg := must(t)(Lines(c, nil))
	golden(t, "lines.svg", svg)
	has(t, svg, c.Title, c.X, c.Y, "first", ours, "0", "1", "2", "3", "10k", "1M", "10M")
	if again := must(t)(Lines(c, nil)); !bytes.Equal(svg, again) {
		t.Error("the same figures gave another picture")
	}
	if !bytes.Contains(svg, []byte(`width="800" height="440"`)) || bytes.Contains(svg, []byte("Liberation Sans;")) {
		t.Error("the picture has no size in pixels, or a font without others to fall back on")
	}
}

func TestLinesLeaveOut(t *testing.T) {
	c := chartOf([]float64{1, 64, 1000}, map[string][]float64{"first": {1, 2, 3}, ours: {1, 0, 2}, "second": {0, 0, 0}, "high": {90, 91, 92}})
	all, some := must(t)(Lines(c, nil)), must(t)(Lines(c, nil, "high"))
	has(t, all, "high", "100")
	hasNot(t, all, "second") // nothing of it was measured
	has(t, some, "first", ours, "3")
	hasNot(t, some, "high", "100")
	for _, colour := range []string{"#0072B2", "#D55E00"} { // the colours stay with their lines
		if !strings.Contains(string(all), colour) || !strings.Contains(string(some), colour) {
			t.Errorf("%s is gone", colour)
		}
	}
	if _, err := Lines(c, nil, "high", "first", ours); err == nil || !Empty(goal.Chart{}) || Empty(c) {
		t.Errorf("a chart without lines was drawn: %v", err)
	}
	one := chartOf([]float64{1, 2}, map[string][]float64{"first": {3, 4}})
	hasNot(t, must(t)(Lines(one, nil)), "first") // the title shows it
}

// TestLinesInOrder: a name has the colour of its place in the order, whatever else is in the chart.
func TestLinesInOrder(t *testing.T) {
	order := []string{"elsewhere", "second", ours}
	f := func(lines map[string][]float64) {
		t.Helper()
		svg := string(must(t)(Lines(chartOf([]float64{1, 2}, lines), order)))
		if !strings.Contains(svg, "#009E73") || strings.Contains(svg, "#D55E00") { // elsewhere's
			t.Errorf("second has not the third colour beside %v", lines)
		}
	}
	f(map[string][]float64{"second": {1, 2}, ours: {1, 2}})
	f(map[string][]float64{"second": {1, 2}, "first": {1, 2}})
}

func TestLinesEscape(t *testing.T) {
	c := chartOf([]float64{1, 2}, map[string][]float64{"first": {1, 2}, ours: {1, 2}})
	c.Title, c.X, c.Lines[0].Name = "a <b> & \"c\"", "<x>", "</text>"
	has(t, must(t)(Lines(c, nil)), c.Title, "<x>", "</text>")
}

func TestAcross(t *testing.T) {
	f := func(axis string, values []float64, labels string, want ...float64) {
		t.Helper()
		p := plot.New()
		place := across(p, values, axis)
		got, marks := []float64{}, []string{}
		for _, v := range values {
			got = append(got, place[v])
		}
		for _, m := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
			marks = append(marks, m.Label)
		}
		if !reflect.DeepEqual(got, want) || strings.Join(marks, " ") != labels {
			t.Errorf("%v stand at %v with %q, want %v with %q", values, got, marks, want, labels)
		}
		if p.X.Min > want[0] || p.X.Max <= want[len(want)-1] {
			t.Errorf("the axis from %v to %v does not hold %v", p.X.Min, p.X.Max, want)
		}
	}
	f("rows", []float64{1e4, 1e5, 1e6, 1e7}, "10k 100k 1M 10M", 0, 1, 2, 3)
	f("connections", []float64{1, 64, 1000}, "1 64 1000", 0, 1, 2)
	f("bytes of payload", []float64{100, 1024, 1 << 20}, "100 B 1 KiB 1 MiB", 0, 1, 2)
	f("loops", []float64{1, 2}, "1 2", 1, 2)
	f("loops", []float64{7}, "7", 0)
	f("loops", []float64{1, 2, 4}, "1 2 4", 1, 2, 4)
}

func TestOutlier(t *testing.T) {
	at := []float64{1, 2}
	f := func(want string, lines map[string][]float64) {
		t.Helper()
		if name, ok := Outlier(chartOf(at, lines), 3); ok != (want != "") || ok && name != want {
			t.Errorf("%v: %s %v, want %q", lines, name, ok, want)
		}
	}
	f("high", map[string][]float64{"first": {1, 2}, "second": {2, 1}, "high": {1, 7}})
	f("", map[string][]float64{"first": {1, 2}, "second": {2, 1}, "high": {1, 6}})
	f("", map[string][]float64{"first": {1, 2}, "high": {1, 60}}) // one line would be left
	f("", nil)
}

func TestMark(t *testing.T) {
	c := goal.Chart{X: "bytes"}
	if Mark(c, 2048) != "2 KiB" || Mark(goal.Chart{X: "rows"}, 20_000) != "20k" {
		t.Error("a value of the axis is written otherwise than in the chart")
	}
}
