package benchview

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"trunkline/cmd/trunkline/loadgen"
)

func summary(r *loadgen.Result, width int) string {
	var b bytes.Buffer
	Summary(&b, width, r)
	return b.String()
}

func must(t *testing.T, f func(io.Writer, *loadgen.Result) error, r *loadgen.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := f(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSummary(t *testing.T) {
	golden(t, "summary.txt", summary(stalledRun(), 0))
	golden(t, "summary-60.txt", summary(stalledRun(), 60))
	if summary(stalledRun(), 200) != summary(stalledRun(), 80) {
		t.Error("a wide terminal has another summary")
	}
	var all strings.Builder
	for _, name := range sortedKeys(extremes()) {
		all.WriteString("## " + name + "\n" + summary(extremes()[name], 0) + "\n")
	}
	golden(t, "summary-extremes.txt", all.String())
}

func TestSummaryFits(t *testing.T) {
	r := stalledRun()
	long := strings.Repeat("非常に長い名前", 12)
	r.Plan.Mix[0].Name, r.Total.Methods[0].Name = long, long
	r.Total.Errors[long] = 3
	r.Plan.Target.Addr = long
	for _, width := range []int{0, 40, 60, 79} {
		for line := range strings.Lines(summary(r, width)) {
			if n := cells(strings.TrimSuffix(line, "\n")); n > cmp.Or(width, summaryCells) {
				t.Errorf("width %d: %d cells: %s", width, n, line)
			}
		}
	}
}

func TestLines(t *testing.T) {
	f := func(name string, in []loadgen.Sample) string {
		t.Helper()
		var b bytes.Buffer
		show := Lines(&b, planOfTwo())
		for _, s := range in {
			show(s)
		}
		golden(t, name, b.String())
		return b.String()
	}
	in := observed()[9:15]
	warm := in[0]
	warm.From, warm.To = -time.Second, 0
	odd := loadgen.Sample{To: time.Second, Failed: 3, Errors: map[string]int64{"a b=c,d:e\n": 2, "connection lost": 1}}
	out := f("lines.txt", append([]loadgen.Sample{warm, odd}, in...))
	// Each line has the same names in the same order, and no value has a space.
	var want []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "bench phase=start ") {
			continue
		}
		var got []string
		for _, word := range strings.Fields(line)[1:] {
			name, value, ok := strings.Cut(word, "=")
			if !ok || value == "" || strings.Contains(value, "=") {
				t.Errorf("%q of %s", word, line)
			}
			got = append(got, name)
		}
		if want == nil {
			want = got
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("names %v, want %v", got, want)
		}
	}
}

func TestNoSecretIsShown(t *testing.T) {
	r := stalledRun()
	r.Plan.Target.Protocol = loadgen.ProtocolHTTP
	r.Plan.Target.Addr = "https://user:s3cret@host.example:8443/api?token=s3cret"
	r.Plan.Mix[0].Body = []byte(`{"password":"s3cret"}`)
	var lines bytes.Buffer
	Lines(&lines, r.Plan)(r.Total)
	status := strings.Join(statusOf(r.Plan, 200, false, r.Total), "\n")
	for _, out := range []string{summary(r, 0), must(t, JSON, r), must(t, HDRLog, r), must(t, SVG, r), lines.String(),
		status} {
		if strings.Contains(out, "s3cret") || strings.Contains(out, "user") {
			t.Errorf("a secret is shown:\n%.600s", out)
		}
		if !strings.Contains(out, "host.example:8443") {
			t.Errorf("no target:\n%.600s", out)
		}
	}
}

func TestAddress(t *testing.T) {
	f := func(addr, want string) {
		t.Helper()
		if got := address(loadgen.Target{Addr: addr}); got != want {
			t.Errorf("%q: %q, want %q", addr, got, want)
		}
	}
	f("", "")
	f("127.0.0.1:1", "127.0.0.1:1")
	f("tcp://h:1", "tcp://h:1")
	f("unix:///run/a@b?c", "unix:///run/a@b?c")
	f("http://u:p@h:1/a@b", "http://h:1/a@b")
	f("http://u:p%2f@h", "http://h")
	f("http://h/?k=v", "http://h/?…")
	f("http://u@x@h", "http://h")
	f("h\x1b:1", `h\x1b:1`)
}

