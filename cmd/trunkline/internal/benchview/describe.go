// Package benchview shows what a run of loadgen did: to people while it runs (one line of a
// terminal that is written over, or one line per interval), to people at the end (tables and plain
// sentences), and to programs (JSON, an HdrHistogram log, SVG).
//
//	loadgen.Sample ──► Status  a terminal: one line that is written over
//	                ─► Lines   anything else: one line per interval
//	loadgen.Result ──► Summary the tables at the end
//	                ─► JSON, HDRLog, SVG
//
// Every latency is from the intended start of its request. Texts that a server sent (its error
// codes) or that came from a flag (names, addresses) are cleaned before they are shown: no control
// character of theirs reaches a terminal. Tokens, bodies and the passwords of addresses are never
// shown.
//
// The charts are written by hand: a verb that answers once must start within milliseconds, and
// every package that the program imports is initialised at every start.
package benchview

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"trunkline/cmd/trunkline/loadgen"
	"trunkline/cmd/trunkline/loadgen/chart"
)

// address is where a target listens, fit to show: without the user name, the password and the query
// of a URL, where secrets are put.
func address(t loadgen.Target) string {
	scheme, rest, ok := strings.Cut(t.Addr, "://")
	if !ok || scheme == "unix" {
		return Clean(t.Addr)
	}
	rest, _, asks := strings.Cut(rest, "?")
	host, path, slash := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if slash {
		host += "/" + path
	}
	if asks {
		host += "?…"
	}
	return Clean(scheme + "://" + host)
}

func targetText(t loadgen.Target) string { return Clean(t.Protocol) + " " + address(t) }

func connsText(p *loadgen.Plan) string {
	noun := "connections"
	if p.Conns == 1 {
		noun = "connection"
	}
	return fmt.Sprintf("%s %s × depth %s", CountText(int64(p.Conns)), noun, CountText(int64(p.Depth)))
}

// scheduleText is the schedule with its bounds: what the run was asked for.
func scheduleText(p *loadgen.Plan) string {
	var b strings.Builder
	switch p.Schedule.Kind {
	case loadgen.Ramp:
		fmt.Fprintf(&b, "ramp from %s/s to %s/s", RateText(p.Schedule.From), RateText(p.Schedule.To))
	case loadgen.Max:
		b.WriteString("as fast as it goes")
	default:
		fmt.Fprintf(&b, "constant %s/s", RateText(p.Schedule.To))
	}
	if p.Timed() {
		b.WriteString(" for " + spanText(p.Duration))
	}
	if p.Count > 0 {
		b.WriteString(", at most " + CountText(p.Count) + " requests")
	}
	if p.Warmup > 0 {
		b.WriteString(", after " + spanText(p.Warmup) + " of warm-up")
	}
	return b.String()
}

// kinds names the schedules for programs, as --rate would spell them.
var kinds = [...]string{loadgen.Constant: "constant", loadgen.Ramp: "ramp", loadgen.Max: "max"}

// counted is a code or a name and how often it came.
type counted struct {
	name string
	n    int64
}

// byCount sorts codes: the most frequent first, equal ones by name.
func byCount(errs map[string]int64) []counted {
	out := make([]counted, 0, len(errs))
	for name, n := range errs {
		if n > 0 {
			out = append(out, counted{name, n})
		}
	}
	slices.SortFunc(out, func(a, b counted) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name))
	})
	return out
}

// fewLatencies is the number below which p99.9 is the slowest request and nothing more.
const fewLatencies = 1000

