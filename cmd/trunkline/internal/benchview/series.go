package benchview

import (
	"slices"
	"time"

	"trunkline/cmd/trunkline/internal/loadgen"
)

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
