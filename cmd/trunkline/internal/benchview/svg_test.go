package benchview

import (
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/cmd/trunkline/loadgen"
	"trunkline/cmd/trunkline/loadgen/chart"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// valid reads svg as XML and refuses what a static picture must not have.
func valid(t *testing.T, name, svg string) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		el, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		if slices.Contains([]string{"script", "image", "use", "foreignObject", "a", "animate"}, el.Name.Local) {
			t.Errorf("%s: a %s", name, el.Name.Local)
		}
		for _, at := range el.Attr {
			if strings.HasPrefix(at.Name.Local, "on") || strings.Contains(at.Value, "NaN") || strings.Contains(at.Value, "Inf") {
				t.Errorf("%s: %s has %s=%q", name, el.Name.Local, at.Name.Local, at.Value)
			}
		}
	}
}

func TestSVG(t *testing.T) {
	golden(t, "run.svg", must(t, SVG, stalledRun()))
	valid(t, "stalled", must(t, SVG, stalledRun()))
	for name, r := range extremes() {
		r.Plan.Target.Addr = "<&\"'\x00\x1b]]>"
		svg := must(t, SVG, r)
		valid(t, name, svg)
		if none := strings.Contains(svg, "nothing answered"); none == (recorded(r.Total.Latency) > 0 && len(r.Intervals) > 0) {
			t.Errorf("%s: nothing answered: %v", name, none)
		}
		for _, outside := range []string{"http://", "https://", "url(", "@import", "@font-face"} {
			if strings.Contains(strings.ReplaceAll(svg, `xmlns="http://www.w3.org/2000/svg"`, ""), outside) {
				t.Errorf("%s: has %s", name, outside)
			}
		}
	}
}

// longRun has n intervals of 10 ms, with one spike of the latency and one dip of the rate.
func longRun(n, spike, dip int) *loadgen.Result {
	r := &loadgen.Result{Plan: planOfTwo()}
	slow, fast := loadgen.NewHistogram(), loadgen.NewHistogram()
	_ = slow.RecordValue(int64(3 * time.Second))
	_ = fast.RecordValue(int64(time.Millisecond))
	for i := range n {
		s := loadgen.Sample{From: time.Duration(i) * 10 * time.Millisecond, To: time.Duration(i+1) * 10 * time.Millisecond, Done: 100, Due: 100, Latency: fast}
		if i == spike {
			s.Latency = slow
		}
		if i == dip {
			s.Done = 0
		}
		r.Intervals = append(r.Intervals, s)
	}
	r.Total = loadgen.Sample{To: time.Duration(n) * 10 * time.Millisecond, Done: 100 * int64(n), Due: 100 * int64(n), Latency: fast}
	return r
}

// TestLongRunsLoseNoSpike: the picture of the most intervals that a run keeps stays small, and the
// slowest and the emptiest of them are in it, at their time.
func TestLongRunsLoseNoSpike(t *testing.T) {
	const n = 512
	r := longRun(n, n-3, n/2)
	for i, name := range quantileNames {
		points := latencyLine(r.Intervals, name, quantiles[i], chart.Red).Points
		top := slices.MaxFunc(points, func(a, b chart.Point) int { return cmp.Compare(a.Y, b.Y) })
		if top.Y < 2.9e3 || top.X != middle(&r.Intervals[n-3]) {
			t.Errorf("%s: the greatest is %v at %v s", name, top.Y, top.X)
		}
	}
	rate := rateLine(r.Intervals, "done", chart.Green, func(s *loadgen.Sample) int64 { return s.Done }).Points
	low := slices.MinFunc(rate, func(a, b chart.Point) int { return cmp.Compare(a.Y, b.Y) })
	if low.Y != 0 || low.X != middle(&r.Intervals[n/2]) {
		t.Errorf("the least rate is %v at %v s", low.Y, low.X)
	}
	if !slices.IsSortedFunc(rate, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) }) {
		t.Error("the rate goes back in time")
	}
	if size := len(must(t, SVG, r)); size > 64<<10 {
		t.Errorf("%d bytes", size)
	}
}
