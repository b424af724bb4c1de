package benchview

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"trunkline/cmd/trunkline/loadgen/chart"
	"trunkline/cmd/trunkline/loadgen"
)

// SVG writes r as one static picture: rate and latencies over time, and latency by percentile. Axes
// name their units and begin at zero; those of latencies are logarithmic after a stall, which would
// press all others to the floor. There is a point for each interval.
func SVG(w io.Writer, r *loadgen.Result) error {
	in, end := r.Intervals, max(r.Total.To, 0)
	if n := len(in); n > 0 {
		end = max(end, in[n-1].To)
	}
	lat := latencySeries(in)
	p := chart.Picture{
		Title: "Load on " + clip(targetText(r.Plan.Target), headCells),
		Head:  []string{clip(scheduleText(&r.Plan), headCells), clip(headText(r), headCells)},
		Panels: []chart.Panel{
			timePanel("Rate", "requests per second", end, rateLines(r, in)...),
			latencyPanel("Latency from the intended start: p50 and p99", end,
				chart.Line{Name: "p50", Style: chart.Blue, Points: lat[atP50]}, chart.Line{Name: "p99", Style: chart.Violet, Points: lat[atP99]}),
			latencyPanel("Latency from the intended start: p99.9 and maximum", end,
				chart.Line{Name: "p99.9", Style: chart.Amber, Points: lat[atP999]}, chart.Line{Name: "max", Style: chart.Red, Points: lat[atMax]}),
			percentiles(&r.Total),
		},
		Notes: sentences(r),
	}
	if _, err := w.Write(p.SVG()); err != nil {
		return fmt.Errorf("cannot write SVG: %w", err)
	}
	return nil
}

// headCells is how many cells of a line of text from outside are shown.
const headCells = 96

// headText is how much was asked and how much the picture shows.
func headText(r *loadgen.Result) string {
	s := connsText(&r.Plan) + "; " + CountText(r.Total.Done) + " done, " + CountText(r.Total.Failed) + " failed"
	if slices.ContainsFunc(r.Intervals, func(s loadgen.Sample) bool { return recorded(s.Latency) == 0 }) {
		s += "; gaps in the latencies: no answer"
	}
	return s
}

func rateLines(r *loadgen.Result, in []loadgen.Sample) []chart.Line {
	lines := []chart.Line{{Name: "done", Style: chart.Green, Points: rateSeries(in, func(s *loadgen.Sample) int64 { return s.Done })}}
	if r.Plan.Schedule.Kind != loadgen.Max {
		due := chart.Line{Name: "due", Style: chart.Grey, Points: rateSeries(in, func(s *loadgen.Sample) int64 { return s.Due })}
		lines = append([]chart.Line{due}, lines...)
	}
	if r.Total.Failed > 0 {
		lines = append(lines, chart.Line{Name: "failed", Style: chart.Red, Points: rateSeries(in, func(s *loadgen.Sample) int64 { return s.Failed })})
	}
	return lines
}

// nothingAnswered stands in a panel without figures.
const nothingAnswered = "nothing answered"

// timePanel is lines from the start of measuring to end, whose points are at nanoseconds.
func timePanel(title, unit string, end time.Duration, lines ...chart.Line) chart.Panel {
	per, name := timeUnit(end)
	for i := range lines {
		lines[i].Points = scaledBy(lines[i].Points, float64(per), 1)
	}
	x := chart.Axis{Name: name + " since the start of measuring", End: float64(end) / float64(per)}
	return chart.Panel{Title: title, X: x, Y: chart.Axis{Name: unit}, Lines: lines, Empty: nothingAnswered}
}

// latencyPanel is timePanel of nanoseconds.
func latencyPanel(title string, end time.Duration, lines ...chart.Line) chart.Panel {
	var all []float64
	for _, l := range lines {
		for _, p := range l.Points {
			all = append(all, p.Y)
		}
	}
	per, name := latencyUnit(all)
	for i := range lines {
		lines[i].Points = scaledBy(lines[i].Points, 1, per)
	}
	p := timePanel(title, name, end, lines...)
	p.Y.Kind = chart.Ranging
	return p
}

// scaledBy divides the points.
func scaledBy(points []chart.Point, x, y float64) []chart.Point {
	out := make([]chart.Point, len(points))
	for i, p := range points {
		out[i] = chart.Point{X: p.X / x, Y: p.Y / y}
	}
	return out
}

// latencyUnit is the unit in which latencies in nanoseconds are short: that of the middle between
// the least and the greatest, on an axis that is logarithmic where they are far apart.
func latencyUnit(ns []float64) (per float64, name string) {
	low, high := math.Inf(1), 0.0
	for _, v := range ns {
		if v > 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	switch middle := math.Sqrt(low) * math.Sqrt(high); {
	case high == 0 || middle < 1e6:
		return 1e3, "microseconds"
	case middle < 1e9:
		return 1e6, "milliseconds"
	}
	return 1e9, "seconds"
}

// timeUnit is the unit in which a run until end is drawn.
func timeUnit(end time.Duration) (per time.Duration, name string) {
	switch {
	case end > 5*time.Hour:
		return time.Hour, "hours"
	case end > 5*time.Minute:
		return time.Minute, "minutes"
	}
	return time.Second, "seconds"
}

// barQuantiles are the columns of the last chart, the maximum aside.
var (
	barNames     = []string{"p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max"}
	barQuantiles = []float64{50, 75, 90, 95, 99, 99.9, 99.99}
)

// percentiles is the distribution of a whole run, one bar for each percentile.
func percentiles(t *loadgen.Sample) chart.Panel {
	p := chart.Panel{Title: "Latency from the intended start, by percentile", X: chart.Axis{Name: "percentile of requests"}, Names: barNames, Empty: nothingAnswered}
	var bars chart.Bars
	if recorded(t.Latency) > 0 {
		for _, ns := range append(t.Latency.ValueAtPercentilesSlice(barQuantiles), t.Latency.Max()) {
			bars.Values, bars.Labels = append(bars.Values, float64(ns)), append(bars.Labels, LatencyText(ns))
		}
	}
	per, name := latencyUnit(bars.Values)
	for i := range bars.Values {
		bars.Values[i] /= per
	}
	p.Y, p.Bars = chart.Axis{Name: name, Kind: chart.Ranging}, []chart.Bars{bars}
	return p
}

// middle is when the value of an interval is drawn, in nanoseconds.
func middle(s *loadgen.Sample) float64 { return float64(s.From + (s.To-s.From)/2) }

// rateSeries is a rate over time.
func rateSeries(in []loadgen.Sample, of func(*loadgen.Sample) int64) []chart.Point {
	points := make([]chart.Point, len(in))
	for i := range in {
		points[i] = chart.Point{X: middle(&in[i]), Y: perSecond(of(&in[i]), in[i].To-in[i].From)}
	}
	return points
}

// latencySeries are the quantiles of the intervals over time, in the order of quantileNames. An
// interval without answers is a gap.
func latencySeries(in []loadgen.Sample) [len(quantileNames)][]chart.Point {
	var out [len(quantileNames)][]chart.Point
	for i := range in {
		ns, ok := latencies(in[i].Latency)
		for q := range out {
			p := chart.Point{X: middle(&in[i]), Y: math.NaN()}
			if ok {
				p.Y = float64(ns[q])
			}
			out[q] = append(out[q], p)
		}
	}
	return out
}
