package benchview

import (
	"math"
	"slices"
	"strings"
	"time"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/loadgen"
)

// LiveRows is how many rows a terminal must have for Live to be of use: the block up to the
// latencies and the line of the cursor. What does not fit is left out from below. Lines is for
// lower ones.
const LiveRows = 12

// blockMethods is how many rows the mix takes at most, so that all fits into the 24 rows of the
// common terminal.
const blockMethods = 6

// The most cells of the progress bar and of a sparkline.
const (
	barCells   = 32
	sparkCells = 48
	scaleCells = 16 // what stands behind a sparkline
)

// head is what changes with the clock.
func head(p *loadgen.Plan, t *tally, passed time.Duration, width int) []Line {
	return []Line{
		Labelled(width, "bench", Span{targetText(p.Target), Strong}, Span{connsText(p), Plain}),
		Labelled(width, "asked", Span{scheduleText(p), Plain}),
		progress(p, t, passed, width),
	}
}

// body is what changes with each sample only. It goes through every histogram.
func body(p *loadgen.Plan, t *tally, width int) []Line {
	out := append([]Line{nil}, counts(t, width)...)
	out = append(out, nil)
	out = append(out, latencyLines(t, width)...)
	out = append(out, nil,
		overTime(width, "done/s", t.rates, func(v float64) string { return RateText(v) + "/s" }),
		overTime(width, "p99", t.p99s, func(v float64) string { return LatencyText(whole(v)) }),
		nil)
	return append(out, mix(p, t, width)...)
}

// fit leaves out what rows do not hold: first the empty lines from below, then the last ones.
func fit(lines []Line, rows int) []Line {
	for i := len(lines) - 1; i >= 0 && len(lines) > rows; i-- {
		if lines[i] == nil {
			lines = slices.Delete(lines, i, i+1)
		}
	}
	return lines[:min(len(lines), max(rows, 0))]
}

// progress is how far the run is, by the bound that ends it first.
func progress(p *loadgen.Plan, t *tally, passed time.Duration, width int) Line {
	phase, share, text := stage(p, t, passed)
	n := min(barCells, width-labelCells-len("measuring")-1-len(" 100 %")-2-cells(text))
	l := Line{{padRight("now", labelCells), Faint}, {padRight(phase, len("measuring")) + " ", Strong}}
	if share >= 0 && n >= 4 {
		done, rest := bar(share, n)
		l = append(l, Span{done, Good}, Span{rest, Faint})
	}
	if share >= 0 {
		l = append(l, Span{padLeft(percentText(share), len(" 100 %")), Plain})
	}
	return append(l, Span{"  " + text, Plain})
}

// stage names the phase of the run; share is negative where it is not known.
func stage(p *loadgen.Plan, t *tally, passed time.Duration) (phase string, share float64, text string) {
	switch {
	case t.samples == 0:
		return "starting", -1, "waiting for the first interval"
	case passed < 0:
		done := p.Warmup + passed
		return "warm-up", ratio(float64(done), float64(p.Warmup)), passedText(done) + " of " + spanText(p.Warmup)
	}
	text = passedText(passed)
	share = -1
	if p.Timed() {
		share = ratio(float64(passed), float64(p.Duration))
		text += " of " + spanText(p.Duration)
	}
	if p.Count > 0 {
		share = max(share, ratio(float64(t.sum.Done+t.sum.Failed), float64(p.Count)))
	}
	if p.Timed() && passed >= p.Duration {
		return "finishing", 1, text
	}
	return "measuring", share, text
}

func ratio(part, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return min(max(part/of, 0), 1)
}

func percentText(share float64) string { return CountText(int64(share*100)) + " %" }

// bar is a bar of n cells in eighths, and what is left of it.
func bar(share float64, n int) (done, rest string) {
	eighths := int(share * float64(8*n))
	done = strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		done += string([]rune("▏▎▍▌▋▊▉")[part-1])
	}
	return done, strings.Repeat("·", n-cells(done))
}

