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

// statusOf returns what a terminal of so many columns gets: a text for each line that is drawn.
func statusOf(p loadgen.Plan, columns int, color bool, in ...loadgen.Sample) []string {
	var b strings.Builder
	show, end := Status(&b, func() int { return columns }, color, p)
	for _, s := range in {
		show(s)
	}
	end()
	return strings.Split(strings.TrimPrefix(b.String(), "\r"), eraseRight+"\r")
}

func TestStatus(t *testing.T) {
	f := func(p loadgen.Plan, columns int, want string, in ...loadgen.Sample) {
		t.Helper()
		got := statusOf(p, columns, false, in...)
		if n := len(got); n != len(in)+2 || got[n-1] != eraseRight || got[n-2] != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	p, in := planOfTwo(), observed()
	f(p, 80, "bench   kernel 127.0.0.1:4410  constant 5,000/s for 20s, after 2s of warm-up")
	f(p, 40, "bench   kernel 127.0.0.1:4410")
	f(p, 80, "measure 1s of 20s  done 5,000/s  failed 0  lost 0  p99 1.07 ms  in flight 3", in[0])
	f(p, 80, "measure 12s of 20s  done 0/s  failed 0  lost 0  p99 -  in flight 3", in[11])
	f(p, 100, "measure 13s of 20s  done 9,960/s  failed 40 (RESOURCE_EXHAUSTED)  lost 2  p99 1.41 s  in flight 3", in[11],
		in[12])
	f(p, 50, "measure 14s of 20s  done 5,000/s", in[12], in[13])
	warm := in[12] // what fails then does not count
	warm.From, warm.To = -2*time.Second, -time.Second
	f(p, 80, "warm-up 1s of 2s  done 9,960/s  failed 0  lost 0  p99 1.41 s  in flight 3", warm)
	p.Count = 1e6
	p.OnlyCount()
	f(p, 50, "measure 1s  done 5,000/s  failed 0  lost 0", in[0])
}

// TestStatusFits: whatever happens, no line is wider than the terminal less its last column, and
// none has a control character.
func TestStatusFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plans().Draw(t, "plan")
		columns := rapid.OneOf(rapid.IntRange(0, 12), rapid.IntRange(20, 100)).Draw(t, "columns")
		in := rapid.SliceOfN(samples(), 0, 3).Draw(t, "samples")
		for _, text := range statusOf(p, columns, false, in...)[:len(in)+1] {
			if n := cells(text); n >= max(columns, 1) {
				t.Errorf("%d cells of %d: %q", n, columns, text)
			}
			if strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("control character: %q", text)
			}
		}
		if columns > 1 && !strings.HasPrefix(statusOf(p, columns, true, in...)[len(in)], "\x1b[2m") {
			t.Error("no colours")
		}
	})
}

// names are what methods, codes and addresses may look like.
func names() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z]{1,10}\.[A-Za-z]{1,40}`),
		rapid.SampledFrom([]string{"", "工具.検索する道具の名前", "한국어.메서드", "🚀🚀🚀", "👩\u200d🚀.launch", "❤\ufe0f❤\ufe0f",
			"e\u0301e\u0301", "a b", "\x1b[2J", "\r\n", "ＦＵＬＬ"}),
		rapid.String(),
	)
}

func samples() *rapid.Generator[loadgen.Sample] {
	return rapid.Custom(func(t *rapid.T) loadgen.Sample {
		n := rapid.OneOf(rapid.Int64Range(0, 10), rapid.Int64Range(0, 1e9), rapid.Int64())
		from := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(24*time.Hour)).Draw(t, "from"))
		s := loadgen.Sample{
			From: from, To: from + time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "span")),
			Due: n.Draw(t, "due"), Sent: n.Draw(t, "sent"), Done: n.Draw(t, "done"), Failed: n.Draw(t, "failed"),
			InFlight: n.Draw(t, "in flight"),
			Bytes:    loadgen.Bytes{Sent: n.Draw(t, "out"), Received: n.Draw(t, "in")},
			Errors:   rapid.MapOfN(names(), n, 0, 40).Draw(t, "errors"),
		}
		if rapid.Bool().Draw(t, "answered") {
			s.Latency = hdrhistogram.New(loadgen.LowestLatency, loadgen.HighestLatency, 1) // small: it is drawn often
			_ = s.Latency.RecordValues(rapid.Int64Range(0, loadgen.HighestLatency).Draw(t, "latency"),
				rapid.Int64Range(0, 1e9).Draw(t, "times"))
		}
		for _, name := range rapid.SliceOfN(names(), 0, 12).Draw(t, "methods") {
			s.Methods = append(s.Methods, loadgen.MethodSample{Name: name, Done: s.Done, Failed: s.Failed, Latency: s.Latency})
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
