package benchview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trunkline/cmd/trunkline/internal/loadgen"
)

// address is where a target listens, fit to show: without the user name, the password and the query
// of a URL, where secrets are put.
func address(t loadgen.Target) string {
	scheme, rest, ok := strings.Cut(t.Addr, "://")
	if !ok || scheme == "unix" {
		return clean(t.Addr)
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
	return clean(scheme + "://" + host)
}

func targetText(t loadgen.Target) string { return clean(t.Protocol) + " " + address(t) }

func connsText(p *loadgen.Plan) string {
	noun := "connections"
	if p.Conns == 1 {
		noun = "connection"
	}
	return fmt.Sprintf("%s %s × depth %s", countText(int64(p.Conns)), noun, countText(int64(p.Depth)))
}

// scheduleText is the schedule with its bounds: what the run was asked for.
func scheduleText(p *loadgen.Plan) string {
	var b strings.Builder
	switch p.Schedule.Kind {
	case loadgen.Ramp:
		fmt.Fprintf(&b, "ramp from %s/s to %s/s", rateText(p.Schedule.From), rateText(p.Schedule.To))
	case loadgen.Max:
		b.WriteString("as fast as it goes")
	default:
		fmt.Fprintf(&b, "constant %s/s", rateText(p.Schedule.To))
	}
	if p.Timed() {
		b.WriteString(" for " + spanText(p.Duration))
	}
	if p.Count > 0 {
		b.WriteString(", at most " + countText(p.Count) + " requests")
	}
	if p.Warmup > 0 {
		b.WriteString(", after " + spanText(p.Warmup) + " of warm-up")
	}
	return b.String()
}

// kind names a schedule for programs, as --rate would spell it.
func kind(k loadgen.ScheduleKind) string {
	switch k {
	case loadgen.Ramp:
		return "ramp"
	case loadgen.Max:
		return "max"
	}
	return "constant"
}

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

// methods lists the names of s in the order of the mix, then what the mix does not name, sorted.
// Each comes once.
func methods(p *loadgen.Plan, by map[string]*loadgen.MethodSample) []string {
	out := make([]string, 0, len(by))
	for _, sh := range p.Mix {
		if by[sh.Name] != nil && !slices.Contains(out, sh.Name) {
			out = append(out, sh.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if by[name] != nil && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// fewLatencies is the number below which p99.9 is the slowest request and nothing more.
const fewLatencies = 1000

// remarks are the sentences without which the numbers of r would be misread, each wrapped to width.
func remarks(r *loadgen.Result, width int) []string {
	var out []string
	for _, s := range sentences(r) {
		out = append(out, wrap(s, width)...)
	}
	return out
}

// sentences describe what is wrong with a run or with how it may be read; none if nothing is.
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
	case unanswered(t) >= ended:
		say("Nothing answered: of %s requests that were due, not one got a reply. %s", countText(t.Due), mostOften(t))
	case t.Done == 0:
		say("Every request failed: not one of %s replies was a result. %s", countText(ended), mostOften(t))
	}
	if r.MissedSchedule {
		say("The generator could not keep its own schedule: it was late by up to %s, and the latencies hold that lag. "+
			"They tell of this machine as much as of the server. Ask for less, or give the generator more processors.",
			latencyText(int64(r.LatestLag)))
	}
	if n := t.Due - t.Sent - t.Errors[loadgen.ErrorUnconnected]; n > leftOver(r) && r.Plan.Schedule.Kind != loadgen.Max {
		say("The server did not keep up with the schedule: %s requests (%s) were due and never sent, because every place "+
			"(connections × depth) was taken.", countText(n), shareText(n, t.Due))
	}
	if r.Plan.Schedule.Kind == loadgen.Max && t.Done > 0 {
		say("There was no schedule: each connection was kept at its depth. Such latencies say nothing about the server at a given rate.")
	}
	if n := recorded(t.Latency); n > 0 && n < fewLatencies {
		say("With fewer than %s latencies, p99.9 is the slowest of them and says no more than the maximum.", countText(fewLatencies))
	}
	return out
}

// leftOver is how many requests may be due and not sent without a slow part: when a run is
// ended, those of a tenth of a second, for ending it takes a moment.
func leftOver(r *loadgen.Result) int64 {
	if r.Stopped {
		return whole(perSecond(r.Total.Due, measured(r)) / 10)
	}
	return 0
}

// unanswered counts the failures that no server spoke of.
func unanswered(t *loadgen.Sample) int64 {
	n := int64(0)
	for _, code := range []string{loadgen.ErrorTimeout, loadgen.ErrorLost, loadgen.ErrorUnconnected} {
		n += t.Errors[code]
	}
	return n
}

func mostOften(t *loadgen.Sample) string {
	kinds := byCount(t.Errors)
	if len(kinds) == 0 {
		return ""
	}
	return "Most often: " + clean(kinds[0].name) + "."
}

// wrap breaks s between words into lines of at most width cells; a longer word stays whole.
func wrap(s string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(s) {
		last := len(lines) - 1
		if last >= 0 && cells(lines[last])+1+cells(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
