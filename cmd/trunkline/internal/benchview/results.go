package benchview

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/loadgen"
	"trunkline/cmd/trunkline/loadgen/chart"
)

// jsonFormat is the number of the shape that JSON writes. It changes when a member goes or changes
// its meaning, not when one comes.
const jsonFormat = 1

// JSON writes r as one indented object. Times and latencies are integers in nanoseconds (_ns),
// rates are numbers per second (_per_second), sizes are bytes (_bytes); every latency is from the
// intended start of its request. Members that have no value are null, never left out; they are
// sorted by name.
//
//	format                   1; another number means that members went or changed their meaning
//	plan                     what was asked:
//	  protocol, address      the target, without user name, password and query
//	  schedule               kind ("constant", "ramp", "max"), from_per_second, to_per_second
//	  mix                    for each method: method, weight, body_bytes (0: the built-in body)
//	  connections, depth     and the most requests in flight on each of them
//	  warmup_ns, duration_ns and count: the bounds; count 0 is none
//	  timeout_ns             of one request
//	  interval_ns            of intervals
//	  seed                   a string, as it may be greater than numbers of JSON can hold exactly
//	start                    when measuring began, RFC 3339 with nanoseconds, UTC
//	missed_schedule          true if the generator was late; latest_lag_ns is by how much at most
//	stopped                  true if the run was ended before its time
//	watched                  what watchers received: messages, latency; null without them
//	remarks                  the sentences that Summary ends with
//	total                    what was measured, as one sample
//	intervals                the samples over time, in order; those of a long run are joined
//
// A sample has:
//
//	from_ns, to_ns           since start
//	due, sent, done, failed  requests: to start, written, answered well, ended otherwise
//	in_flight                sent and not ended, at to_ns
//	due_per_second           and sent_, done_, failed_per_second: the same over to_ns - from_ns
//	sent_again               requests kept for another connection (bench --resend)
//	connections_lost         ended unannounced; late_replies came to requests given up before
//	sent_bytes               and received_bytes: on the connections
//	latency                  null if nothing was recorded, else count, min_ns, mean_ns, stddev_ns,
//	                         p50_ns, p75_ns, p90_ns, p95_ns, p99_ns, p999_ns, p9999_ns, max_ns
//	errors                   failed by code
//	methods                  for each method: method, done, failed, latency
func JSON(w io.Writer, r *loadgen.Result) error {
	intervals := make([]object, len(r.Intervals))
	for i := range r.Intervals {
		intervals[i] = sampleOf(&r.Intervals[i])
	}
	var watched object
	if r.Watched != nil {
		watched = object{"messages": r.Watched.Messages, "latency": latencyOf(r.Watched.Latency)}
	}
	return cli.WriteJSON(w, object{
		"watched":         watched,
		"format":          jsonFormat,
		"plan":            planOf(&r.Plan),
		"start":           r.Start.UTC().Format(time.RFC3339Nano),
		"missed_schedule": r.MissedSchedule,
		"latest_lag_ns":   r.LatestLag,
		"stopped":         r.Stopped,
		"remarks":         append([]string{}, sentences(r)...),
		"total":           sampleOf(&r.Total),
		"intervals":       intervals,
	})
}

type object map[string]any

func planOf(p *loadgen.Plan) object {
	mix := make([]object, len(p.Mix))
	for i, sh := range p.Mix {
		mix[i] = object{"method": sh.Name, "weight": sh.Weight, "body_bytes": len(sh.Body)}
	}
	s := &p.Schedule
	return object{
		"protocol":    p.Target.Protocol,
		"address":     address(p.Target),
		"schedule":    object{"kind": kinds[s.Kind], "from_per_second": s.From, "to_per_second": s.To},
		"mix":         mix,
		"connections": p.Conns,
		"depth":       p.Depth,
		"warmup_ns":   p.Warmup,
		"duration_ns": p.Duration,
		"count":       p.Count,
		"timeout_ns":  p.Timeout,
		"interval_ns": p.Interval,
		"seed":        strconv.FormatUint(p.Seed, 10),
	}
}

func sampleOf(s *loadgen.Sample) object {
	byMethod := make([]object, len(s.Methods))
	for i, m := range s.Methods {
		byMethod[i] = object{"method": m.Name, "done": m.Done, "failed": m.Failed, "latency": latencyOf(m.Latency)}
	}
	o := object{
		"from_ns":          s.From,
		"to_ns":            s.To,
		"in_flight":        s.InFlight,
		"sent_again":       s.Resent,
		"connections_lost": s.Lost,
		"late_replies":     s.Late,
		"sent_bytes":       s.Bytes.Sent,
		"received_bytes":   s.Bytes.Received,
		"latency":          latencyOf(s.Latency),
		"errors":           s.Errors,
		"methods":          byMethod,
	}
	for name, n := range map[string]int64{"due": s.Due, "sent": s.Sent, "done": s.Done, "failed": s.Failed} {
		o[name], o[name+"_per_second"] = n, perSecond(n, s.To-s.From)
	}
	return o
}

// latencyOf returns nil where nothing was recorded.
func latencyOf(h *hdrhistogram.Histogram) any {
	if recorded(h) == 0 {
		return nil
	}
	o := object{"count": h.TotalCount(), "min_ns": h.Min(), "mean_ns": h.Mean(), "stddev_ns": h.StdDev()}
	for i, ns := range h.ValueAtPercentilesSlice(barQuantiles) {
		o[strings.ReplaceAll(barNames[i], ".", "")+"_ns"] = ns
	}
	return o
}

