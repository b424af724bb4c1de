package benchview

import (
	"fmt"
	"io"
	"slices"
	"time"

	"trunkline/cmd/trunkline/internal/loadgen"
)

// SVG writes r as one static picture, without script or font of its own: rate and latencies over
// time, and latency by percentile. All axes are linear and begin at zero, and name their units; the
// axis of percentiles is a list of them. Typical latencies and the tail have a chart each, because
// one stall would press the former to the floor. The picture follows the reader's light or dark
// theme. A long run is drawn by at most chartPoints points a line, latencies joined by their
// maximum and rates by minimum and maximum, so that no spike is lost.
func SVG(w io.Writer, r *loadgen.Result) error {
	d := newDrawing(clip(targetText(r.Plan.Target), headCells))
	d.head(clip(scheduleText(&r.Plan), headCells), clip(headText(r), headCells))
	in, end := drawn(r)
	d.overTime(chart{title: "Rate", unit: "requests per second", lines: rateLines(r, in)}, end)
	lat := latencySeries(in)
	d.overTime(latencyChart("Latency from the intended start: p50 and p99",
		series{"p50", "p50", lat[atP50]}, series{"p99", "p99", lat[atP99]}), end)
	d.overTime(latencyChart("Latency from the intended start: p99.9 and maximum",
		series{"p99.9", "p999", lat[atP999]}, series{"max", "max", lat[atMax]}), end)
	d.percentiles(&r.Total)
	d.notes(r)
	if _, err := io.WriteString(w, d.end()); err != nil {
		return fmt.Errorf("cannot write SVG: %w", err)
	}
	return nil
}

// headText is how much was asked and how much the picture shows.
func headText(r *loadgen.Result) string {
	s := connsText(&r.Plan) + "; " + countText(r.Total.Done) + " done, " + countText(r.Total.Failed) + " failed"
	if slices.ContainsFunc(r.Intervals, func(s loadgen.Sample) bool { return recorded(s.Latency) == 0 }) {
		s += "; gaps in the latencies: no answer"
	}
	if n := len(r.Intervals); n > chartPoints {
		s += fmt.Sprintf("; %s intervals, neighbours joined by their extremes", countText(int64(n)))
	}
	return s
}

// drawn are the intervals that were measured, and when the last of them ended.
func drawn(r *loadgen.Result) (in []loadgen.Sample, end time.Duration) {
	in = measuredIntervals(r)
	end = max(r.Total.To, 0)
	if len(in) > 0 {
		end = max(end, in[len(in)-1].To)
	}
	return in, end
}

func rateLines(r *loadgen.Result, in []loadgen.Sample) []series {
	lines := []series{{"done", "done", rateSeries(in, func(s *loadgen.Sample) int64 { return s.Done })}}
	if r.Plan.Schedule.Kind != loadgen.Max {
		lines = append([]series{{"due", "due", rateSeries(in, func(s *loadgen.Sample) int64 { return s.Due })}}, lines...)
	}
	if r.Total.Failed > 0 {
		lines = append(lines, series{"failed", "failed", rateSeries(in, func(s *loadgen.Sample) int64 { return s.Failed })})
	}
	return lines
}

// chart is one set of axes with its lines; unit "" is that of latencies.
type chart struct {
	title, unit string
	lines       []series
}

func latencyChart(title string, lines ...series) chart { return chart{title: title, lines: lines} }

func (c *chart) axis() axis {
	top := most(c.lines)
	if c.unit != "" {
		return newAxis(top, 1, c.unit, 4)
	}
	return latencyAxis(top)
}

// barQuantiles are the columns of the last chart, the maximum aside.
var (
	barNames     = []string{"p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max"}
	barQuantiles = []float64{50, 75, 90, 95, 99, 99.9, 99.99}
)

// percentiles draws the distribution of a whole run, one column for each percentile.
func (d *drawing) percentiles(t *loadgen.Sample) {
	values := make([]int64, 0, len(barNames))
	if recorded(t.Latency) > 0 {
		values = append(t.Latency.ValueAtPercentilesSlice(barQuantiles), t.Latency.Max())
	}
	top := int64(0)
	for _, v := range values {
		top = max(top, v)
	}
	y := latencyAxis(float64(top))
	d.panel("Latency from the intended start, by percentile", y)
	if len(values) == 0 {
		d.empty()
	}
	slot := (plotRight - plotLeft) / float64(len(barNames))
	for i, name := range barNames {
		x := plotLeft + slot*(float64(i)+0.5)
		d.text(x, d.top+plotHeight+18, "tick mid", name)
		if i < len(values) {
			d.column(x, slot*0.6, y.at(float64(values[i])), latencyText(values[i]))
		}
	}
	d.text((plotLeft+plotRight)/2, d.top+plotHeight+36, "tick mid", "percentile of requests")
	d.next()
}
