package projects

import (
	"strings"
	"testing"

	"trunkline/engine/projects/codec"
)

// TestPlansThatAreOver: many are remembered, and only the last execution has its steps.
func TestPlansThatAreOver(t *testing.T) {
	r := executing(t)
	for range r.p.exec.Plan.Steps {
		r.finish(0, nil, false)
	}
	intent := r.p.recent[0].ID
	propose := func() codec.ID {
		r.request(codec.GeneratePlan, Args{Handle: intent})
		r.finish(0, nil, false)
		id, _ := codec.ParseID([]byte(r.p.active.ID))
		return id
	}
	rejected := propose()
	r.request(codec.RejectPlan, Args{Handle: rejected})
	propose()
	id := propose()
	r.request(codec.ApprovePlan, Args{Handle: id})
	r.request(codec.ExecutePlan, Args{Handle: id})
	if r.p.state != Executing || len(r.p.planned) != 4 {
		t.Fatal(r.p.state, len(r.p.planned))
	}
	for i, pl := range r.p.planned {
		if (len(pl.Steps) > 0) != (i == 3) || pl.ID == "" || pl.Version != i+1 || pl.fate == "" {
			t.Errorf("%d: %d steps, %q, version %d, %q", i, len(pl.Steps), pl.ID, pl.Version, pl.fate)
		}
	}
	for range r.p.exec.Plan.Steps {
		r.finish(0, nil, false)
	}
	propose()
	q := r.request(codec.ApprovePlan, Args{Handle: rejected})
	if got, _, detail := code(t, r.answers[q]); got != "VAL-005" || !strings.HasSuffix(detail, "rejected") {
		t.Error(got, detail)
	}
}

// TestStateThatCannotBeSaved: a request that needs another state is refused with its reason, which
// is raised too (exacta §3.7), and nothing has changed: the plan that waits is still the one.
func TestStateThatCannotBeSaved(t *testing.T) {
	r := newRig()
	refused := func(c codec.Command, a Args) {
		t.Helper()
		before, last := r.p.state, r.p.Journal.Last()
		r.full = true
		q := r.request(c, a)
		r.full = false
		got, _, _ := code(t, r.answers[q])
		if got != "FS-004" || r.p.state != before || r.p.Journal.Last() != last+1 || len(r.works) > 0 {
			t.Errorf("%s in %s: %s, %s, %d events, %d works", c, before, got, r.p.state, r.p.Journal.Last()-last, len(r.works))
		}
	}
	refused(codec.ExtractIntent, Args{UserInput: "x"})
	r.request(codec.ExtractIntent, Args{UserInput: "x"})
	r.finish(0, nil, false)
	intent := Args{Handle: r.p.recent[0].ID}
	refused(codec.GeneratePlan, intent)
	r.request(codec.GeneratePlan, intent)
	r.finish(0, nil, false)
	id, _ := codec.ParseID([]byte(r.p.active.ID))
	refused(codec.GeneratePlan, intent)
	q := r.request(codec.ApprovePlan, Args{Handle: id})
	if got, _, _ := code(t, r.answers[q]); got != "" {
		t.Error(got)
	}
	refused(codec.ExecutePlan, Args{Handle: id})
	r.request(codec.ExecutePlan, Args{Handle: id})
	r.finish(0, nil, false)
	r.finish(0, nil, false)
	refused(codec.ExtractIntent, Args{UserInput: "x"}) // in Completed
	refused(codec.GeneratePlan, intent)
}
