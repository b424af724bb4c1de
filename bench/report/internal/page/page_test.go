package page

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"trunkline/bench/internal/goal"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected page in testdata with what the tests get")

// made is reports of all parts, as they come from their files.
func made(t *testing.T) Set {
	t.Helper()
	dir := fstest.MapFS{"baseline.txt": {Data: []byte("text")}, "old.json": {Data: []byte(`{"machine": {}}`)}, "more": {Mode: os.ModeDir}}
	for _, name := range partNames {
		r := &goal.Report{Part: name, Settings: goal.Settings{Rounds: 3, Window: 0.6}}
		r.Machine = goal.Machine{Date: "2026-01-02", Revision: "0123abc", CPUs: 2, Model: "AMD EPYC", Arch: "amd64", OS: "linux", Kernel: "6.1.0", Go: "go1.26.8", Load: "0.50"}
		if fill := fillers[name]; fill != nil {
			fill(r)
		}
		r.Cells = append(r.Cells, goal.Summarize(r.Samples)...)
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		dir[name+".json"] = &fstest.MapFile{Data: b}
	}
	set, err := Read(dir)
	if err != nil || len(set) != len(partNames) {
		t.Fatalf("%d reports: %v", len(set), err)
	}
	return set
}

var fillers = map[string]func(r *goal.Report){
	"peers": func(r *goal.Report) {
		r.Note("redis-server is not installed.")
		r.Note("A profile:\nof lines")
		c := goal.Chart{Name: "peers-depth", Title: "Server CPU per request as depth grows.", X: "requests in flight on each connection", Y: "server CPU µs per request"}
		for i, name := range []string{"grpc-go", bare, ours} {
			cpu := []float64{30e3, 250, 500}[i]
			for _, depth := range []int{1, fullDepth} {
				for round := range 3 {
					s := goal.Sample{Cell: goal.Cell{Server: name, Method: "GetProcess", Conns: fullConns, Depth: depth}, Round: round}
					s.PerSec, s.CPU, s.P50, s.P99, s.P999, s.RSS = 1e9/cpu, cpu, 100, 200, 300, 5<<20
					r.Samples = append(r.Samples, s)
				}
				c.Add(name, float64(depth), cpu/1e3)
			}
		}
		r.Samples = append(r.Samples, goal.Sample{Cell: goal.Cell{Server: ours, Method: "GetProcess paced", Conns: fullConns, Depth: fullDepth}, CPU: 1e6})
		r.Chart(c)
		goalOf(r, "G1", 3, "GetProcess", 2)
		goalOf(r, "G2", 0.5, "GetProcess", 0.6, "CheckQuota", 0.4)
	},
	"scale": func(r *goal.Report) {
		c := goal.Chart{Name: "payload", Title: "What a request costs as its payload grows", X: "bytes of payload", Y: "µs"}
		for _, x := range []float64{100, 1 << 10, 1 << 20} {
			c.Add("in", x, x/50)
			c.Add("not measured", x, 0)
		}
		r.Chart(c)
		r.Chart(goal.Chart{Name: "empty"})
		goalOf(r, "G10", 380, "1M rows", 375)
		goalOf(r, "G5", 1.8, "a", 1, "b", 1.5, "c", 1.9, "d", 1)
	},
	"questions": func(r *goal.Report) {
		g := goal.Grid{Head: []string{"step", "ns/op", "verdict", "ratio"}}
		for i := range 12 {
			g.Add(fmt.Sprintf("a/package Step%d", i), 5.0, []string{"same", "slower", "unsure"}[i%3], 1+float64(i)/10)
		}
		g.Add("Gone", nil, "gone", nil)
		r.Table(g)
		r.Goals = append(r.Goals, goal.Goal{ID: "G6", What: "allocations", Verdict: goal.Pass})
	},
	"store": func(r *goal.Report) {
		r.Machine.Disk = "ext4"
		g := goal.Grid{Title: "what durability costs", Head: []string{"server", "64×1/s", "CPU µs"}}
		g.Add("always", 123456.0, 15.25)
		g.Add("redis", nil, 0.0)
		r.Table(g)
		g = goal.Grid{Title: "what a call takes", Head: []string{"connections", "p50"}}
		g.Add(1, 150.0)
		r.Table(g)
		r.Table(goal.Grid{Title: "the disk"})
		for i := range 5 {
			goalOf(r, "", 1, fmt.Sprint("m", i), 2)
		}
	},
	"tools": func(r *goal.Report) {
		goalOf(r, "", 0, "noop", 0.4)
		goalOf(r, "", 0, "hit", 0.2)
		goalOf(r, "", 1, "slot", 3)
		goalOf(r, "", 1)
	},
	"hostile": func(r *goal.Report) { r.Fault("p99 is\n above 25 ms") },
	"soak": func(r *goal.Report) {
		r.Fault("a reply is missing")
		r.Fault("another is missing")
	},
}

// goalOf adds a goal that asks for at most must.
func goalOf(r *goal.Report, id string, must float64, members ...any) {
	g := goal.Goal{ID: id, What: "what " + cmp.Or(id, fmt.Sprint(members...)), Must: must}
	for i := 0; i < len(members); i += 2 {
		v, _ := members[i+1].(float64)
		if n, ok := members[i+1].(int); ok {
			v = float64(n)
		}
		g.Add(fmt.Sprint(members[i]), v)
	}
	r.Goal(g)
}

