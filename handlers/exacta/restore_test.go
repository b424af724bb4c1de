package exacta

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/plan"
	"trunkline/handlers/exacta/workspace"
)

// TestPlansOfAProjectAreBounded: that of a paused execution stays, however many plans follow.
func TestPlansOfAProjectAreBounded(t *testing.T) {
	dir := newRoot(t)
	ws, f := workspace.Open(dir, workspace.Options{Lazy: true, Key: key()})
	if f != nil {
		t.Fatal(f)
	}
	defer ws.Close()
	s := &storage{ws: ws, id: parsed(pid)}
	keep := func(n int) *projects.Plan {
		p := projects.NewPlan(&plan.Plan{ID: fmt.Sprintf("p-%03d", n), Status: plan.Approved})
		if f := s.Keep(p); f != nil {
			t.Fatal(f)
		}
		return p
	}
	paused := keep(0)
	if f := s.Save(&projects.Saved{State: projects.Paused, Plan: paused.ID, Execution: &projects.Execution{ID: codec.ID{1}, Plan: paused}}); f != nil {
		t.Fatal(f)
	}
	for n := range 50 {
		keep(n + 1)
	}
	list, err := os.ReadDir(filepath.Join(dir, ".exacta", "plan"))
	if err != nil || len(list) != 32 {
		t.Errorf("%d files, %v", len(list), err)
	}
	if _, f := ws.LoadPlan(paused.ID); f != nil {
		t.Error(f)
	}
}

// TestStateOfAnotherRoot: what was interrupted in one root does not go on in a copy of it; a copy
// of a project at rest is not damaged.
func TestStateOfAnotherRoot(t *testing.T) {
	for _, state := range []projects.State{projects.Idle, projects.Completed, projects.Executing} {
		dir := newRoot(t)
		ws, f := workspace.Open(dir, workspace.Options{Lazy: true, Key: key()})
		if f != nil {
			t.Fatal(f)
		}
		p := projects.NewPlan(&plan.Plan{ID: "p-1", Status: plan.Approved})
		s := &storage{ws: ws, id: codec.ID{7}}
		if f := s.Keep(p); f != nil {
			t.Fatal(f)
		}
		saved := &projects.Saved{State: state}
		if state == projects.Executing {
			saved.Plan, saved.Execution = p.ID, &projects.Execution{ID: codec.ID{1}, Plan: p}
		}
		if f := s.Save(saved); f != nil {
			t.Fatal(f)
		}
		ws.Close()
		peer := newPeer(t, newServer(t), 1)
		peer.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
		if state == projects.Idle {
			peer.want(2, "LogEntry1 101:ok")
		} else {
			peer.want(4, "LogEntry1 ErrorRaised2 StateChanged3 101:ok")
		}
		if _, err := os.Stat(filepath.Join(dir, ".exacta", "state.json.bad")); (err != nil) != (state == projects.Idle) {
			t.Errorf("%s: %v", state, err)
		}
	}
}
