package benchview

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"trunkline/cmd/trunkline/loadgen"
	"trunkline/cmd/trunkline/loadgen/chart"
)

// SVG writes r as one static picture: rate and latencies over time, and latency by percentile. Axes
// name their units and begin at zero; those of latencies are logarithmic after a stall, which would
// press all others to the floor. There is a point for each interval.
func SVG(w io.Writer, r *loadgen.Result) error {
	in, end := r.Intervals, max(r.Total.To, 0)
	if n := len(in); n > 0 {
		end = max(end, in[n-1].To)
	}
	ended := connsText(&r.Plan) + "; " + CountText(r.Total.Done) + " done, " + CountText(r.Total.Failed) + " failed"
	if slices.ContainsFunc(in, func(s loadgen.Sample) bool { return recorded(s.Latency) == 0 }) {
		ended += "; gaps in the latencies: no answer"
	}
	var rates []chart.Line
	if r.Plan.Schedule.Kind != loadgen.Max {
		rates = append(rates, rateLine(in, "due", chart.Grey, func(s *loadgen.Sample) int64 { return s.Due }))
	}
	rates = append(rates, rateLine(in, "done", chart.Green, func(s *loadgen.Sample) int64 { return s.Done }))
	if r.Total.Failed > 0 {
		rates = append(rates, rateLine(in, "failed", chart.Red, func(s *loadgen.Sample) int64 { return s.Failed }))
	}
	p := chart.Picture{
		Title: "Load on " + clip(targetText(r.Plan.Target), headCells),
		Head:  []string{clip(scheduleText(&r.Plan), headCells), clip(ended, headCells)},
		Panels: []chart.Panel{
			timePanel("Rate", "requests per second", chart.Linear, end, rates...),
			timePanel("Latency from the intended start: p50 and p99", "milliseconds", chart.Ranging, end,
				latencyLine(in, "p50", 50, chart.Blue), latencyLine(in, "p99", 99, chart.Violet)),
			timePanel("Latency from the intended start: p99.9 and maximum", "milliseconds", chart.Ranging, end,
				latencyLine(in, "p99.9", 99.9, chart.Amber), latencyLine(in, "max", 100, chart.Red)),
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

// nothingAnswered stands in a panel without figures.
const nothingAnswered = "nothing answered"

// timePanel is lines from the start of measuring to end.
func timePanel(title, unit string, kind chart.Kind, end time.Duration, lines ...chart.Line) chart.Panel {
	x := chart.Axis{Name: "seconds since the start of measuring", End: end.Seconds()}
	return chart.Panel{Title: title, X: x, Y: chart.Axis{Name: unit, Kind: kind}, Lines: lines, Empty: nothingAnswered}
}

// barQuantiles are the columns of the last chart.
var (
	barNames     = []string{"p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max"}
	barQuantiles = []float64{50, 75, 90, 95, 99, 99.9, 99.99, 100}
)

// percentiles is the distribution of a whole run, one bar for each percentile.
func percentiles(t *loadgen.Sample) chart.Panel {
	p := chart.Panel{Title: "Latency from the intended start, by percentile", X: chart.Axis{Name: "percentile of requests"}, Names: barNames, Empty: nothingAnswered}
	var bars chart.Bars
	if recorded(t.Latency) > 0 {
		for _, ns := range t.Latency.ValueAtPercentilesSlice(barQuantiles) {
			bars.Values, bars.Labels = append(bars.Values, millis(ns)), append(bars.Labels, LatencyText(ns))
		}
	}
	p.Y, p.Bars = chart.Axis{Name: "milliseconds", Kind: chart.Ranging}, []chart.Bars{bars}
	return p
}

func millis(ns int64) float64 { return float64(ns) / 1e6 }

// middle is when the value of an interval is drawn, in seconds.
func middle(s *loadgen.Sample) float64 { return (s.From + (s.To-s.From)/2).Seconds() }

// rateLine is a rate over time.
func rateLine(in []loadgen.Sample, name string, style chart.Style, of func(*loadgen.Sample) int64) chart.Line {
	line := chart.Line{Name: name, Style: style, Points: make([]chart.Point, len(in))}
	for i := range in {
		line.Points[i] = chart.Point{X: middle(&in[i]), Y: perSecond(of(&in[i]), in[i].To-in[i].From)}
	}
	return line
}

// latencyLine is a quantile over time. An interval without answers is a gap.
func latencyLine(in []loadgen.Sample, name string, quantile float64, style chart.Style) chart.Line {
	line := chart.Line{Name: name, Style: style, Points: make([]chart.Point, len(in))}
	for i := range in {
		line.Points[i] = chart.Point{X: middle(&in[i]), Y: math.NaN()}
		if recorded(in[i].Latency) > 0 {
			line.Points[i].Y = millis(in[i].Latency.ValueAtPercentile(quantile))
		}
	}
	return line
}
