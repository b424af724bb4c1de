package topview

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"trunkline/engine/obs"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// began is when the server of the tests started to be watched.
var began = time.Date(2026, 11, 25, 14, 3, 20, 0, time.UTC)

// busy is a server after so many seconds.
func busy(secs int) *obs.Overview {
	n := uint64(secs)
	o := &obs.Overview{
		At: began.Add(time.Duration(secs) * time.Second), Version: "v1.4.0", UptimeSeconds: 273600 + float64(secs), Ready: true, Reasons: []string{},
		Processes:  map[string]int64{"NEW": 0, "READY": 12, "RUNNING": 3, "WAITING": 0, "BLOCKED": 0, "TERMINATED": 1204, "ZOMBIE": 7},
		QueueDepth: 12, Sessions: 31, Connections: map[string]int64{"ipc": 64, "http": 3, "toolhost": 2, "threads": 0},
		BytesIn: 3_100_000 * int64(secs), BytesOut: 8_240_000 * int64(secs),
		EventsPublished: 120 * int64(secs), EventsDropped: 4 * int64(secs), Subscribers: 9,
		StoreMode: "always", LagRecords: 41, QueueBytes: 5120,
	}
	row := func(protocol, method string, perSecond, errs uint64, mean float64) {
		o.Latencies = append(o.Latencies, obs.Latency{Protocol: protocol, Method: method, Count: perSecond * n, Errors: errs * n,
			SumSeconds: mean * float64(perSecond*n), P50: mean * 0.9, P90: mean * 2, P99: mean * 4, P999: mean * 12})
	}
	row("ipc", "kernel.RecordUsage", 10_002, 0, 120e-6)
	row("ipc", "kernel.GetProcess", 4_210, 12, 18e-6)
	row("ipc", "orchestration.ReportAgentResult", 64, 0, 1.4e-3)
	row("toolhost", "AID.HASH.DIGEST.v1", 7, 0, 220e-6)
	row("threads", "post_message", 3, 1, 2.1e-3)
	row("http", "process", 0, 0, 0)
	row("server", "store_commit", 410, 0, 2.2e-3)
	return o
}

// watched is a view after an interval.
func watched(t *testing.T, color bool) *model {
	t.Helper()
	m := newModel(t.Context(), &Options{Target: "127.0.0.1:50090", Interval: time.Second, Order: ByRate, Color: color})
	m.Update(answered{overview: busy(10)})
	m.Update(answered{overview: busy(11)})
	return m
}

