package benchview

import (
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/cmd/trunkline/loadgen"
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

// TestLongRunsLoseNoSpike: the picture stays small, and the slowest and the emptiest interval of
// many are in it, at their time.
func TestLongRunsLoseNoSpike(t *testing.T) {
	for _, n := range []int{chartPoints, chartPoints + 1, 3 * chartPoints} {
		r := longRun(n, n-3, n/2)
		for q, points := range latencySeries(r.Intervals) {
			if len(points) > chartPoints {
				t.Errorf("%d intervals: %d points", n, len(points))
			}
			top := slices.MaxFunc(points, func(a, b point) int { return int(a.v - b.v) })
			if top.v < 2.9e9 || top.at != middle(&r.Intervals[n-3]) {
				t.Errorf("%d intervals, %s: the greatest is %v at %s", n, quantileNames[q], top.v, top.at)
			}
		}
		rate := rateSeries(r.Intervals, func(s *loadgen.Sample) int64 { return s.Done })
		low := slices.MinFunc(rate, func(a, b point) int { return int(a.v - b.v) })
		if len(rate) > chartPoints || low.v != 0 || low.at != middle(&r.Intervals[n/2]) {
			t.Errorf("%d intervals: %d points of the rate, the least %v at %s", n, len(rate), low.v, low.at)
		}
		if !slices.IsSortedFunc(rate, func(a, b point) int { return int(a.at - b.at) }) {
			t.Errorf("%d intervals: the rate goes back in time", n)
		}
		if size := len(must(t, SVG, r)); size > 64<<10 {
			t.Errorf("%d intervals: %d bytes", n, size)
		}
	}
}

// TestTheLastRepliesAreNoInterval: what came in within milliseconds after the schedule counts with
// the interval before it.
func TestTheLastRepliesAreNoInterval(t *testing.T) {
	r := stalledRun()
	before := len(r.Intervals)
	late := loadgen.NewHistogram()
	_ = late.RecordValue(int64(4 * time.Second))
	r.Intervals = append(r.Intervals, loadgen.Sample{From: 20 * time.Second, To: 20003 * time.Millisecond, Done: 1, Latency: late})
	in := measuredIntervals(r)
	last := in[len(in)-1]
	if len(in) != before || last.From != 19*time.Second || last.To != 20003*time.Millisecond || last.Done != 5001 || last.Due != 5000 {
		t.Errorf("%d intervals, the last from %s to %s with %d done", len(in), last.From, last.To, last.Done)
	}
	if ns, _ := latencies(last.Latency); ns[atMax] < 3.9e9 || ns[atP50] > 1e6 {
		t.Errorf("quantiles of both: %v", ns)
	}
	if len(r.Intervals) != before+1 || recorded(r.Intervals[before-1].Latency) != 5000 {
		t.Error("the result was changed")
	}
	r.Intervals[before].To = 21 * time.Second // a stall at the end is an interval
	if in := measuredIntervals(r); len(in) != before+1 {
		t.Errorf("%d intervals, want %d", len(in), before+1)
	}
	r.Intervals[0].From = -time.Second
	if in := measuredIntervals(r); len(in) != before {
		t.Errorf("%d intervals without warming up, want %d", len(in), before)
	}
}

func TestGapsAreNotBridged(t *testing.T) {
	p := func(at int, v float64) point { return point{at: time.Duration(at) * time.Second, v: v} }
	gap := point{none: true}
	f := func(want string, points ...point) {
		t.Helper()
		d := newDrawing("")
		d.top = 0
		d.series(&series{"x", "x", points}, axis{per: 1e9, step: 1, top: 10}, axis{per: 1, step: 1, top: 10})
		path, _, _ := strings.Cut(d.b.String(), `"/>`)
		if _, got, _ := strings.Cut(path, `d="`); got != want {
			t.Errorf("%v: %q, want %q", points, got, want)
		}
	}
	f("")
	f("", gap)
	f("M76 150h.01", p(0, 0))
	f("M76 150L145.6 135", p(0, 0), p(1, 1))
	f("M76 150h.01M215.2 135L284.8 135", p(0, 0), gap, p(2, 1), p(3, 1))
	f("M76 150L145.6 150M284.8 0h.01", p(0, 0), p(1, 0), gap, p(3, 10))
}

func TestAxes(t *testing.T) {
	f := func(a axis, unit string, labels ...string) {
		t.Helper()
		var got []string
		for _, v := range a.ticks() {
			got = append(got, a.label(v))
		}
		if a.unit != unit || !slices.Equal(got, labels) {
			t.Errorf("%v %s, want %v %s", got, a.unit, labels, unit)
		}
	}
	f(latencyAxis(0), "microseconds", "0.0", "0.5", "1.0")
	f(latencyAxis(412e3), "microseconds", "0", "200", "400", "600")
	f(latencyAxis(1.9e6), "milliseconds", "0.0", "0.5", "1.0", "1.5", "2.0")
	f(latencyAxis(2e9), "seconds", "0.0", "0.5", "1.0", "1.5", "2.0")
	f(latencyAxis(3.6e12), "seconds", "0", "1,000", "2,000", "3,000", "4,000")
	f(newAxis(5000, 1, "requests/s", 4), "requests/s", "0", "2,000", "4,000", "6,000")
	f(newAxis(math.NaN(), 1, "x", 4), "x", "0.0", "0.5", "1.0")
	f(newAxis(math.Inf(1), 1, "x", 4), "x", "0.0", "0.5", "1.0")
	f(timeAxis(10*time.Second), "seconds", "0", "2", "4", "6", "8", "10")
	f(timeAxis(9*time.Second), "seconds", "0", "2", "4", "6", "8")
	f(timeAxis(time.Hour), "minutes", "0", "10", "20", "30", "40", "50", "60")
	f(timeAxis(24*time.Hour), "hours", "0", "5", "10", "15", "20")
}

// FuzzAxis: every axis begins at zero, holds its greatest value, and has few ticks.
func FuzzAxis(f *testing.F) {
	f.Add(1.0, 4)
	f.Add(3.6e12, 8)
	f.Add(1e-300, 3)
	f.Add(math.MaxFloat64, 4)
	f.Fuzz(func(t *testing.T, most float64, n int) {
		if n < 1 || n > 12 || !(most > 1e-12) || most > 1e18 {
			return
		}
		a := newAxis(most, 1, "", n)
		ticks := a.ticks()
		if ticks[0] != 0 || ticks[len(ticks)-1] < most*(1-1e-6) || len(ticks) > n+3 || a.at(most) > 1+1e-6 {
			t.Errorf("%g in %d: %v", most, n, ticks)
		}
	})
}
