package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// madeUpProjects are the cells of one round with their requests/s and their CPU time: all goals are
// just reached.
func madeUpProjects() (all []goal.Sample) {
	for _, at := range controlSizes() {
		all = append(all, goal.Sample{Cell: over(viaLines, toolServer, noopTool, at), PerSec: 1000, CPU: 1},
			goal.Sample{Cell: over(viaLines, projectServer, pauseIdle, at), PerSec: 300, CPU: 2})
	}
	for _, depth := range eventDepths() {
		all = append(all, goal.Sample{Cell: deliveries(busServer, depth), PerSec: 1, CPU: 2}, goal.Sample{Cell: deliveries(projectServer, depth), PerSec: 1, CPU: 3})
	}
	return all
}

func TestProjectGoals(t *testing.T) {
	f := func(want string, change func(all []goal.Sample)) {
		t.Helper()
		all := madeUpProjects()
		change(all)
		goals := slices.DeleteFunc(projectGoals(all), func(g bounded) bool { return g.Verdict == goal.Reported })
		if got := verdicts(goals, goal.Pass); got != want || len(goals) != 2 {
			t.Errorf("not passed: %q, want %q", got, want)
		}
	}
	of := func(c goal.Cell, change func(s *goal.Sample)) func([]goal.Sample) {
		return func(all []goal.Sample) {
			for i := range all {
				if all[i].Cell == c {
					change(&all[i])
				}
			}
		}
	}
	f("", func([]goal.Sample) {})
	f("projects: commands / a trivial tool: MISS", of(over(viaLines, projectServer, pauseIdle, polled()), func(s *goal.Sample) { s.PerSec-- }))
	f("projects: CPU per event / bus, 1 at a time: MISS", of(deliveries(projectServer, 1), func(s *goal.Sample) { s.CPU += 0.01 }))
	f("", of(deliveries(projectServer, polled().depth), func(s *goal.Sample) { s.CPU *= 2 }))
}

// paper takes lines until it is full, and then fails.
type paper struct {
	bytes.Buffer
	room  int
	taken chan struct{}
}

func (p *paper) Write(b []byte) (int, error) {
	p.taken <- struct{}{}
	if p.room--; p.room < 0 {
		return 0, errors.New("full")
	}
	return p.Buffer.Write(b)
}

// TestKeepPace: every frame has an id of its own, and the first failure is the error.
func TestKeepPace(t *testing.T) {
	p := &paper{room: 2, taken: make(chan struct{})}
	ended, done := make(chan struct{}), make(chan error)
	go func() { done <- keepPace(p, request(1, 2, "Pause", "{}"), ended) }()
	for range 3 {
		<-p.taken
	}
	close(ended)
	if err := <-done; err == nil || err.Error() != "full" {
		t.Errorf("%v", err)
	}
	lines := strings.Split(strings.TrimSuffix(p.String(), "\n"), "\n")
	if len(lines) != 2 || lines[0] == lines[1] || strings.Contains(p.String(), load.ShortPlaceholder) || !strings.Contains(lines[0], `"00000001-0002-4000-8000-000000000001"`) {
		t.Errorf("%q", lines)
	}
}