// Lines writes one line with the target and the load, "bench phase=start …"; show, which is for one
// goroutine, writes one line per interval, for logs and pipes: the same members in the same order
// on every line, name=value, with the unit in the name and no space in a value. A number that does
// not exist, such as the p99 of no answers, is "-".
//
//	bench phase=measure t_s=3.000 due_per_second=1000 sent_per_second=1000 done_per_second=998
//	  failed_per_second=2 in_flight=3 connections_lost=0 late_replies=1 p50_us=412.3 p90_us=633.1
//	  p99_us=1204.2 p999_us=3411.0 max_us=8020.0 errors=timeout:2
//
// (one line). phase is warmup or measure, t_s the end of the interval in seconds since the start of
// measuring, negative before it; connections_lost and late_replies are those of the interval;
// errors counts its failures by code, the most frequent first, with "_" for spaces, "=", ":" and
// ",".
func Lines(w io.Writer, p loadgen.Plan) (show func(loadgen.Sample)) {
	duration := nothing
	if p.Timed() {
		duration = decimal(p.Duration.Seconds(), 3)
	}
	fmt.Fprintf(w, "bench phase=start protocol=%s target=%s schedule=%s from_per_second=%s to_per_second=%s connections=%d depth=%d"+
		" warmup_s=%s duration_s=%s count=%d interval_s=%s\n",
		value(p.Target.Protocol), value(address(p.Target)), kinds[p.Schedule.Kind], decimal(p.Schedule.From, 0), decimal(p.Schedule.To, 0),
		p.Conns, p.Depth, decimal(p.Warmup.Seconds(), 3), duration, p.Count, decimal(p.Interval.Seconds(), 3))
	return func(s loadgen.Sample) {
		var b strings.Builder
		phase := "measure"
		if s.From < 0 {
			phase = "warmup"
		}
		fmt.Fprintf(&b, "bench phase=%s t_s=%s", phase, decimal(s.To.Seconds(), 3))
		for _, c := range []counted{{"due", s.Due}, {"sent", s.Sent}, {"done", s.Done}, {"failed", s.Failed}} {
			fmt.Fprintf(&b, " %s_per_second=%s", c.name, decimal(perSecond(c.n, s.To-s.From), 0))
		}
		fmt.Fprintf(&b, " in_flight=%d connections_lost=%d late_replies=%d", s.InFlight, s.Lost, s.Late)
		for i, text := range latencyTexts(s.Latency, func(ns int64) string { return decimal(float64(ns)/1e3, 1) }) {
			fmt.Fprintf(&b, " %s_us=%s", strings.ReplaceAll(quantileNames[i], ".", ""), text)
		}
		var codes []string
		for _, k := range byCount(s.Errors) {
			codes = append(codes, strings.ReplaceAll(value(k.name), ":", "_")+":"+strconv.FormatInt(k.n, 10))
		}
		fmt.Fprintf(&b, " errors=%s\n", cmp.Or(strings.Join(codes, ","), nothing))
		_, _ = io.WriteString(w, b.String())
	}
}

// value makes s one word that no reader of name=value takes apart.
func value(s string) string {
	if s == "" {
		return nothing
	}
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '=' || r == ',' || r == '"' {
			return '_'
		}
		return r
	}, Clean(s))
}

// decimal has no exponent and no thousands apart.
func decimal(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// HDRLog writes the interval histograms of r as an HdrHistogram log (histograms in encoding V2),
// for HistogramLogAnalyzer, HistogramLogProcessor and any library that reads such logs. Values are
// nanoseconds; times are seconds, relative to the BaseTime line, which is when measuring began;
// Interval_Max is in milliseconds. An interval without answers has an empty histogram, so that the
// log has no gap. Warming up is not in it.
func HDRLog(w io.Writer, r *loadgen.Result) error {
	log := hdrhistogram.NewHistogramLogWriter(w)
	at := float64(r.Start.UnixMilli()) / 1e3 // the library's lines of times have whole seconds only
	err := errors.Join(log.OutputLogFormatVersion(),
		log.OutputComment("["+targetText(r.Plan.Target)+", "+scheduleText(&r.Plan)+"]"),
		log.OutputComment(fmt.Sprintf("[BaseTime: %.3f (seconds since epoch)]", at)),
		log.OutputComment(fmt.Sprintf("[StartTime: %.3f (seconds since epoch), %s]", at, r.Start.UTC().Format(time.RFC3339))),
		log.OutputLegend())
	if err != nil {
		return fmt.Errorf("cannot write HDR log: %w", err)
	}
	for i := range r.Intervals {
		s := &r.Intervals[i]
		if s.From < 0 {
			continue
		}
		h := loadgen.NewHistogram()
		if s.Latency != nil {
			h = s.Latency.Clone() // to stamp it: r stays as it is
		}
		h.SetStartTimeMs(s.From.Milliseconds())
		h.SetEndTimeMs(s.To.Milliseconds())
		if err := log.OutputIntervalHistogram(h); err != nil {
			return fmt.Errorf("cannot write HDR log: %w", err)
		}
	}
	return nil
}

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
