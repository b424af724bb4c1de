package figures

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"trunkline/bench/internal/goal"
)

func folder(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestRead(t *testing.T) {
	s, err := Read(folder(map[string]string{
		"peers.json": `{"machine": {"cpus": 2, "go": "go1.26"}, "settings": {"rounds": 3}, "further": 1,
			"cells": [{"server": "a", "method": "m", "connections": 64, "in_flight": 8, "median": {"cpu_ns_per_request": 5},
				"rounds": [{"round": 0, "cpu_ns_per_request": 4}, {"round": 1, "cpu_ns_per_request": 6}]}],
			"goals": [{"goal": "G1", "verdict": "pass", "measured": 2}], "charts": [{"name": "c", "lines": [{"name": "l", "points": [{"x": 1, "y": 2}]}]}],
			"tables": [{"name": "t", "head": ["h"], "rows": [["r"]]}]}`,
		"soak.txt":       "PASS\n",
		"baseline.txt":   "Benchmark text",
		"README.md":      "words",
		"deep/more.json": "no JSON",
	}))
	if err != nil {
		t.Fatal(err)
	}
	r := s.Runs["peers"]
	if len(s.Runs) != 1 || len(s.Outputs) != 1 || s.Outputs["soak"][0].Text != "PASS" || s.Questions != nil {
		t.Fatalf("%+v", s)
	}
	if r.Machine.CPUs != 2 || r.Settings.Rounds != 3 || r.Goals[0].Verdict != goal.Pass || r.Charts[0].Lines[0].Points[0].Y != 2 || r.Tables[0].Rows[0][0] != "r" {
		t.Errorf("%+v", r)
	}
	all := r.Samples()
	if want := (goal.Cell{Server: "a", Method: "m", Conns: 64, Depth: 8}); len(all) != 2 || all[1].Cell != want || all[1].CPU != 6 || all[1].Round != 1 {
		t.Errorf("samples %+v", all)
	}
}

func TestReadNothing(t *testing.T) {
	s, err := Read(missing{})
	if err != nil || len(s.Runs) != 0 || len(s.Outputs) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// missing is a folder that is not there.
type missing struct{}

func (missing) Open(string) (fs.File, error) { return nil, fs.ErrNotExist }

// broken is a folder that cannot be read.
type broken struct{}

func (broken) Open(string) (fs.File, error) { return nil, errors.New("broken disk") }

func TestReadRefuses(t *testing.T) {
	f := func(dir fs.FS, want string) {
		t.Helper()
		if _, err := Read(dir); err == nil || !strings.HasPrefix(err.Error(), "cannot ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	f(folder(map[string]string{"peers.json": "{"}), "peers.json")
	f(folder(map[string]string{"questions.json": "[]"}), "questions.json")
	f(broken{}, "broken disk")
}
