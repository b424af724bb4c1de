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
			timePanel("Rate", "requests per second", chart.Linear, end, rateLines(r, in)...),
			timePanel("Latency from the intended start: p50 and p99", "milliseconds", chart.Ranging, end,
				chart.Line{Name: "p50", Style: chart.Blue, Points: lat[atP50]}, chart.Line{Name: "p99", Style: chart.Violet, Points: lat[atP99]}),
			timePanel("Latency from the intended start: p99.9 and maximum", "milliseconds", chart.Ranging, end,
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

// timePanel is lines from the start of measuring to end.
func timePanel(title, unit string, kind chart.Kind, end time.Duration, lines ...chart.Line) chart.Panel {
	x := chart.Axis{Name: "seconds since the start of measuring", End: end.Seconds()}
	return chart.Panel{Title: title, X: x, Y: chart.Axis{Name: unit, Kind: kind}, Lines: lines, Empty: nothingAnswered}
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
			bars.Values, bars.Labels = append(bars.Values, millis(ns)), append(bars.Labels, LatencyText(ns))
		}
	}
	p.Y, p.Bars = chart.Axis{Name: "milliseconds", Kind: chart.Ranging}, []chart.Bars{bars}
	return p
}

func millis(ns int64) float64 { return float64(ns) / 1e6 }

// middle is when the value of an interval is drawn, in seconds.
func middle(s *loadgen.Sample) float64 { return (s.From + (s.To-s.From)/2).Seconds() }

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
				p.Y = millis(ns[q])
			}
			out[q] = append(out[q], p)
		}
	}
	return out
}