// counts are the rates of the newest interval, the sums, what happened to the connections, and the
// errors.
func counts(t *tally, width int) []Line {
	s, sum := &t.newest, &t.sum
	d := s.To - s.From
	rate := func(n int64) string { return RateText(perSecond(n, d)) + "/s" }
	return []Line{
		Labelled(width, "rate", Span{"due " + rate(s.Due), Plain}, Span{"done " + rate(s.Done), Strong},
			Span{"failed " + rate(s.Failed), alarm(s.Failed)}, Span{"sent " + rate(s.Sent), Plain}),
		Labelled(width, "total", Span{"done " + CountText(sum.Done), Strong}, Span{"failed " + CountText(sum.Failed), alarm(sum.Failed)},
			Span{"in flight " + CountText(s.InFlight), Plain}),
		Labelled(width, "conns", Span{"lost " + CountText(sum.Lost), alarm(sum.Lost)}, Span{"late replies " + CountText(sum.Late), alarm(sum.Late)},
			Span{"out " + bytesText(sum.Bytes.Sent), Plain}, Span{"in " + bytesText(sum.Bytes.Received), Plain}),
		errorLine(sum.Errors, width),
	}
}

func bytesText(n int64) string { return cli.Bytes(uint64(max(n, 0))) }

func alarm(n int64) Style {
	if n > 0 {
		return Bad
	}
	return Plain
}

// errorLine lists the codes that fit, and how many kinds do not.
func errorLine(errs map[string]int64, width int) Line {
	kinds := byCount(errs)
	if len(kinds) == 0 {
		return Labelled(width, "errors", Span{"none", Faint})
	}
	var items []Span
	used := labelCells
	for i, k := range kinds {
		text := Clean(k.name) + " " + CountText(k.n)
		more := ""
		if i+1 < len(kinds) {
			more = CountText(int64(len(kinds)-i-1)) + " more kinds"
		}
		if i > 0 && used+2+cells(text)+2+cells(more) > width {
			items = append(items, Span{CountText(int64(len(kinds)-i)) + " more kinds", Faint})
			break
		}
		items = append(items, Span{text, Bad})
		used += 2 + cells(text)
	}
	return Labelled(width, "errors", items...)
}

// quantileDrops is the order in which a narrow table leaves quantiles out: p90 first, then p99.9,
// then the maximum.
var quantileDrops = [len(quantileNames)]int{0, 9, 0, 8, 7}

func latencyColumns(name string) []Column {
	cols := []Column{{Head: name}}
	for i, q := range quantileNames {
		cols = append(cols, Column{Head: padLeft(q, len("99.9 ms")), Drop: quantileDrops[i]})
	}
	return cols
}

// latencyLines are the quantiles of the newest interval and of all that was measured.
func latencyLines(t *tally, width int) []Line {
	newest := "last"
	if d := t.newest.To - t.newest.From; d > 0 {
		newest += " " + spanText(roundSpan(d))
	}
	rows := [][]string{
		append([]string{newest}, latencyTexts(t.newest.Latency)...),
		append([]string{"measured"}, latencyTexts(t.sum.Latency)...),
	}
	return headed(Table(width, latencyColumns("latency"), rows))
}

// roundSpan leaves two or three digits of a duration, so that an interval that is a little short
// does not widen its column.
func roundSpan(d time.Duration) time.Duration {
	if d < 100*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}

func headed(texts []string) []Line {
	out := make([]Line, len(texts))
	for i, s := range texts {
		as := Plain
		if i == 0 {
			as = Faint
		}
		out[i] = Line{{s, as}}
	}
	return out
}

// overTime is a sparkline over the last intervals with its scale.
func overTime(width int, label string, h history, text func(float64) string) Line {
	n := min(sparkCells, width-labelCells-scaleCells)
	drawn, top := sparkline(h.last(n), n)
	scale := "0 to " + text(top)
	if len(h) == 0 {
		scale = ""
	}
	return Line{{padRight(label, labelCells), Faint}, {padRight(drawn, n), Good}, {"  " + scale, Faint}}
}

// mix is one row for each method, or for the first of many.
func mix(p *loadgen.Plan, t *tally, width int) []Line {
	names := methods(p, t.newest.ByMethod)
	if len(names) == 0 {
		names = planned(p)
	}
	rows := make([][]string, 0, blockMethods+1)
	for i, name := range names {
		if i == blockMethods-1 && len(names) > blockMethods {
			rows = append(rows, []string{"and " + CountText(int64(len(names)-i)) + " more"})
			break
		}
		rows = append(rows, mixRow(t, name))
	}
	cols := []Column{{Head: "method"}, {Head: "share", Drop: 9}, {Head: "done/s"}, {Head: "failed", Drop: 6}, {Head: "p50", Drop: 8}, {Head: "p99"}, {Head: "max", Drop: 7}}
	for i := range cols[1:] {
		cols[i+1].Head = padLeft(cols[i+1].Head, len("99.9 ms"))
	}
	return headed(Table(width, cols, rows))
}

func planned(p *loadgen.Plan) []string {
	names := make([]string, len(p.Mix))
	for i, sh := range p.Mix {
		names[i] = sh.Name
	}
	return names
}

// mixRow has the rate of the newest interval and what was measured of one method.
func mixRow(t *tally, name string) []string {
	now, sum := t.newest.ByMethod[name], t.sum.ByMethod[name]
	if now == nil {
		now = &loadgen.MethodSample{}
	}
	if sum == nil {
		sum = &loadgen.MethodSample{}
	}
	texts := latencyTexts(sum.Latency)
	return []string{
		Clean(name),
		shareText(sum.Done, t.sum.Done),
		RateText(perSecond(now.Done, t.newest.To-t.newest.From)),
		CountText(sum.Failed),
		texts[atP50], texts[atP99], texts[atMax],
	}
}

// sparks are the eighths of a cell, from the least.
var sparks = [...]rune{'▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}

// sparkline draws values as one cell each, linear from zero to the greatest of them, which it also
// returns. Zero is a blank, so that a standstill is seen; anything above it is seen too. More
// values than width are joined by their maximum.
func sparkline(values []float64, width int) (line string, top float64) {
	values = joinByMax(values, width)
	for _, v := range values {
		top = max(top, v)
	}
	out := make([]rune, len(values))
	for i, v := range values {
		out[i] = ' '
		if v > 0 {
			out[i] = sparks[min(int(math.Ceil(v/top*float64(len(sparks)))), len(sparks))-1]
		}
	}
	return string(out), top
}

// joinByMax returns at most n values: neighbours are joined by their maximum, so that no spike is
// lost.
func joinByMax(values []float64, n int) []float64 {
	parts := groups(len(values), max(n, 0))
	out := make([]float64, len(parts))
	for i, g := range parts {
		out[i] = slices.Max(values[g.from:g.to])
	}
	return out
}

// historyIntervals is how many intervals the block looks back: more than the widest terminal shows.
const historyIntervals = 512

// history is the last historyIntervals values, in order.
type history []float64

func (h *history) add(v float64) {
	if len(*h) == historyIntervals {
		copy(*h, (*h)[1:])
		*h = (*h)[:historyIntervals-1]
	}
	*h = append(*h, v)
}

// last returns the newest n values, fewer if there are fewer.
func (h history) last(n int) []float64 {
	return h[max(len(h)-max(n, 0), 0):]
}

// tally is what the block knows of a run: the newest sample, the sums of what was measured, and the
// last intervals. It keeps nothing of a sample but the newest, whose histograms it only reads.
type tally struct {
	newest      loadgen.Sample
	samples     int
	sum         loadgen.Sample
	rates, p99s history
}

func newTally() *tally { return &tally{sum: loadgen.NewSample(nil)} }

// add takes one interval. Warming up shows, but does not count.
func (t *tally) add(s loadgen.Sample) {
	t.newest = s
	t.samples++
	t.rates.add(perSecond(s.Done, s.To-s.From))
	ns, _ := latencies(s.Latency)
	t.p99s.add(float64(ns[atP99]))
	if s.From >= 0 {
		t.sum.Add(&s)
	}
}
