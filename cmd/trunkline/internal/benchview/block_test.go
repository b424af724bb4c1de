package benchview

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"trunkline/cmd/trunkline/loadgen"
)

// blockRows is how many rows the whole block takes at most.
const blockRows = 17 + blockMethods

// names are what methods, codes and addresses may look like.
func names() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z]{1,10}\.[A-Za-z]{1,40}`),
		rapid.SampledFrom([]string{"", "工具.検索する道具の名前", "한국어.메서드", "🚀🚀🚀", "👩\u200d🚀.launch", "❤\ufe0f❤\ufe0f", "e\u0301e\u0301", "a b", "\x1b[2J", "\r\n", "ＦＵＬＬ"}),
		rapid.String(),
	)
}

func samples() *rapid.Generator[loadgen.Sample] {
	return rapid.Custom(func(t *rapid.T) loadgen.Sample {
		n := rapid.OneOf(rapid.Int64Range(0, 10), rapid.Int64Range(0, 1e9), rapid.Int64())
		from := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(24*time.Hour)).Draw(t, "from"))
		s := loadgen.Sample{
			From: from, To: from + time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "span")),
			Due: n.Draw(t, "due"), Sent: n.Draw(t, "sent"), Done: n.Draw(t, "done"), Failed: n.Draw(t, "failed"), InFlight: n.Draw(t, "in flight"),
			Bytes:    loadgen.Bytes{Sent: n.Draw(t, "out"), Received: n.Draw(t, "in")},
			Errors:   rapid.MapOfN(names(), n, 0, 40).Draw(t, "errors"),
			ByMethod: make(map[string]*loadgen.MethodSample),
		}
		if rapid.Bool().Draw(t, "answered") {
			s.Latency = hdrhistogram.New(loadgen.LowestLatency, loadgen.HighestLatency, 1) // small: it is drawn often
			_ = s.Latency.RecordValues(rapid.Int64Range(0, loadgen.HighestLatency).Draw(t, "latency"), rapid.Int64Range(0, 1e9).Draw(t, "times"))
		}
		for _, name := range rapid.SliceOfN(names(), 0, 12).Draw(t, "methods") {
			s.ByMethod[name] = &loadgen.MethodSample{Done: s.Done, Failed: s.Failed, Latency: s.Latency}
		}
		return s
	})
}

func plans() *rapid.Generator[loadgen.Plan] {
	return rapid.Custom(func(t *rapid.T) loadgen.Plan {
		p := planOfTwo()
		p.Target.Addr = names().Draw(t, "address")
		p.Schedule.Kind = loadgen.ScheduleKind(rapid.IntRange(0, 2).Draw(t, "kind"))
		p.Duration = time.Duration(rapid.Int64Range(0, int64(loadgen.MaxDuration)).Draw(t, "duration"))
		p.Count = rapid.Int64Range(0, 1e9).Draw(t, "count")
		p.Mix = nil
		for _, name := range rapid.SliceOfN(names(), 0, 12).Draw(t, "mix") {
			p.Mix = append(p.Mix, loadgen.Share{Name: name, Weight: 1})
		}
		return p
	})
}

// TestBlockFits: whatever happens, no line of the block is wider than asked for, none has a control
// character, and all fit the screen.
func TestBlockFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plans().Draw(t, "plan")
		width := rapid.OneOf(rapid.IntRange(0, 12), rapid.IntRange(20, 100)).Draw(t, "width")
		tally := newTally()
		for _, s := range rapid.SliceOfN(samples(), 0, 3).Draw(t, "samples") {
			tally.add(s)
		}
		passed := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(25*time.Hour)).Draw(t, "passed"))
		lines := block(&p, tally, passed, width)
		if len(lines) > blockRows {
			t.Errorf("%d lines", len(lines))
		}
		for _, l := range lines {
			text := l.Render(width, false)
			if n := cells(text); n > width {
				t.Errorf("%d cells of %d: %q", n, width, text)
			}
			if strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("control character: %q", text)
			}
			if strings.HasPrefix(l.Render(width, true), "\x1b[") != (text != "" && l[0].As != Plain) {
				t.Errorf("colours of %q", l.Render(width, true))
			}
		}
	})
}

func TestProgress(t *testing.T) {
	f := func(duration time.Duration, count, done int64, passed time.Duration, want string) {
		t.Helper()
		p := planOfTwo()
		p.Duration, p.Count = duration, count
		tally := newTally()
		tally.add(loadgen.Sample{To: time.Second, Done: done})
		if got := progress(&p, tally, passed, 54).Render(54, false); got != "now     "+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f(10*time.Second, 0, 1, 0, "measuring ·················   0 %  0.0s of 10s")
	f(10*time.Second, 0, 1, 5*time.Second, "measuring ████████▌········  50 %  5.0s of 10s")
	f(10*time.Second, 4, 3, 5*time.Second, "measuring ████████████▊····  75 %  5.0s of 10s")
	f(0, 4, 1, 5*time.Second, "measuring ██████··················  25 %  5.0s")
	f(0, 0, 1, 5*time.Second, "measuring   5.0s")
	f(10*time.Second, 0, 1, 11*time.Second, "finishing ████████████████ 100 %  11.0s of 10s")
	f(10*time.Second, 0, 1, -time.Second, "warm-up   █████████·········  50 %  1.0s of 2s")
}

func TestRoundedSpans(t *testing.T) {
	f := func(d time.Duration, want string) {
		t.Helper()
		if got := spanText(roundSpan(d)); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
	f(998*time.Millisecond, "1s")
	f(1004*time.Millisecond, "1s")
	f(1005*time.Millisecond, "1.01s")
	f(12_345_678, "12ms")
	f(99_900_000, "100ms")
	f(254_900_000, "250ms")
	f(time.Minute+time.Millisecond, "1m")
}

// TestFit: empty lines go first, from below, then the last ones.
func TestFit(t *testing.T) {
	f := func(rows int, want string) {
		t.Helper()
		var lines []Line
		for _, s := range []string{"a", "", "b", "", "c"} {
			if s == "" {
				lines = append(lines, nil)
				continue
			}
			lines = append(lines, Line{{s, Plain}})
		}
		got := ""
		for _, l := range fit(lines, rows) {
			got += l.Render(9, false) + "|"
		}
		if got != want {
			t.Errorf("%d rows: %s, want %s", rows, got, want)
		}
	}
	f(9, "a||b||c|")
	f(5, "a||b||c|")
	f(4, "a||b|c|")
	f(3, "a|b|c|")
	f(2, "a|b|")
	f(0, "")
	f(-1, "")
}

func TestErrorLine(t *testing.T) {
	f := func(errs map[string]int64, width int, want string) {
		t.Helper()
		if got := errorLine(errs, width).Render(width, false); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f(nil, 40, "errors  none")
	f(map[string]int64{"a": 0}, 40, "errors  none")
	f(map[string]int64{"a": 1, "b": 2000, "c": 1}, 40, "errors  b 2,000  a 1  c 1")
	f(map[string]int64{"a": 1, "b": 2000, "c": 1}, 29, "errors  b 2,000  2 more kinds")
	f(map[string]int64{"RESOURCE_EXHAUSTED": 7}, 20, "errors  RESOURCE_EX…")
}

func TestTallyIsBounded(t *testing.T) {
	tally := newTally()
	for i := range 2000 {
		name := string(rune('一' + i))
		tally.add(loadgen.Sample{
			To: time.Second, Failed: 1, Errors: map[string]int64{name: 1},
			ByMethod: map[string]*loadgen.MethodSample{name: {Done: 1}, "nil": nil},
		})
	}
	if n := len(tally.sum.Errors); n != loadgen.MaxErrorKinds+1 {
		t.Errorf("%d kinds of errors", n)
	}
	if n := len(tally.sum.ByMethod); n != loadgen.MaxShares {
		t.Errorf("%d methods", n)
	}
	if len(tally.rates) != historyIntervals || tally.sum.Failed != 2000 {
		t.Errorf("%d intervals, %d failed", len(tally.rates), tally.sum.Failed)
	}
	if got := tally.sum.Errors[loadgen.OtherErrors]; got != 2000-loadgen.MaxErrorKinds {
		t.Errorf("%d other errors", got)
	}
}

func TestSparkline(t *testing.T) {
	f := func(width int, want string, values ...float64) {
		t.Helper()
		if got, _ := sparkline(values, width); got != want {
			t.Errorf("%v: %q, want %q", values, got, want)
		}
	}
	f(9, "")
	f(0, "", 1)
	f(9, " ", 0)
	f(9, " ▁▄▅█", 0, 1e-9, 4, 4.1, 8)
	f(2, "▁█", 1, 1, 1, 1, 9, 1) // the spike stays
	f(3, "██", 5, 5)
}

// block is the live view as lines. It is a function of what it gets, so that a test can look at any
// moment of a run. passed is the time since the start of measuring, negative while warming up.
func block(p *loadgen.Plan, t *tally, passed time.Duration, width int) []Line {
	return append(head(p, t, passed, width), body(p, t, width)...)
}
