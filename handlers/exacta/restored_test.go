package exacta

import (
	"os"
	"path/filepath"
	"testing"

	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/plan"
	"trunkline/handlers/exacta/workspace"
)

// stepID and planID are ids as documents have them.
const (
	planID = "00000000-0000-4000-8000-00000000000a"
	stepID = "00000000-0000-4000-8000-00000000000b"
)

// appends is a plan of one step.
func appends(change func(*plan.Plan)) *projects.Plan {
	s := plan.Step{ID: stepID, Order: 1, Type: plan.FileModify, Target: "a.txt", Description: "x", Diff: "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,2 @@\n a\n+b\n",
		Pre: workspace.Sum([]byte("a\n")), Post: workspace.Sum([]byte("a\nb\n"))}
	p := &plan.Plan{ID: planID, Version: 1, Steps: []plan.Step{s}, Status: plan.Executed, ConfigFingerprint: workspace.Sum([]byte("{}"))}
	change(p)
	return projects.NewPlan(p)
}

// pausedIn makes a root with a paused execution of a plan.
func pausedIn(t *testing.T, p *projects.Plan) (dir string) {
	dir = newRoot(t)
	ws, f := workspace.Open(dir, workspace.Options{Lazy: true, Key: key()})
	if f != nil {
		t.Fatal(f)
	}
	defer ws.Close()
	id := codec.NewScope("t1", "server").ProjectID(dir)
	s := &storage{ws: ws, id: id}
	if f := s.Keep(p); f != nil {
		t.Fatal(f)
	}
	if f := s.Save(&projects.Saved{State: projects.Paused, Plan: p.ID, Execution: &projects.Execution{ID: codec.ID{1}, Plan: p}}); f != nil {
		t.Fatal(f)
	}
	return dir
}

// TestPlanOfAHostileProject: a project that comes with a paused execution has nothing but plans as
// they are made here. Events have their ids, and each line is checked by its schema.
func TestPlanOfAHostileProject(t *testing.T) {
	step := func(change func(*plan.Step)) func(*plan.Plan) {
		return func(p *plan.Plan) { change(&p.Steps[0]) }
	}
	for name, change := range map[string]func(*plan.Plan){
		"":          func(*plan.Plan) {},
		"step id":   step(func(s *plan.Step) { s.ID = "\",\"order\":1}}\n{\"type\":\"response\",\"x\":\"" }),
		"plan id":   func(p *plan.Plan) { p.ID = "p-1" },
		"order":     step(func(s *plan.Step) { s.Order = 7 }),
		"type":      step(func(s *plan.Step) { s.Type = plan.FileDelete }),
		"target":    step(func(s *plan.Step) { s.Target = "go.mod" }),
		"no change": step(func(s *plan.Step) { s.Diff = "NO_CHANGES_REQUIRED" }),
		"secret": step(func(s *plan.Step) {
			s.Diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,2 @@\n a\n+sk-aaaaaaaaaaaaaaaaaaaaaaaa\n"
		}),
		"build":    step(func(s *plan.Step) { s.Type, s.Diff = plan.Build, "" }),
		"10 steps": steps(10),
		"11 steps": steps(11),
	} {
		dir := pausedIn(t, appends(change))
		p := newPeer(t, newServer(t), 1)
		p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
		if name == "" {
			p.want(5, "LogEntry1 StateChanged2 PlanProposed3 DiffProposed4 101:ok")
		} else if name == "10 steps" {
			p.want(4, "LogEntry1 StateChanged2 PlanProposed3 101:ok")
		} else if got := p.hear(4); got != "LogEntry1 ErrorRaised2 StateChanged3 101:ok" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// steps makes a plan of that many builds.
func steps(n int) func(*plan.Plan) {
	return func(p *plan.Plan) {
		p.Steps = nil
		for i := range n {
			p.Steps = append(p.Steps, plan.Step{ID: stepID[:34] + string("0123456789ab"[i]) + "0", Order: i + 1, Type: plan.Build, Target: "."})
		}
	}
}

// TestAnotherPlanBehindAnApproval: a document that took the place of the approved one does not go
// on, though it fits itself.
func TestAnotherPlanBehindAnApproval(t *testing.T) {
	dir := pausedIn(t, appends(func(*plan.Plan) {}))
	p := newPeer(t, newServer(t), 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(5, "LogEntry1 StateChanged2 PlanProposed3 DiffProposed4 101:ok")
	other := appends(func(p *plan.Plan) { p.Steps[0].Description = "y" })
	if err := os.WriteFile(filepath.Join(dir, ".exacta", "plan", planID+".json"), other.Append(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	p.send(ask(2, "Resume", `"execution_id":"`+codec.ID{1}.String()+`"`))
	p.want(3, "ErrorRaised5 StateChanged6 102:ST-002")
}
