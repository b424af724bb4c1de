package exacta

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	core "trunkline/engine/exacta"
	"trunkline/engine/exacta/plan"
	"trunkline/engine/exacta/wire"
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
	keep := func(n int) *core.Plan {
		p := core.NewPlan(&plan.Plan{ID: fmt.Sprintf("p-%03d", n), Status: plan.Approved})
		if f := s.Keep(p); f != nil {
			t.Fatal(f)
		}
		return p
	}
	paused := keep(0)
	if f := s.Save(&core.Saved{State: core.Paused, Plan: paused.ID, Execution: &core.Execution{ID: wire.ID{1}, Plan: paused}}); f != nil {
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
	for _, state := range []core.State{core.Idle, core.Completed, core.Executing} {
		dir := newRoot(t)
		ws, f := workspace.Open(dir, workspace.Options{Lazy: true, Key: key()})
		if f != nil {
			t.Fatal(f)
		}
		p := core.NewPlan(&plan.Plan{ID: "p-1", Status: plan.Approved})
		s := &storage{ws: ws, id: wire.ID{7}}
		if f := s.Keep(p); f != nil {
			t.Fatal(f)
		}
		saved := &core.Saved{State: state}
		if state == core.Executing {
			saved.Plan, saved.Execution = p.ID, &core.Execution{ID: wire.ID{1}, Plan: p}
		}
		if f := s.Save(saved); f != nil {
			t.Fatal(f)
		}
		ws.Close()
		peer := newPeer(t, newServer(t), 1)
		peer.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
		if state == core.Idle {
			peer.want(2, "LogEntry1 101:ok")
		} else {
			peer.want(4, "LogEntry1 ErrorRaised2 StateChanged3 101:ok")
		}
		if _, err := os.Stat(filepath.Join(dir, ".exacta", "state.json.bad")); (err != nil) != (state == core.Idle) {
			t.Errorf("%s: %v", state, err)
		}
	}
}