// sentences are those without which the numbers of r would be misread; none if nothing is wrong.
func sentences(r *loadgen.Result) []string {
	t := &r.Total
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r.Stopped {
		say("The run was ended before its time: what was due and not yet answered then is neither done nor failed.")
	}
	switch ended := t.Done + t.Failed; {
	case t.Due == 0 && ended == 0:
		say("Nothing was measured: no request was due before the run ended.")
	case t.Errors[loadgen.ErrorTimeout]+t.Errors[loadgen.ErrorLost]+t.Errors[loadgen.ErrorUnconnected] >= ended:
		say("Nothing answered: of %s requests that were due, not one got a reply. %s", CountText(t.Due), mostOften(t))
	case t.Done == 0:
		say("Every request failed: not one of %s replies was a result. %s", CountText(ended), mostOften(t))
	}
	if r.MissedSchedule {
		say("The generator could not keep its own schedule: it was late by up to %s, and the latencies hold that lag. "+
			"They depend on this machine as much as on the server. Ask for less, or give the generator more processors.",
			LatencyText(int64(r.LatestLag)))
	}
	if w := r.Watched; w != nil {
		say("%s watchers received %s messages (%s/s), p50 %s and p99 %s after the time of the message.", CountText(int64(r.Plan.Watch.Subscriptions)),
			CountText(w.Messages), CountText(whole(perSecond(w.Messages, measured(r)))), LatencyText(w.Latency.ValueAtQuantile(50)), LatencyText(w.Latency.ValueAtQuantile(99)))
	}
	leftOver := int64(0) // due and not sent without a slow part: ending a run takes a moment
	if r.Stopped {
		leftOver = whole(perSecond(t.Due, measured(r)) / 10)
	}
	if n := t.Due - t.Sent - t.Errors[loadgen.ErrorUnconnected]; n > leftOver && r.Plan.Schedule.Kind != loadgen.Max {
		say("The server did not keep up with the schedule: %s requests (%s) were due and never sent, because every place "+
			"(connections × depth) was taken.", CountText(n), shareText(n, t.Due))
	}
	if r.Plan.Schedule.Kind == loadgen.Max && t.Done > 0 {
		say("There was no schedule: each connection was kept at its depth. Such latencies say nothing about the server at a given rate.")
	}
	if n := recorded(t.Latency); n > 0 && n < fewLatencies {
		say("With fewer than %s latencies, p99.9 is the slowest of them and says no more than the maximum.", CountText(fewLatencies))
	}
	return out
}

func mostOften(t *loadgen.Sample) string {
	kinds := byCount(t.Errors)
	if len(kinds) == 0 {
		return ""
	}
	return "Most often: " + Clean(kinds[0].name) + "."
}

// nothing stands where there is no number: nothing answered, so there is no latency.
const nothing = "-"

// LatencyText is a latency for people: three digits in the greatest unit (µs, ms, s) in which it
// does not round to less than 1, at most 8 cells for all that a histogram can hold.
func LatencyText(ns int64) string {
	v, unit := float64(ns)/1e3, "µs"
	switch {
	case ns <= 0:
		return "0 µs"
	case v >= 999.5e3:
		v, unit = v/1e6, "s"
	case v >= 999.5:
		v, unit = v/1e3, "ms"
	}
	return threeDigits(v) + " " + unit
}

func threeDigits(v float64) string {
	switch {
	case v < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return CountText(whole(v))
}

func whole(v float64) int64 { return int64(math.Round(v)) }

// CountText is a count with its thousands apart: 1,234,567.
func CountText(n int64) string { return chart.Thousands(strconv.FormatInt(n, 10)) }

// perSecond is how many of n there were in each second of d; 0 if d is not positive.
func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// RateText is a number per second, without its unit. Small rates keep three digits, whole ones no
// fraction.
func RateText(v float64) string {
	if v == math.Trunc(v) || math.Abs(v) >= 99.95 {
		return CountText(whole(v))
	}
	return threeDigits(v)
}

// shareText is part of total in percent, never rounded to nothing or to all.
func shareText(part, total int64) string {
	if part <= 0 || total <= 0 {
		return "0 %"
	}
	v := 100 * float64(part) / float64(total)
	switch {
	case part >= total:
		return "100 %"
	case v < 0.001:
		return "<0.001 %"
	case v < 0.1:
		return strconv.FormatFloat(v, 'f', 3, 64) + " %"
	case v > 99.9:
		return ">99.9 %"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " %"
}

// spanText is a duration as flags take it: 90s is 1m30s, and a minute is 1m and not 1m0s.
func spanText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// quantiles are what tables and lines show of a histogram.
var (
	quantileNames = [...]string{"p50", "p90", "p99", "p99.9", "max"}
	quantiles     = []float64{50, 90, 99, 99.9, 100}
)

// recorded is how many latencies h holds; nil holds none.
func recorded(h *hdrhistogram.Histogram) int64 {
	if h == nil {
		return 0
	}
	return h.TotalCount()
}

// latencyTexts are the quantiles of h, each as text.
func latencyTexts(h *hdrhistogram.Histogram, text func(ns int64) string) []string {
	if recorded(h) == 0 {
		return slices.Repeat([]string{nothing}, len(quantiles))
	}
	out := make([]string, len(quantiles))
	for i, ns := range h.ValueAtPercentilesSlice(quantiles) {
		out[i] = text(ns)
	}
	return out
}
