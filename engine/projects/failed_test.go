package projects

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
)

// executing returns a project whose first step runs.
func executing(t *testing.T) *rig {
	t.Helper()
	r := newRig()
	r.request(codec.ExtractIntent, Args{UserInput: "x"})
	r.finish(0, nil, false)
	r.request(codec.GeneratePlan, Args{Handle: r.p.recent[0].ID})
	r.finish(0, nil, false)
	id, _ := codec.ParseID([]byte(r.p.active.ID))
	r.request(codec.ApprovePlan, Args{Handle: id})
	r.request(codec.ExecutePlan, Args{Handle: id})
	if r.p.state != Executing || len(r.works) != 1 {
		t.Fatal(r.p.state)
	}
	return r
}

// triggers returns the triggers of all transitions.
func (r *rig) triggers() string {
	var out []string
	all, _ := r.p.Journal.Copy(nil, math.MaxInt, &Cursor{Next: 1, All: true}, math.MaxUint64)
	for line := range bytes.Lines(all) {
		if _, text, ok := strings.Cut(string(line), `"trigger":"`); ok {
			out = append(out, text[:strings.IndexByte(text, '"')])
		}
	}
	return strings.Join(out, " ")
}

// TestFailureIsSavedBeforeItsRollback: a crash while the steps of a failed execution are taken back
// finds that, and not an execution that could go on.
func TestFailureIsSavedBeforeItsRollback(t *testing.T) {
	r := executing(t)
	r.finish(0, nil, false)
	r.finish(0, errcode.New("BLD-002", "", "1"), false)
	if s := r.atUndo; s.State != Failed || s.Execution == nil || s.Execution.Next != 1 || s.Plan != s.Execution.Plan.ID {
		t.Errorf("before: %+v", s)
	}
	if s := r.saved; s.State != Failed || s.Execution != nil || r.undone != 1 {
		t.Errorf("after: %+v", s)
	}
}

// TestInterruptedRollback: the next open ends it. In a session that had the project open there is
// no transition.
func TestInterruptedRollback(t *testing.T) {
	for _, again := range []bool{false, true} {
		r := newRig()
		if again {
			r.p.Journal = NewJournal(5, defaults())
		}
		q := &Request{ID: []byte("x"), Key: codec.ID{1}, Command: codec.OpenProject, Origin: new(Origin)}
		q.Begin(codec.ID{2})
		e := &Execution{ID: codec.ID{3}, Plan: NewPlan(&plan.Plan{ID: codec.ID{4}.String(), Steps: []plan.Step{{Order: 1}}}), Next: 1}
		r.p.Restore(q, &Found{State: Failed, Execution: e})
		want := "SessionRestored"
		if again {
			want = ""
		}
		if got := r.triggers(); got != want || r.p.state != Failed || r.undone != 1 || !strings.Contains(r.answers[q], `"active_execution_id":null`) {
			t.Errorf("again %v: %q, %s, undone %d, %s", again, got, r.p.state, r.undone, r.answers[q])
		}
	}
}

// TestDefectBetweenSteps: an execution is taken back at once if no step runs.
func TestDefectBetweenSteps(t *testing.T) {
	r := executing(t)
	r.p.exec.work = nil
	q := r.request(codec.ValidatePlan, Args{})
	r.p.Broken(q)
	if r.p.state != Failed || r.undone != 1 || !strings.HasSuffix(r.triggers(), " StepFailed") {
		t.Errorf("%s, undone %d, %s", r.p.state, r.undone, r.triggers())
	}
}

// TestSetThatIsNotTakenBack: its time was over while it was written. It is answered with that,
// unless files could not be restored.
func TestSetThatIsNotTakenBack(t *testing.T) {
	for _, c := range [][2]string{{"IPC-010", "IPC-008"}, {"FS-006", "FS-006"}} {
		r := newRig()
		q := r.request(codec.ApplyDiffSet, Args{Diffs: []string{"x"}})
		r.p.Expired(q)
		r.finish(0, errcode.New(c[0], "", "1"), false)
		if got, _, _ := code(t, r.answers[q]); got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
	}
}

// TestLostAttributes: a step and a set report a file that could not be rewritten as it was.
func TestLostAttributes(t *testing.T) {
	tells := func(r *rig) bool {
		all, _ := r.p.Journal.Copy(nil, math.MaxInt, &Cursor{Next: 1, All: true}, math.MaxUint64)
		return strings.Contains(string(all), `neither setuid nor setgid: tool"`)
	}
	r := executing(t)
	r.works[0].Lost = []string{"tool"}
	if r.finish(0, nil, false); !tells(r) {
		t.Error("a step says nothing")
	}
	r = newRig()
	r.request(codec.ApplyDiffSet, Args{Diffs: []string{"x"}})
	r.works[0].Lost = []string{"tool"}
	if r.finish(0, nil, false); !tells(r) {
		t.Error("a set says nothing")
	}
}
