package benchview

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"trunkline/cmd/trunkline/internal/loadgen"
)

// Lines writes one line per interval, for logs and pipes: the same members in the same order on
// every line, name=value, with the unit in the name and no space in a value. A number that does not
// exist, such as the p99 of no answers, is "-".
//
//	bench phase=measure t_s=3.000 due_per_second=1000 sent_per_second=1000 done_per_second=998 failed_per_second=2 in_flight=3
//	  connections_lost=0 late_replies=1 p50_us=412.3 p90_us=633.1 p99_us=1204.2 p999_us=3411.0 max_us=8020.0 errors=timeout:2
//
// (one line). phase is warmup or measure, t_s the end of the interval in seconds since the start of
// measuring, negative before it; connections_lost and late_replies are those of the interval;
// errors counts its failures by code, the most frequent first, with "_" for spaces, "=", ":" and
// ",".
type Lines struct {
	w io.Writer
}

// NewLines returns Lines on w, after one line with the target and the load: "bench phase=start
// …".
func NewLines(w io.Writer, p loadgen.Plan) *Lines {
	duration := nothing
	if p.Timed() {
		duration = decimal(p.Duration.Seconds(), 3)
	}
	fmt.Fprintf(w, "bench phase=start protocol=%s target=%s schedule=%s from_per_second=%s to_per_second=%s connections=%d depth=%d"+
		" warmup_s=%s duration_s=%s count=%d interval_s=%s\n",
		value(p.Target.Protocol), value(address(p.Target)), kind(p.Schedule.Kind), decimal(p.Schedule.From, 0), decimal(p.Schedule.To, 0),
		p.Conns, p.Depth, decimal(p.Warmup.Seconds(), 3), duration, p.Count, decimal(p.Interval.Seconds(), 3))
	return &Lines{w: w}
}

// Show writes the line of one interval. It is for one goroutine.
func (l *Lines) Show(s loadgen.Sample) {
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
	ns, ok := latencies(s.Latency)
	for i, name := range quantileNames {
		text := nothing
		if ok {
			text = decimal(float64(ns[i])/1e3, 1)
		}
		fmt.Fprintf(&b, " %s_us=%s", strings.ReplaceAll(name, ".", ""), text)
	}
	b.WriteString(" errors=" + errorsValue(s.Errors) + "\n")
	_, _ = io.WriteString(l.w, b.String())
}

// Close does nothing: every line is complete. It is there so that Lines can stand where Live does.
func (l *Lines) Close() {}

func errorsValue(errs map[string]int64) string {
	kinds := byCount(errs)
	if len(kinds) == 0 {
		return nothing
	}
	texts := make([]string, len(kinds))
	for i, k := range kinds {
		texts[i] = strings.ReplaceAll(value(k.name), ":", "_") + ":" + strconv.FormatInt(k.n, 10)
	}
	return strings.Join(texts, ",")
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
	}, clean(s))
}

// decimal has no exponent and no thousands apart.
func decimal(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }
