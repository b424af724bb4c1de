package benchview

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/loadgen"
)

// summaryCells is how wide Summary is at most, and where nothing is known of who reads it.
const summaryCells = 80

// quantileDrops is the order in which a narrow table leaves quantiles out: p90 first, then p99.9,
// then the maximum.
var quantileDrops = [len(quantileNames)]int{0, 9, 0, 8, 7}

// Summary writes what was asked and what happened: requests, errors, latencies of all and of each
// method, and a plain sentence for each thing a reader must know before he trusts the numbers. It
// is without colours, and 80 columns wide, the same for a terminal and for a file; where width is
// positive and less, names are cut and quantiles left out. Errors of w are ignored; a caller that
// needs them wraps w.
func Summary(w io.Writer, width int, r *loadgen.Result) {
	if width <= 0 || width > summaryCells {
		width = summaryCells
	}
	parts := [][]string{asked(r, width), requests(r, width), failures(r, width), byMethod(r, width)}
	var remarks []string
	for _, sentence := range sentences(r) {
		remarks = append(remarks, cli.Wrap(sentence, width)...)
	}
	var b strings.Builder
	for _, lines := range append(parts, remarks) {
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

func asked(r *loadgen.Result, width int) []string {
	p := &r.Plan
	span := spanText(measured(r).Round(time.Millisecond))
	if !r.Start.IsZero() {
		span += " from " + r.Start.UTC().Format(time.RFC3339)
	}
	const indent = len("measured  ")
	lines := []string{"target    " + clip(targetText(p.Target), width-indent)}
	for _, item := range [][2]string{
		{"asked", scheduleText(p)},
		{"with", connsText(p) + ", timeout " + spanText(p.Timeout) + ", seed " + fmt.Sprint(p.Seed)},
		{"measured", span},
	} {
		for i, s := range cli.Wrap(item[1], width-indent) {
			if i > 0 {
				item[0] = ""
			}
			lines = append(lines, padRight(item[0], indent)+s)
		}
	}
	return lines
}

func measured(r *loadgen.Result) time.Duration { return max(r.Total.To-r.Total.From, 0) }

func bytesText(n int64) string { return cli.Bytes(uint64(max(n, 0))) }

func requests(r *loadgen.Result, width int) []string {
	t, d := &r.Total, measured(r)
	of := func(name string, n int64) []string {
		return []string{name, CountText(n), RateText(perSecond(n, d)), shareText(n, t.Due)}
	}
	size := func(name string, n int64) []string {
		return []string{name, bytesText(n), bytesText(whole(perSecond(n, d))), ""}
	}
	rows := [][]string{
		of("due", t.Due), of("sent", t.Sent), of("done", t.Done), of("failed", t.Failed),
		size("bytes sent", t.Bytes.Sent), size("bytes received", t.Bytes.Received),
	}
	for _, c := range []counted{{"sent again", t.Resent}, {"late replies", t.Late}, {"connections lost", t.Lost}} {
		if c.n > 0 {
			rows = append(rows, []string{c.name, CountText(c.n), RateText(perSecond(c.n, d)), ""})
		}
	}
	return Table(width, []Column{{Head: "requests"}, {Head: "number"}, {Head: "per second"}, {Head: "of those due", Drop: 9}}, rows)
}

func failures(r *loadgen.Result, width int) []string {
	kinds := byCount(r.Total.Errors)
	if len(kinds) == 0 {
		return nil
	}
	rows := make([][]string, len(kinds))
	for i, k := range kinds {
		rows[i] = []string{Clean(k.name), CountText(k.n), shareText(k.n, r.Total.Failed)}
	}
	return Table(width, []Column{{Head: "errors"}, {Head: "number"}, {Head: "of those failed", Drop: 9}}, rows)
}

// byMethod has the latencies of all requests and those of each method; of one method, only all.
func byMethod(r *loadgen.Result, width int) []string {
	t := &r.Total
	cols := []Column{{Head: "method"}, {Head: "done", Drop: 5}, {Head: "failed", Drop: 6}}
	for i, q := range quantileNames {
		cols = append(cols, Column{Head: q, Drop: quantileDrops[i]})
	}
	methodRow := func(name string, done, failed int64, latency *hdrhistogram.Histogram) []string {
		return append([]string{Clean(name), CountText(done), CountText(failed)}, latencyTexts(latency, LatencyText)...)
	}
	rows := [][]string{methodRow("all", t.Done, t.Failed, t.Latency)}
	for _, m := range t.Methods {
		rows = append(rows, methodRow(m.Name, m.Done, m.Failed, m.Latency))
	}
	if len(t.Methods) == 1 {
		rows = rows[1:]
	}
	return append(cli.Wrap("latency from the intended start of each request; a timeout counts with its time", width), Table(width, cols, rows)...)
}

// Status shows a run on one line of the terminal w, which each interval writes over: what the run
// was asked for until the first one comes, then the rates of the newest and the failures of all
// that were measured. What does not fit into the columns is left out. end takes the line away;
// nothing else may write to the terminal before. show is for one goroutine. Without color no
// attribute of text is used.
func Status(w io.Writer, columns func() int, color bool, p loadgen.Plan) (show func(loadgen.Sample), end func()) {
	draw := func(label string, items ...Span) {
		width := columns() - 1 // a character in the last column leaves the cursor in a state of its own
		fmt.Fprint(w, "\r", Labelled(width, label, items...).Render(width, color), eraseRight)
	}
	draw("bench", Span{targetText(p.Target), Strong}, Span{scheduleText(&p), Plain})
	sum := loadgen.NewSample(nil)
	show = func(s loadgen.Sample) {
		label, passed, of := "measure", s.To, p.Duration
		if s.From < 0 {
			label, passed, of = "warm-up", p.Warmup+s.To, p.Warmup
		} else {
			sum.Add(&s)
		}
		at := spanText(passed.Round(100 * time.Millisecond))
		if s.From < 0 || p.Timed() {
			at += " of " + spanText(of)
		}
		failed := "failed " + CountText(sum.Failed)
		if kinds := byCount(sum.Errors); len(kinds) > 0 {
			failed += " (" + Clean(kinds[0].name) + ")"
		}
		draw(label, Span{at, Plain}, Span{"done " + RateText(perSecond(s.Done, s.To-s.From)) + "/s", Strong},
			Span{failed, alarm(sum.Failed)},
			Span{"lost " + CountText(sum.Lost), alarm(sum.Lost)}, Span{"p99 " + latencyTexts(s.Latency, LatencyText)[atP99], Plain},
			Span{"in flight " + CountText(s.InFlight), Plain})
	}
	return show, func() { fmt.Fprint(w, "\r", eraseRight) }
}

// atP99 is where p99 is among quantiles.
const atP99 = 2

// eraseRight has a terminal erase what is right of the cursor.
const eraseRight = "\x1b[K"

func alarm(n int64) Style {
	if n > 0 {
		return Bad
	}
	return Plain
}