func build(t *testing.T, s Set, isPast bool) *Page {
	t.Helper()
	notes := fstest.MapFS{"missed.md": {Data: []byte("- **G1, G2**: two tables.\n- **G3**: not missed here.\n- **tools**: a line.\n")}}
	p, err := Build(s, notes, "docs/charts", func(string) bool { return isPast })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPage: reports of all parts make the page in testdata, and charts that it shows, no others.
func TestPage(t *testing.T) {
	p := build(t, made(t), true)
	if len(p.Problems) > 0 {
		t.Errorf("problems: %q", p.Problems)
	}
	name := filepath.Join("testdata", "page.md")
	if *rewrite {
		if err := os.WriteFile(name, p.Markdown, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(p.Markdown) {
		t.Errorf("%s has changed; look at it before -rewrite accepts it:\n%s", name, p.Markdown)
	}
	var shown []string
	for _, m := range regexp.MustCompile(`\]\(docs/charts/([^)]*)\)`).FindAllSubmatch(p.Markdown, -1) {
		shown = append(shown, string(m[1]))
		if p.Charts[string(m[1])] == nil {
			t.Errorf("there is no chart %s", m[1])
		}
	}
	if len(shown) != len(p.Charts) || len(shown) != 4 {
		t.Errorf("%d charts, shown are %q", len(p.Charts), shown)
	}
}

// TestNothingMeasured: each part that left nothing has its line.
func TestNothingMeasured(t *testing.T) {
	p := build(t, Set{}, true)
	text := string(p.Markdown)
	for _, name := range partNames {
		if !strings.Contains(text, "| `go run ./bench "+name+"` | not measured |") {
			t.Errorf("nothing about %s", name)
		}
	}
	for _, want := range []string{notMeasured("peers"), notMeasured("store"), notMeasured("cluster"), notMeasured("scale"), notMeasured("questions"), "No goal was measured."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if len(p.Charts)+len(p.Problems) > 0 || strings.Contains(text, "Machine: ") {
		t.Errorf("%d charts, problems %q", len(p.Charts), p.Problems)
	}
}

func TestProblems(t *testing.T) {
	f := func(want string, isPast bool, change func(s Set)) {
		t.Helper()
		s := made(t)
		change(s)
		p := build(t, s, isPast)
		if got := strings.Join(p.Problems, "; "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if shown := strings.Contains(string(p.Markdown), "**Not to be published.** "+want+"."); shown != (want != "") {
			t.Errorf("shown: %v, %q", shown, want)
		}
	}
	f("", true, func(Set) {})
	f(strings.Join(partNames, ", ")+": of revision 0123abc, which is not in the history", false, func(Set) {})
	f("tools: of an unknown revision", true, func(s Set) { s["tools"].Machine.Revision = "unknown" })
	f("tools: of an unknown revision", true, func(s Set) { s["tools"].Machine.Revision = "" })
	f("scale, tools: of sources that were not committed, 1-dirty", true, func(s Set) {
		s["tools"].Machine.Revision, s["scale"].Machine.Revision = "1-dirty", "1-dirty"
	})
	f("soak, hostile: of a quick or partial run", true, func(s Set) {
		s["soak"].Settings.Quick, s["hostile"].Settings.Only = true, "x"
	})
}

func TestOtherMachines(t *testing.T) {
	for i, change := range []func(m *goal.Machine){
		func(m *goal.Machine) { m.CPUs++ }, func(m *goal.Machine) { m.Model = "x" }, func(m *goal.Machine) { m.Kernel = "x" }, func(m *goal.Machine) { m.Go = "x" },
	} {
		s := made(t)
		change(&s["store"].Machine)
		if p := s.problems(func(string) bool { return true }); len(p) != 1 || !strings.HasPrefix(p[0], "store: of another machine than peers: ") {
			t.Errorf("%d: %q", i, p)
		}
	}
	s := made(t)
	s["store"].Machine.Load, s["store"].Machine.Date = "9", "2026-02-03" // the same machine at another time
	if p := s.problems(func(string) bool { return true }); len(p) > 0 {
		t.Errorf("%q", p)
	}
}

func TestTooLong(t *testing.T) {
	s := made(t)
	for i := range 200 {
		goalOf(s["peers"], fmt.Sprint("X", i), 1, "m", 2.0)
	}
	if p := build(t, s, true); !slices.ContainsFunc(p.Problems, func(s string) bool { return strings.HasSuffix(s, "lines, at most 200") }) {
		t.Errorf("%q", p.Problems)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{"{", `{"part": "peers", "cells": 1}`} {
		if _, err := Read(fstest.MapFS{"peers.json": {Data: []byte(text)}}); err == nil || !strings.Contains(err.Error(), "cannot read the figures in peers.json") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if s, err := Read(os.DirFS(filepath.Join(t.TempDir(), "missing"))); err != nil || len(s) > 0 {
		t.Errorf("%v, %v", s, err)
	}
}