func TestJSON(t *testing.T) {
	r := stalledRun()
	r.Intervals = r.Intervals[10:13]
	golden(t, "result.json", must(t, JSON, r))
	for name, r := range extremes() {
		var v struct {
			Format int `json:"format"`
			Total  struct {
				Done    int64 `json:"done"`
				Latency *struct {
					Max int64 `json:"max_ns"`
				} `json:"latency"`
			} `json:"total"`
		}
		if err := json.Unmarshal([]byte(must(t, JSON, r)), &v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if v.Format != jsonFormat || v.Total.Done != r.Total.Done || (v.Total.Latency == nil) != (recorded(r.Total.Latency) == 0) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestJSONIsDocumented: each member stands in the comment of JSON.
func TestJSONIsDocumented(t *testing.T) {
	src, err := os.ReadFile("results.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, _, _ := strings.Cut(string(src), "func JSON(")
	doc = strings.ReplaceAll(doc, "sent_, done_, failed_per_second", "sent_per_second, done_per_second, failed_per_second")
	seen := 0
	var check func(v any)
	check = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				check(e)
			}
		case map[string]any:
			for name, e := range v {
				seen++
				if !regexp.MustCompile(`\b` + name + `\b`).MatchString(doc) {
					t.Errorf("%s is not documented", name)
				}
				if name != "errors" { // its members are codes
					check(e)
				}
			}
		}
	}
	var all any
	if err := json.Unmarshal([]byte(must(t, JSON, stalledRun())), &all); err != nil {
		t.Fatal(err)
	}
	if check(all); seen < 50 {
		t.Errorf("only %d members", seen)
	}
}

func TestHDRLogReadsBack(t *testing.T) {
	r := stalledRun()
	warm := r.Intervals[0]
	warm.From, warm.To = -time.Second, 0
	r.Intervals = append([]loadgen.Sample{warm}, r.Intervals...)
	r.Intervals = append(r.Intervals, loadgen.Sample{From: 20 * time.Second, To: 20500 * time.Millisecond})
	log := must(t, HDRLog, r)
	reader := hdrhistogram.NewHistogramLogReader(strings.NewReader(log))
	sum := loadgen.NewHistogram()
	for i, want := range r.Intervals[1:] {
		h, err := reader.NextIntervalHistogram()
		if err != nil || h == nil {
			t.Fatalf("interval %d: %v, %v", i, h, err)
		}
		if h.TotalCount() != recorded(want.Latency) || want.Latency != nil && !h.Equals(want.Latency) {
			t.Errorf("interval %d: %d values, want %d", i, h.TotalCount(), recorded(want.Latency))
		}
		if from := r.Start.Add(want.From).UnixMilli(); h.StartTimeMs() != from || h.EndTimeMs() != r.Start.Add(want.To).UnixMilli() {
			t.Errorf("interval %d: from %d to %d, want from %d", i, h.StartTimeMs(), h.EndTimeMs(), from)
		}
		sum.Merge(h)
	}
	if h, err := reader.NextIntervalHistogram(); h != nil || err != nil {
		t.Errorf("more: %v, %v", h, err)
	}
	if !sum.Equals(r.Total.Latency) {
		t.Error("the intervals together are not the whole")
	}
	if r.Intervals[1].Latency.StartTimeMs() != 0 && r.Intervals[1].Latency.EndTimeMs() == 1000 {
		t.Error("the result was stamped")
	}
}

func TestHDRLogHead(t *testing.T) {
	r := stalledRun()
	r.Plan.Target.Addr = "h\n1,2,3,injected"
	head, _, _ := strings.Cut(must(t, HDRLog, r), "0.000000,1.000000,")
	golden(t, "log-head.txt", head)
	for name, r := range extremes() {
		reader := hdrhistogram.NewHistogramLogReader(strings.NewReader(must(t, HDRLog, r)))
		for range r.Intervals {
			if h, err := reader.NextIntervalHistogram(); err != nil || h == nil {
				t.Errorf("%s: %v, %v", name, h, err)
			}
		}
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestErrorsOfWritersAreTold(t *testing.T) {
	for name, f := range map[string]func(io.Writer, *loadgen.Result) error{"JSON": JSON, "HDRLog": HDRLog, "SVG": SVG} {
		if err := f(broken{}, stalledRun()); !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), "cannot write ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReportsTakeAnything: whatever a run gave, no report fails or panics, each is well-formed, and
// no line of Summary has a control character.
func TestReportsTakeAnything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &loadgen.Result{
			Plan: plans().Draw(rt, "plan"), Total: samples().Draw(rt, "total"),
			Intervals: rapid.SliceOfN(samples(), 0, 3).Draw(rt, "intervals"), MissedSchedule: rapid.Bool().Draw(rt, "late"),
		}
		if out := must(t, JSON, r); !json.Valid([]byte(out)) {
			rt.Errorf("no JSON: %s", out)
		}
		valid(t, "any", must(t, SVG, r))
		must(t, HDRLog, r)
		for line := range strings.Lines(summary(r, 0)) {
			if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) {
				rt.Errorf("control character: %q", line)
			}
		}
	})
}
