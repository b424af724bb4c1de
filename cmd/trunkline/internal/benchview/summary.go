package benchview

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"trunkline/cmd/trunkline/internal/loadgen"
)

// summaryCells is how wide the tables of Summary are where names allow it.
const summaryCells = 80

// Summary writes what was asked and what happened: requests, errors, latencies of all and of each method, how rate and p99 went over
// time, and a plain sentence for each thing a reader must know before he trusts the numbers. At most 80 columns wide, without colours:
// the same for a terminal and for a file. Errors of w are not told; who must know them wraps w.
func Summary(w io.Writer, r *loadgen.Result) {
	parts := [][]string{asked(r), requests(r), failures(r), byMethod(r), overTimeTexts(r), remarks(r)}
	var b strings.Builder
	for _, lines := range parts {
		if len(lines) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		for _, l := range lines {
			b.WriteString(strings.TrimRight(l, " ") + "\n")
		}
	}
	_, _ = io.WriteString(w, b.String())
}

func asked(r *loadgen.Result) []string {
	p := &r.Plan
	span := measured(r)
	lines := []string{
		"target    " + clip(targetText(p.Target), summaryCells-10),
		"with      " + connsText(p) + ", timeout " + spanText(p.Timeout) + ", seed " + fmt.Sprint(p.Seed),
		"measured  " + spanText(span.Round(time.Millisecond)),
	}
	if !r.Start.IsZero() {
		lines[2] += " from " + r.Start.UTC().Format(time.RFC3339)
	}
	for i, s := range wrap(scheduleText(p), summaryCells-10) {
		label := "asked     "
		if i > 0 {
			label = blanks(len(label))
		}
		lines = slices.Insert(lines, 1+i, label+s)
	}
	return lines
}

func measured(r *loadgen.Result) time.Duration { return max(r.Total.To-r.Total.From, 0) }

func requests(r *loadgen.Result) []string {
	t, d := &r.Total, measured(r)
	of := func(name string, n int64) []string {
		return []string{name, countText(n), rateText(perSecond(n, d)), shareText(n, t.Due)}
	}
	size := func(name string, n int64) []string {
		return []string{name, bytesText(n), bytesText(whole(perSecond(n, d))), ""}
	}
	rows := [][]string{
		of("due", t.Due), of("sent", t.Sent), of("done", t.Done), of("failed", t.Failed),
		size("bytes sent", t.Bytes.Sent), size("bytes received", t.Bytes.Received),
	}
	for _, c := range []counted{{"late replies", t.Late}, {"connections lost", t.Lost}} {
		if c.n > 0 {
			rows = append(rows, []string{c.name, countText(c.n), rateText(perSecond(c.n, d)), ""})
		}
	}
	return table(summaryCells, []column{{head: "requests"}, {head: "number"}, {head: "per second"}, {head: "of those due"}}, rows)
}

func failures(r *loadgen.Result) []string {
	kinds := byCount(r.Total.Errors)
	if len(kinds) == 0 {
		return nil
	}
	rows := make([][]string, len(kinds))
	for i, k := range kinds {
		rows[i] = []string{clean(k.name), countText(k.n), shareText(k.n, r.Total.Failed)}
	}
	return table(summaryCells, []column{{head: "errors"}, {head: "number"}, {head: "of those failed"}}, rows)
}

// byMethod has the latencies of all requests and those of each method; of one method, only all.
func byMethod(r *loadgen.Result) []string {
	t := &r.Total
	cols := []column{{head: "method"}, {head: "done"}, {head: "failed"}}
	for _, q := range quantileNames {
		cols = append(cols, column{head: q})
	}
	methodRow := func(name string, m *loadgen.MethodSample) []string {
		return append([]string{clean(name), countText(m.Done), countText(m.Failed)}, latencyTexts(m.Latency)...)
	}
	names := methods(&r.Plan, t.ByMethod)
	rows := [][]string{methodRow("all", &loadgen.MethodSample{Done: t.Done, Failed: t.Failed, Latency: t.Latency})}
	for _, name := range names {
		rows = append(rows, methodRow(name, t.ByMethod[name]))
	}
	if len(names) == 1 {
		rows = rows[1:]
	}
	return append([]string{"latency from the intended start of each request; a timeout counts with its time"}, table(summaryCells, cols, rows)...)
}

// overTimeTexts draws rate and p99 of the intervals.
func overTimeTexts(r *loadgen.Result) []string {
	in := measuredIntervals(r)
	if len(in) < 2 {
		return nil
	}
	var rates, p99s []float64
	for i := range in {
		s := &in[i]
		rates = append(rates, perSecond(s.Done, s.To-s.From))
		ns, _ := latencies(s.Latency)
		p99s = append(p99s, float64(ns[atP99]))
	}
	rate, top := sparkline(rates, sparkCells)
	p99, slowest := sparkline(p99s, sparkCells)
	n := cells(rate)
	return []string{
		"over time",
		"done/s  " + padRight(rate, n) + "  0 to " + rateText(top),
		"p99     " + padRight(p99, n) + "  0 to " + latencyText(whole(slowest)),
	}
}
