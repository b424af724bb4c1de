package projects

import (
	"strings"
	"testing"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
)

// events returns the events behind a stream_seq: names, with the message of a LogEntry.
func (r *rig) events(after uint64) string {
	out, _ := r.p.Journal.Copy(nil, 1<<30, &Cursor{Next: after + 1, All: true}, 1<<30)
	var list []string
	for line := range strings.Lines(string(out)) {
		_, name, _ := strings.Cut(line, `"event":"`)
		name, _, _ = strings.Cut(name, `"`)
		if _, message, ok := strings.Cut(line, `"message":"`); ok && name == "LogEntry" {
			name, _, _ = strings.Cut(message, `"`)
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}

// preview begins a preview; its program lives if alive is set.
func (r *rig) preview(t *testing.T, alive bool) (*Request, *Work) {
	t.Helper()
	q := r.request(codec.Preview, Args{})
	w := r.works[len(r.works)-1]
	if alive {
		r.p.Started(w)
		if !strings.Contains(r.answers[q], `{"started":true}`) || !r.p.Busy() {
			t.Fatal(r.answers[q])
		}
	}
	return q, w
}

func (r *rig) want(t *testing.T, q *Request, want string) {
	t.Helper()
	if got, _, _ := code(t, r.answers[q]); got != want {
		t.Errorf("%s: %s, want %q", q.Command, r.answers[q], want)
	}
}

// TestPreviewsEnd: the end of a preview is a LogEntry, in any state, and nothing else.
func TestPreviewsEnd(t *testing.T) {
	f := func(want string, end func(w *Work)) {
		t.Helper()
		r := newRig()
		_, w := r.preview(t, true)
		r.want(t, r.request(codec.Preview, Args{}), "RES-004")
		r.p.state = Failed
		r.want(t, r.request(codec.Preview, Args{}), "RES-004")
		end(w)
		r.finish(0, nil, false)
		if got := r.events(2); got != want || r.p.state != Failed || r.p.Busy() {
			t.Errorf("%s, want %s", got, want)
		}
		r.want(t, r.request(codec.Preview, Args{}), "ST-001")
	}
	f("the preview has ended: exit code 3", func(w *Work) { w.Build.ExitCode = 3 })
	f("the preview was stopped: its time is over", func(w *Work) { w.Late = true })
}

// TestPreviewsThatDoNotStart: one that ends well at once has started, any other one failed.
func TestPreviewsThatDoNotStart(t *testing.T) {
	r := newRig()
	q, _ := r.preview(t, false)
	r.p.Expired(q) // it is short, and finishes
	behind := r.request(codec.Build, Args{})
	r.finish(0, nil, false)
	r.want(t, q, "")
	if got := r.events(0); got != "Progress, Progress, the preview has ended: exit code 0, Progress" || r.p.preview != nil || len(r.works) != 1 || r.answers[behind] != "" {
		t.Error(got)
	}
	r.finish(0, nil, false)
	before := r.p.Journal.Last()
	q, _ = r.preview(t, false)
	r.finish(0, errcode.New("BLD-005", "exit_code: 1"), false)
	r.want(t, q, "BLD-005")
	if got := r.events(before); got != "Progress, ErrorRaised" {
		t.Error(got)
	}
}

// TestPreviewsCancelled: by the request_id or the correlation_id, before and after the start; at
// the limit of those that wait, and one more.
func TestPreviewsCancelled(t *testing.T) {
	for _, alive := range []bool{false, true} {
		r := newRig()
		q, w := r.preview(t, alive)
		if alive {
			r.p.state = AwaitingApproval // any state
		}
		cancels := []*Request{}
		for i := range DefaultParked + 1 {
			h := q.Key
			if i%2 == 1 {
				h = q.flow.ID
			}
			c := &Request{ID: []byte("x"), Key: codec.ID{byte(i), 1}, Command: codec.Cancel, Args: Args{Handle: h}, Origin: new(Origin)}
			r.p.Handle(c)
			cancels = append(cancels, c)
		}
		r.want(t, cancels[DefaultParked], "RES-004")
		r.p.Started(w) // too late
		r.finish(0, nil, false)
		for _, c := range cancels[:DefaultParked] {
			if !strings.Contains(r.answers[c], `{"execution_id":"`+c.Args.Handle.String()+`","status":"cancelling"}`) {
				t.Fatal(r.answers[c])
			}
		}
		want, answer := "Progress, ErrorRaised", "IPC-010"
		if alive {
			want, answer = "Progress, Progress, the preview was stopped", ""
		}
		r.want(t, q, answer)
		if got := r.events(0); got != want {
			t.Errorf("alive %v: %s", alive, got)
		}
	}
}

// TestCloseEndsAPreview: it is answered when the program has ended; what is behind it finds no
// project, or opens it again.
func TestCloseEndsAPreview(t *testing.T) {
	r := newRig()
	q, _ := r.preview(t, true)
	closing := r.request(codec.CloseProject, Args{})
	again := r.request(codec.OpenProject, Args{})
	cancel := r.request(codec.Cancel, Args{Handle: q.Key})
	r.p.Expired(closing)
	if len(r.answers) != 1 || r.closed {
		t.Fatalf("%d answers", len(r.answers))
	}
	r.finish(0, nil, false)
	r.want(t, closing, "")
	behind := len(r.late) == 2 && r.late[0] == again && r.late[1] == cancel
	if got := r.events(2); got != "the preview was stopped" || !behind || !r.closed || r.p.Busy() {
		t.Errorf("%s, behind it: %d", got, len(r.late))
	}
}

// TestDefectsBesideAPreview: no request stays without an answer, and the program ends.
func TestDefectsBesideAPreview(t *testing.T) {
	r := newRig()
	q, w := r.preview(t, false)
	cancel := r.request(codec.Cancel, Args{Handle: q.Key})
	r.p.Broken(cancel)
	if len(r.answers) != 1 || w.cause == nil {
		t.Errorf("%d answers", len(r.answers))
	}
	r.finish(0, nil, false)
	r.want(t, cancel, "ST-002")
	r.want(t, q, "IPC-010")
	if r.p.Busy() {
		t.Error("the program goes on")
	}
	r = newRig()
	q, w = r.preview(t, true)
	r.p.Broken(q)
	r.p.Stop()
	if w.cause == nil || !r.p.Busy() {
		t.Error("the program goes on")
	}
	if r.finish(0, nil, false); r.p.Busy() {
		t.Error("the project is busy")
	}
}

// TestAbortedWithoutEffect: what has only read is answered at once, and its end is ignored.
func TestAbortedWithoutEffect(t *testing.T) {
	r := newRig()
	r.idle = true
	export, preview := r.export(1), r.request(codec.Preview, Args{})
	closing := r.request(codec.CloseProject, Args{})
	r.p.Expired(export)
	r.want(t, export, "IPC-008")
	cancel := r.request(codec.Cancel, Args{Handle: preview.Key})
	r.want(t, preview, "IPC-010")
	r.want(t, cancel, "")
	r.want(t, closing, "")
	for range 2 {
		r.finish(0, errcode.New("IPC-010", ""), false)
	}
	if r.p.Busy() || len(r.answers) != 4 {
		t.Errorf("%d answers", len(r.answers))
	}
}