func (m *model) sized(width, height int) string {
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return m.text()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if got += "\n"; *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestScreens(t *testing.T) {
	for _, width := range []int{40, 80, 160, 200} {
		golden(t, fmt.Sprintf("top-%d.txt", width), watched(t, false).sized(width, 24))
	}
	m := newModel(t.Context(), &Options{Target: "127.0.0.1:50090", Interval: 2 * time.Second, Order: ByRate})
	golden(t, "top-start.txt", m.sized(80, 24))
	m = watched(t, false)
	m.Update(answered{err: errors.New("cannot reach admin endpoint 127.0.0.1:50090: connection refused")})
	golden(t, "top-down.txt", m.sized(80, 24))
	m = watched(t, false)
	m.key("h")
	golden(t, "top-help.txt", m.sized(80, 24))
	m = watched(t, false)
	standby := busy(12)
	standby.Cluster, standby.Processes, standby.Latencies = &obs.Standing{Node: "n2", Role: obs.RoleStandby, Owner: "n1", Index: 1234}, map[string]int64{}, nil
	m.Update(answered{overview: standby})
	golden(t, "top-standby.txt", m.sized(80, 24))
}

// TestScreensFit: no line is wider than the terminal, and there are no more than its rows.
func TestScreensFit(t *testing.T) {
	for width := 1; width <= 210; width++ {
		for _, height := range []int{1, 4, 9, 12, 24, 60} {
			m := watched(t, false)
			text := m.sized(width, height)
			m.key("h")
			for _, text := range []string{text, m.text()} {
				lines := strings.Split(text, "\n")
				if len(lines) > height {
					t.Fatalf("%d×%d: %d lines", width, height, len(lines))
				}
				for _, l := range lines {
					if n := utf8.RuneCountInString(l); n > width {
						t.Fatalf("%d×%d: %d cells: %s", width, height, n, l)
					}
				}
			}
		}
	}
}

func TestColorChangesNoText(t *testing.T) {
	without, with := watched(t, false).sized(80, 24), watched(t, true).sized(80, 24)
	if strings.Contains(without, "\x1b") || !strings.Contains(with, "\x1b[31m") {
		t.Errorf("attributes are where none belong, or missing:\n%q\n%q", without, with)
	}
	for _, style := range []string{"1", "2", "31", "32", "0"} {
		with = strings.ReplaceAll(with, "\x1b["+style+"m", "")
	}
	if with != without {
		t.Error(cmp.Diff(without, with))
	}
}

// firstMethods are the names in the first column, in order.
func (m *model) firstMethods() (out []string) {
	for _, me := range m.sample.Methods[m.from:] {
		out = append(out, me.Method)
	}
	return out
}

func TestKeys(t *testing.T) {
	m := watched(t, false)
	m.sized(80, 12)
	f := func(key, first string) {
		t.Helper()
		if cmd := m.key(key); cmd != nil {
			t.Errorf("%s ends the view", key)
		}
		if m.text(); m.firstMethods()[0] != first {
			t.Errorf("behind %q the first one is %s, want %s", key, m.firstMethods()[0], first)
		}
	}
	f("e", "kernel.GetProcess")
	f("m", "store_commit")
	f("9", "store_commit")
	f("n", "AID.HASH.DIGEST.v1")
	f("s", "kernel.RecordUsage")
	f("s", "kernel.GetProcess")
	f("r", "kernel.RecordUsage")
	f("down", "kernel.GetProcess")
	f("up", "kernel.RecordUsage")
	f("up", "kernel.RecordUsage")
	f("j", "kernel.GetProcess")
	f("g", "kernel.RecordUsage")
	f("x", "kernel.RecordUsage")
	for range 20 {
		m.key("down")
	}
	// 12 lines: 7 of the head, an empty one, that of the names of columns, and that of the keys.
	if m.text(); len(m.firstMethods()) != 2 {
		t.Errorf("the last page has %v", m.firstMethods())
	}
	for _, key := range []string{"q", "esc", "ctrl+c"} {
		if m.key(key) == nil {
			t.Errorf("%s does not end the view", key)
		}
	}
}

func TestPause(t *testing.T) {
	m := watched(t, false)
	before := m.sized(80, 24)
	m.key("space")
	m.Update(answered{overview: busy(20)})
	if got := m.text(); strings.Replace(got, "paused", "every 1s", 1) != before {
		t.Error(cmp.Diff(before, got))
	}
	if _, cmd := m.Update(due{}); cmd == nil {
		t.Error("a paused view never goes on")
	}
	m.key("space")
	if m.Update(answered{overview: busy(21)}); m.sample.IntervalSeconds != 10 {
		t.Errorf("the interval over a pause has %v s", m.sample.IntervalSeconds)
	}
}

func TestCountEndsTheView(t *testing.T) {
	m := newModel(t.Context(), &Options{Interval: time.Second, Count: 2, Order: ByRate})
	for i := range 4 {
		_, cmd := m.Update(answered{overview: busy(i)})
		if cmd == nil {
			t.Fatal("no command")
		}
		if i < 2 {
			continue
		}
		if _, quits := cmd().(tea.QuitMsg); !quits {
			t.Errorf("answer %d does not end the view", i)
		}
	}
}

func TestAskIsAnAnswer(t *testing.T) {
	gone := errors.New("gone")
	m := newModel(t.Context(), &Options{Ask: func(context.Context) (*obs.Overview, error) { return nil, gone }})
	if a, ok := m.Init()().(answered); !ok || a.err != gone {
		t.Errorf("%+v", a)
	}
}
