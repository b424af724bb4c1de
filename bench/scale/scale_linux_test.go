package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

func TestFlags(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		_, err := parseFlags(args)
		if got := fmt.Sprint(err); !strings.Contains(got, want) || want == "" && err != nil {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	f("")
	f("", "-quick", "-parts", "rows,loops")
	f("cannot run", "-rounds", "0")
	f("cannot run", "-rows", "639")
	f("", "-rows", "640", "-gc-rows", "640")
	f("cannot run", "-payload", "99")
	f("cannot run", "-window", "0s")
	f("cannot run", "more")
	f(`cannot measure part "x"`, "-parts", "rows,x")
	f(`cannot measure part ""`, "-parts", "")
	if o, _ := parseFlags(nil); o.rows != 10_000_000 || !slices.Equal(o.parts, []string{"rows", "idle", "gc", "fanout", "payload", "loops"}) {
		t.Errorf("defaults %+v", o)
	}
	if o, _ := parseFlags([]string{"-quick", "-rows", "700"}); o.rows != 700 || o.gcRows != quickGCRows || o.rounds != 2 {
		t.Errorf("quick %+v", o)
	}
}

func TestSizes(t *testing.T) {
	f := func(got []int, want ...int) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	f(tens(10_000, 10_000_000), 10_000, 100_000, 1_000_000, 10_000_000)
	f(tens(64, 640), 64, 640)
	f(tens(1, 1), 1)
	f(tens(1, 1000), 1, 10, 100, 1000)
	f(tens(1, 500), 5, 50, 500)
	f(payloadSizes(100), 100)
	f(payloadSizes(5000), 100, 1024, 4096)
	f(payloadSizes(1<<20), 100, 1<<10, 4<<10, 16<<10, 64<<10, 256<<10, 1<<20)
	for n, want := range map[int]string{640: "640", 1000: "1k", 1500: "1500", 10_000: "10k", 1_000_000: "1M", 1_500_000: "1500k"} {
		if got := count(n); got != want {
			t.Errorf("%d is said %s, want %s", n, got, want)
		}
	}
}

func TestTapes(t *testing.T) {
	f := func(method string, rows, frames int) {
		t.Helper()
		for _, tape := range tapes(method, load.Deal(0, rows, 2)) {
			if tape.Len() != frames {
				t.Errorf("%s about %d rows: a tape of %d frames, want %d", method, rows, tape.Len(), frames)
			}
		}
	}
	f("GetProcess", 2*load.MaxTape, load.MaxTape)
	f("GetProcess", 2000, 4000) // repeated
	f("TransitionState", 2*load.MaxTape, 2*load.MaxTape)
	f("TransitionState", 2000, 4000) // there and back, twice
	f(replace, 2000, 2)
	asked := 0
	encode := remembering(func(at load.Place) []byte { asked++; return []byte{byte(at.Row)} })
	for range 2 {
		if a, b := encode(load.Place{Row: 1}), encode(load.Place{Row: 2}); a[0] != 1 || b[0] != 2 || asked != 2 {
			t.Errorf("%v and %v after encoding %d places, want 2", a, b, asked)
		}
	}
	if n := len(hotTapes(load.Deal(0, 640, conns))); n != conns {
		t.Errorf("%d hot tapes", n)
	}
}

// measuresEverything measures a little of all parts: whether they fit together, not what comes out.
func measuresEverything(t *testing.T, b *bench) {
	name, profiles := filepath.Join(t.TempDir(), "scale.json"), t.TempDir()
	o, err := parseFlags([]string{"-server", b.Binary, "-rounds", "1", "-rows", "6400", "-gc-rows", "640", "-idle", "30", "-subscribers", "100",
		"-payload", "4096", "-warmup", "10ms", "-window", "40ms", "-gc-window", "700ms", "-json", name, "-profile", profiles})
	if err != nil {
		t.Fatal(err)
	}
	if failed, err := run(o); failed || err != nil {
		t.Fatalf("failed %v: %v", failed, err)
	}
	text, err := os.ReadFile(name)
	var r report
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := filepath.Glob(filepath.Join(profiles, "*-6400.pprof")); err != nil || len(kept) != len(rowMethods()) {
		t.Errorf("profiles %q, %v", kept, err)
	}
	var charts, tables, goals []string
	for _, c := range r.Charts {
		charts = append(charts, c.Name)
		complete(t, c)
	}
	for _, g := range r.Tables {
		tables = append(tables, g.Name)
		if len(g.Rows) == 0 || len(g.Rows[0]) != len(g.Head) {
			t.Errorf("table %+v", g)
		}
	}
	for _, g := range r.Goals {
		goals = append(goals, g.ID)
	}
	if got, want := strings.Join(charts, " "), "rows row-memory idle fanout payload payload-kib"; got != want {
		t.Errorf("charts %s, want %s", got, want)
	}
	if got, want := strings.Join(tables, " "), "gc fanout tuning"; got != want {
		t.Errorf("tables %s, want %s", got, want)
	}
	if got, want := strings.Join(goals, " "), "G5 G10 G10 G7 G7 G9"; got != want {
		t.Errorf("goals %s, want %s", got, want)
	}
	if r.Machine.CPUs == 0 || len(r.Cells) == 0 || r.Goals[5].Measured == 0 || r.Goals[3].Measured == 0 {
		t.Errorf("%+v", r)
	}
}

// complete fails on a chart that cannot be drawn, or with a cost of nothing.
func complete(t *testing.T, c goal.Chart) {
	t.Helper()
	if c.Title == "" || c.X == "" || c.Y == "" || len(c.Lines) == 0 {
		t.Errorf("chart %+v", c)
	}
	for _, line := range c.Lines {
		for i, p := range line.Points {
			if i > 0 && p.X <= line.Points[i-1].X || p.Y <= 0 && !strings.Contains(c.Name, "memory") && c.Name != "idle" {
				t.Errorf("chart %s, line %s: %+v", c.Name, line.Name, line.Points)
			}
		}
	}
}
