package benchview

import (
	"fmt"
	"io"
	"time"

	"trunkline/cmd/trunkline/loadgen"
)

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
