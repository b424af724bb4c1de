package benchview

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/loadgen"
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
	return cli.WriteJSON(w, object{
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
