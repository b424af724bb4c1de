package benchview

import (
	"fmt"
	"io"
	"slices"
	"time"

	"trunkline/cmd/trunkline/loadgen"
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

// chartPoints is how many points a line of a chart has at most: more than one for two pixels cannot
// be seen.
const chartPoints = 360

// point is one value of a line; none is a gap.
type point struct {
	at   time.Duration
	v    float64
	none bool
}

// series is one line of a chart.
type series struct {
	name, class string
	points      []point
}

// most is the greatest value of the lines.
func most(lines []series) float64 {
	top := 0.0
	for _, s := range lines {
		for _, p := range s.points {
			top = max(top, p.v)
		}
	}
	return top
}

// middle is when the value of an interval is drawn.
func middle(s *loadgen.Sample) time.Duration { return s.From + (s.To-s.From)/2 }

// measuredIntervals are the intervals to draw over time: without warming up, and with a short last
// one joined to the one before it. The former is what came in after the schedule ended, where a
// rate over a few milliseconds would look like a fall or a leap. r stays as it is.
func measuredIntervals(r *loadgen.Result) []loadgen.Sample {
	in := r.Intervals
	for len(in) > 0 && in[0].From < 0 {
		in = in[1:]
	}
	n := len(in)
	if n < 2 || in[n-1].To-in[n-1].From > (in[n-2].To-in[n-2].From)/2 {
		return in
	}
	joined := loadgen.NewSample(nil)
	joined.Add(&in[n-2])
	joined.Add(&in[n-1])
	joined.From = in[n-2].From
	return append(slices.Clone(in[:n-2]), joined)
}

// rateSeries is a rate over time. Neighbours of a long run are joined to their least and their
// greatest value, in the order in which they came: a rate has dips that must not be lost either.
func rateSeries(in []loadgen.Sample, of func(*loadgen.Sample) int64) []point {
	points := make([]point, len(in))
	for i := range in {
		points[i] = point{at: middle(&in[i]), v: perSecond(of(&in[i]), in[i].To-in[i].From)}
	}
	if len(points) <= chartPoints {
		return points
	}
	var out []point
	for _, g := range groups(len(points), chartPoints/2) {
		low, high := g.from, g.from
		for i := g.from; i < g.to; i++ {
			if points[i].v < points[low].v {
				low = i
			}
			if points[i].v > points[high].v {
				high = i
			}
		}
		if low != high {
			out = append(out, points[min(low, high)])
		}
		out = append(out, points[max(low, high)])
	}
	return out
}

// latencySeries are the quantiles of the intervals over time, in the order of quantileNames.
// Neighbours of a long run are joined by their maximum; an interval without answers is a gap.
func latencySeries(in []loadgen.Sample) [len(quantileNames)][]point {
	var out [len(quantileNames)][]point
	for _, g := range groups(len(in), chartPoints) {
		var best [len(quantileNames)]point
		for q := range best {
			best[q] = point{at: middle(&in[g.from]), none: true}
		}
		for i := g.from; i < g.to; i++ {
			ns, ok := latencies(in[i].Latency)
			for q := range best {
				if ok && (best[q].none || float64(ns[q]) > best[q].v) {
					best[q] = point{at: middle(&in[i]), v: float64(ns[q])}
				}
			}
		}
		for q := range best {
			out[q] = append(out[q], best[q])
		}
	}
	return out
}

type group struct{ from, to int }

// groups divides n things in order into at most k groups of about the same size.
func groups(n, k int) []group {
	k = min(n, k)
	out := make([]group, k)
	for i := range out {
		out[i] = group{i * n / k, (i + 1) * n / k}
	}
	return out
}
