package page

import (
	"strings"
	"testing"

	"trunkline/bench/report/internal/figures"
)

func TestQuestions(t *testing.T) {
	now := &figures.Side{Nanos: 12.5, Low: 12, High: 13, Extra: map[string]float64{"ns/chunk": 6, "MB/s": 5120}}
	q := &figures.Questions{Rounds: 10, Benchtime: 0.05, Baseline: &figures.Baseline{Measured: true}, Benchmarks: []figures.Benchmark{
		{Name: "Split/64", Now: now, Verdict: "same", Change: &figures.Change{Ratio: 1.001, Low: 0.99, High: 1.02}},
		{Name: "Step", Now: &figures.Side{Nanos: 2000, Low: 1900, High: 2100, Bytes: 61, Allocs: 1}, Verdict: "new"},
		{Name: "Split/4096", Now: now, Verdict: "slower", Change: &figures.Change{Ratio: 1.1, Low: 1.05, High: 1.2}, Memory: []figures.Move{{Unit: "allocs/op", To: 2}}},
		{Name: "Gone/1", Verdict: "gone"},
	}}
	b := &builder{set: &figures.Set{Questions: q, Asked: map[string]string{"Split": "How long does a split take?"}}}
	got := b.questions()
	want := "How long does a split take? (`Split`)\n\n| case | ns/op | quartiles | B/op | allocs/op | besides | against the baseline |\n|---|---:|---:|---:|---:|---|---|\n" +
		"| 64 | 12.5 | 12.0 to 13.0 | 0 | 0 | 5,120 MB/s, 6.00 ns/chunk | same: 1.001 (0.990 to 1.020) |\n" +
		"| 4096 | 12.5 | 12.0 to 13.0 | 0 | 0 | 5,120 MB/s, 6.00 ns/chunk | slower: 1.100 (1.050 to 1.200), 0 to 2 allocs/op |\n\n\n" +
		"`Step`\n\n"
	if !strings.Contains(got, want) || !strings.HasSuffix(got, "| all | 2,000 | 1,900 to 2,100 | 61 | 1 |  | new |\n") || strings.Contains(got, "Gone") {
		t.Errorf("%s\nlacks\n%s", got, want)
	}
	q.Baseline = nil
	if got = b.questions(); !strings.HasSuffix(got, "| 61 | 1 |  |  |\n") {
		t.Errorf("without a baseline something is new:\n%s", got)
	}
}

func TestBaseline(t *testing.T) {
	f := func(b *figures.Baseline, want ...string) {
		t.Helper()
		got := baseline(&figures.Questions{Rounds: 10, Benchtime: 0.05, Baseline: b})
		for _, w := range append(want, "Medians over 10 rounds of 0.05 s each. ") {
			if !strings.Contains(got, w) {
				t.Errorf("%s lacks %q", got, w)
			}
		}
	}
	f(nil, "There was no baseline")
	f(&figures.Baseline{Revision: "0123456789abcdef", Date: "2026-01-01"}, "`0123456789ab` of 2026-01-01", "only memory was compared")
	f(&figures.Baseline{Revision: "0123", Date: "2026-01-01", Measured: true}, "`0123` of 2026-01-01", "in the same run")
}
