package projects

import (
	"strings"
	"testing"

	"trunkline/engine/projects/codec"
)

// TestStopBeginsNothing: what is parked when the server stops does not begin, and is answered.
func TestStopBeginsNothing(t *testing.T) {
	r := newRig()
	r.request(codec.Build, Args{})
	r.request(codec.Build, Args{})
	parked := r.request(codec.CloseProject, Args{})
	r.p.Stop()
	r.finish(0, nil, false)
	if len(r.works) > 0 || r.closed {
		t.Errorf("%d works began, closed: %v", len(r.works), r.closed)
	}
	if r.p.Leave(); len(r.late) != 2 || r.late[1] != parked || len(r.answers) != 3 {
		t.Errorf("%d answers, %d late", len(r.answers), len(r.late))
	}
}

// TestTimeOverBeforeItCame: a time limit that ends before the queue has the request ends it once it
// is there.
func TestTimeOverBeforeItCame(t *testing.T) {
	r := newRig()
	build := r.request(codec.Build, Args{})
	early := func(c codec.Command) *Request {
		q := &Request{ID: []byte("q"), Key: codec.ID{byte(c), 1}, Command: c, Args: Args{UserInput: "x"}, Timeout: 5, Origin: new(Origin)}
		r.p.Expired(q)
		r.p.Handle(q)
		return q
	}
	q := early(codec.ExtractIntent)
	if got, _, _ := code(t, r.answers[q]); got != "IPC-008" || len(r.p.parked) != 0 {
		t.Errorf("a parked request: %s", r.answers[q])
	}
	r.finish(0, nil, false)
	if got, _, _ := code(t, r.answers[build]); got != "" {
		t.Errorf("the build: %s", r.answers[build])
	}
	q = early(codec.ExtractIntent)
	if got, _, _ := code(t, r.answers[q]); got != "IPC-008" || r.p.state != Failed {
		t.Errorf("an activity: %s, %v", r.answers[q], r.p.state)
	}
	if got, _, _ := code(t, r.answers[early(codec.ValidatePlan)]); got != "ST-001" {
		t.Errorf("a short one: %s", got)
	}
}

// TestStopDuringPlanning: what a planner found until then is not answered, for it may be a part.
func TestStopDuringPlanning(t *testing.T) {
	for _, generates := range []bool{false, true} {
		r := newRig()
		q := r.request(codec.ExtractIntent, Args{UserInput: "x"})
		if generates {
			r.finish(0, nil, false)
			q = r.request(codec.GeneratePlan, Args{Handle: r.p.recent[0].ID})
		}
		r.p.Stop()
		r.finish(0, nil, false)
		if got, _, _ := code(t, r.answers[q]); got != "IPC-010" || r.p.state != Idle || r.saved.State != Idle || !strings.HasSuffix(r.triggers(), " Cancel") {
			t.Errorf("%s: %s, %s, %s", q.Command, got, r.p.state, r.triggers())
		}
	}
}
