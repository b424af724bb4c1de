package exacta

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/plan"
	"trunkline/handlers/exacta/workspace"
)

// TestSeedOfAnEarlierSession: the ids of a seed come again in the next session of a project. Its
// rollback points are others.
func TestSeedOfAnEarlierSession(t *testing.T) {
	dir := newRoot(t)
	for _, step := range [][2]string{{"a", "b"}, {"b", "c"}} {
		s := newServer(t)
		p := newPeer(t, s, 1)
		p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
		p.want(2, "LogEntry1 101:ok")
		p.send(ask(2, "ApplyDiffSet", `"diffs":["--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-`+step[0]+`\n+`+step[1]+`\n"]`))
		p.want(3, "Progress2 LogEntry3 102:ok")
		s.Close()
	}
	points, err := os.ReadDir(filepath.Join(dir, ".exacta", "rollback"))
	if text, _ := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || len(points) != 2 || string(text) != "c\n" {
		t.Errorf("%d points, %v, %q", len(points), err, text)
	}
}

// TestPointOutlivesItsState: a crash between a rollback and the state behind it finds the rollback
// point that the saved state names.
func TestPointOutlivesItsState(t *testing.T) {
	dir := newRoot(t)
	ws, f := workspace.Open(dir, workspace.Options{Key: key()})
	if f != nil {
		t.Fatal(f)
	}
	defer ws.Close()
	id := codec.ID{1}
	pt, f := ws.NewPoint(id.String(), workspace.PlanPoint, "")
	if f != nil {
		t.Fatal(f)
	}
	s := &storage{ws: ws, point: pt, clock: codec.FixedClock(time.Time{})}
	e := &projects.Execution{ID: id, Plan: projects.NewPlan(&plan.Plan{})}
	if n, f := s.Undo(e); n != 0 || f != nil {
		t.Fatal(n, f)
	}
	if _, f := ws.LoadPoint(id.String()); f != nil {
		t.Errorf("dropped before the state is saved: %v", f)
	}
	if f := s.Save(&projects.Saved{State: projects.Idle}); f != nil {
		t.Fatal(f)
	}
	if _, f := ws.LoadPoint(id.String()); f == nil || f.Code != "FS-001" {
		t.Errorf("not dropped: %v", f)
	}
}

// TestWindowEndsWithInput: a peer that sends nothing more sends no ack; it gets what it asked for.
func TestWindowEndsWithInput(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	ended := make(chan struct{})
	p := newPeer(t, s, 1)
	p.sess = s.Open(p.port, Stdio, func() { close(ended) })
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	p.send(subscribeTo(2, `,"window":1`), ask(3, "ApplyDiffSet", emptySet), ask(4, "ApplyDiffSet", emptySet))
	p.sess.EOF(connection.Instant{})
	<-ended
	p.want(5, "102:ok LogEntry2 103:ok LogEntry3 104:ok")
	if !p.sess.Load().Done {
		t.Error("not done")
	}
}

// TestWindowEndsWithDrain: no ack is taken in a drain, which a full window would hold up.
func TestWindowEndsWithDrain(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	p.send(subscribeTo(2, `,"window":1`), ask(3, "ApplyDiffSet", emptySet), ask(4, "ApplyDiffSet", emptySet))
	p.sess.Drain(connection.Instant{})
	p.want(5, "102:ok LogEntry2 103:ok LogEntry3 104:ok")
	if !p.sess.Load().Done {
		t.Error("not done")
	}
}

// TestRestoredPlanIsApproved: an execution goes on only with a plan that was approved.
func TestRestoredPlanIsApproved(t *testing.T) {
	ws, f := workspace.Open(newRoot(t), workspace.Options{Key: key()})
	if f != nil {
		t.Fatal(f)
	}
	defer ws.Close()
	s := &storage{ws: ws}
	id := codec.ID{1}
	for _, status := range []plan.Status{plan.Pending, plan.Approved, plan.Rejected, plan.Expired, plan.Executed} {
		p := projects.NewPlan(&plan.Plan{ID: codec.ID{2}.String(), Status: status})
		if f := s.Keep(p); f != nil {
			t.Fatal(f)
		}
		e, f := s.restore(&workspace.State{Execution: &workspace.Execution{ID: id.String(), PlanID: p.ID, Next: 1}})
		if want := status == plan.Approved || status == plan.Executed; (e != nil) != want || (f == nil) != want {
			t.Errorf("%s: %v, %v", status, e, f)
		}
	}
}

// TestOpenedAgain: a project that is opened again in a session has the state in which it was
// closed, without a transition.
func TestOpenedAgain(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	p.send(ask(2, "ExtractIntent", `"user_input":"append \"x\" to none.txt"`))
	p.want(4, "StateChanged2 StateChanged3 LogEntry4 102:ok")
	id := codec.NewScope("t1", "p1").Next(codec.Intent).String()
	p.send(ask(3, "GeneratePlan", `"intent_id":"`+id+`"`))
	p.want(6, "StateChanged5 LogEntry6 Progress7 ErrorRaised8 StateChanged9 103:VAL-004")
	p.send(ask(4, "CloseProject", ""), ask(5, "OpenProject", `"path":"`+dir+`"`))
	p.want(3, "104:ok LogEntry10 105:ok")
	if got := s.project(s.roots[dir].id).journal.Status().State; got != projects.Failed {
		t.Errorf("opened again in %s", got)
	}
}

// TestNoPointCanBeRead: a set of diffs is refused where the rollback points are behind a link.
func TestNoPointCanBeRead(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	if err := os.MkdirAll(filepath.Join(dir, ".exacta"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, ".exacta", "rollback")); err != nil {
		t.Fatal(err)
	}
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(3, "LogEntry1 ErrorRaised2 101:ok")
	p.send(ask(2, "ApplyDiffSet", emptySet))
	p.want(2, "ErrorRaised3 102:SEC-002")
}
