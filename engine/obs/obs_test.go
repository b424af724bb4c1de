package obs

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func newRegistry(t *testing.T) *Registry {
	t.Helper()
	r, err := NewRegistry(ReadBuild("v1.2.3", "abc"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGroupIsOneReading(t *testing.T) {
	r := newRegistry(t)
	reads := 0
	err := r.AddGroup([]Family{
		{Name: "trunkline_calls_total", Help: "Calls.", Labels: []string{"method", "code"}},
		{Name: "trunkline_processes", Help: "Processes.", Kind: Gauge},
	}, func(put Put) {
		reads++
		put(0, 3, "Publish", "ok")
		put(0, 1, "Publish", "not_found")
		put(1, 9)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `
# HELP trunkline_calls_total Calls.
# TYPE trunkline_calls_total counter
trunkline_calls_total{code="not_found",method="Publish"} 1
trunkline_calls_total{code="ok",method="Publish"} 3
# HELP trunkline_processes Processes.
# TYPE trunkline_processes gauge
trunkline_processes 9
`
	err = testutil.GatherAndCompare(r.Gatherer(), strings.NewReader(want), "trunkline_calls_total", "trunkline_processes")
	if err != nil || reads != 1 {
		t.Errorf("%d readings, %v", reads, err)
	}
	if err := r.AddGroup([]Family{{Name: "trunkline_bad", Help: "x"}}, func(Put) {}); err == nil {
		t.Error("a counter without _total was taken")
	}
}

func TestWrongNumberOfLabelsFailsTheScrape(t *testing.T) {
	r := newRegistry(t)
	err := r.AddGroup([]Family{{Name: "trunkline_calls_total", Help: "x", Labels: []string{"a"}}}, func(put Put) { put(0, 1) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Gatherer().Gather(); err == nil {
		t.Error("the scrape passed")
	}
}

func add(r *Registry, f Family) error {
	return r.AddGroup([]Family{f}, func(put Put) { put(0, 1) })
}

func TestMetricNamesAreHeldToTheRules(t *testing.T) {
	f := func(m Family, want string) {
		t.Helper()
		err := add(newRegistry(t), m)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("AddGroup(%q) = %v, want an error with %q", m.Name, err, want)
		}
	}
	f(Family{Name: "requests_total", Help: "x"}, "must start with trunkline_")
	f(Family{Name: "trunkline_requests", Help: "x"}, "must end in _total")
	f(Family{Name: "trunkline_open_total", Help: "x", Kind: Gauge}, "only counters")
	f(Family{Name: "trunkline_x_total"}, "no help text")
}

func TestSecondCollectorOfTheSameSeriesIsRefused(t *testing.T) {
	r := newRegistry(t)
	if err := add(r, Family{Name: "trunkline_x_total", Help: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := add(r, Family{Name: "trunkline_x_total", Help: "x"}); err == nil {
		t.Error("the same series was registered twice")
	}
}

func TestRegistriesShareNothing(t *testing.T) {
	for range 2 {
		if err := add(newRegistry(t), Family{Name: "trunkline_x_total", Help: "x"}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(newRegistry(t).Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestBuildInfo(t *testing.T) {
	n, err := testutil.GatherAndCount(newRegistry(t).Gatherer(), "trunkline_build_info", "go_goroutines", "process_start_time_seconds")
	if err != nil || n < 2 {
		t.Errorf("count = %d, %v: want build info and runtime metrics", n, err)
	}
	if b := ReadBuild("", ""); b.Version != "dev" || b.Revision == "" || b.Go == "" || b.Time == "" {
		t.Errorf("ReadBuild left something empty: %+v", b)
	}
}

func TestLoggerFormats(t *testing.T) {
	var buf bytes.Buffer
	f := func(level, format string) *slog.Logger {
		t.Helper()
		buf.Reset()
		l, _, err := NewLogger(&buf, level, format)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	f("info", FormatAuto).Info("hello", "conn", 7)
	var line map[string]any
	if err := json.Unmarshal(buf.Bytes(), &line); err != nil || line["msg"] != "hello" || line["conn"] != 7.0 {
		t.Errorf("auto on a buffer wrote %q, want JSON", buf.String())
	}
	f("DEBUG", FormatText).Debug("hello", "conn", 7)
	if s := buf.String(); !strings.Contains(s, "hello conn=7") || strings.Contains(s, "\x1b[") {
		t.Errorf("text wrote %q, want plain text", s)
	}
	f("warn", formatJSON).Info("hello")
	if buf.Len() != 0 {
		t.Errorf("warn level wrote %q", buf.String())
	}
}

func TestLoggerRefuses(t *testing.T) {
	f := func(level, format, want string) {
		t.Helper()
		if _, _, err := NewLogger(&bytes.Buffer{}, level, format); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewLogger(%q, %q) = %v, want %q", level, format, err, want)
		}
	}
	f("loud", formatJSON, `log level "loud"`)
	f("info", "xml", `log format "xml"`)
}
