package projects

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
)

// machine drives a project with random requests and ends of works, beside a model.
type machine struct {
	*rig
	state string // by the events
	seqs  map[string]uint64
	read  uint64 // events that were looked at
	all   []*Request
}

func (m *machine) handles(t *rapid.T) codec.ID {
	list := []codec.ID{{9}}
	for id := range m.p.intents {
		list = append(list, id)
	}
	for id := range m.p.plans {
		list = append(list, id)
	}
	if m.p.exec != nil {
		list = append(list, m.p.exec.ID, m.p.exec.ID)
	}
	if m.p.activity != nil {
		list = append(list, m.p.activity.Request.Key, m.p.activity.Request.flow.ID)
	}
	if m.p.preview != nil {
		list = append(list, m.p.preview.Request.Key, m.p.preview.Request.flow.ID)
	}
	if m.p.active != nil {
		id, _ := codec.ParseID([]byte(m.p.active.ID))
		list = append(list, id, id, id)
	}
	if n := len(m.p.recent); n > 0 {
		list = append(list, m.p.recent[n-1].ID)
	}
	// The order of maps must not reach the choice.
	best := rapid.IntRange(0, len(list)-1).Draw(t, "handle")
	sortIDs(list)
	return list[best]
}

func sortIDs(list []codec.ID) {
	for i := range list {
		for j := i; j > 0 && bytes.Compare(list[j][:], list[j-1][:]) < 0; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

// Handle sends a request and compares what the gate does with the model.
func (m *machine) Handle(t *rapid.T) {
	if m.closed {
		t.Skip("closed")
	}
	c := codec.Command(rapid.IntRange(int(codec.CloseProject), int(codec.Preview)).Draw(t, "command"))
	if c == codec.CloseProject && rapid.IntRange(0, 9).Draw(t, "close") > 0 {
		c = codec.GeneratePlan
	}
	before, activity, preview, pending := m.state, m.p.activity, m.p.preview, m.p.exec != nil && (m.p.exec.pause != nil || len(m.p.exec.cancels) > 0)
	unapproved := m.p.active != nil && m.p.active.Status == plan.Pending
	h := m.handles(t)
	shows := m.p.processOf(h) != nil
	q := m.request(c, Args{UserInput: rapid.SampledFrom([]string{"x", " ", "sk-"}).Draw(t, "input"), Handle: h})
	m.all = append(m.all, q)
	line, answered := m.answers[q]
	control := c == codec.Pause || c == codec.Resume || c == codec.Cancel
	if activity != nil && (!control || activity.Request.Command == codec.CloseProject) {
		if answered && len(m.p.parked) < DefaultParked {
			t.Fatalf("%s was not parked: %s", c, line)
		}
		return
	}
	if c == codec.Cancel && shows {
		if answered && !m.idle {
			t.Fatalf("a Cancel did not wait: %s", line)
		}
		return // it is allowed in any state
	}
	if c == codec.Preview && preview != nil {
		if got, _, _ := code(t, line); got != "RES-004" {
			t.Fatalf("a second preview: %s", line)
		}
		return
	}
	permitted := strings.Contains(" "+allowedIn[c][0]+" ", " "+before+" ")
	if !answered {
		if !permitted {
			t.Fatalf("%s in %s is not answered", c, before)
		}
		return
	}
	got, message, detail := code(t, line)
	wantMessage, wantDetail := texts(c, before)
	special := m.full || c == codec.GeneratePlan || c == codec.ExecutePlan && unapproved || c == codec.Pause && pending
	switch {
	case !permitted && (got != "ST-001" || message != wantMessage || detail != wantDetail):
		t.Fatalf("%s in %s: %s", c, before, line)
	case permitted && got == "ST-001" && !special:
		t.Fatalf("%s in %s: %s", c, before, line)
	}
}

// Finish ends a work.
func (m *machine) Finish(t *rapid.T) {
	if len(m.works) == 0 {
		t.Skip("no work")
	}
	var err *errcode.Fault
	if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
		err = errcode.New("VAL-004", "x", "x")
	}
	m.invalid = nil
	if rapid.IntRange(0, 9).Draw(t, "invalid") == 0 {
		m.invalid = []plan.Violation{{Code: "PV-1", Message: "x"}}
	}
	m.conflicts = max(0, rapid.IntRange(-3, 1).Draw(t, "conflicts"))
	m.finish(rapid.IntRange(0, len(m.works)-1).Draw(t, "work"), err, rapid.Bool().Draw(t, "planner"))
	m.invalid = nil
}

// Start has a program live.
func (m *machine) Start(t *rapid.T) {
	for _, w := range m.works {
		if w.Request.Command == codec.Preview {
			m.p.Started(w)
			return
		}
	}
	t.Skip("no preview")
}

// Advance does what leads further: the request that a client would make next, or the end of a work.
func (m *machine) Advance(t *rapid.T) {
	m.invalid, m.full = nil, false
	if len(m.works) > 0 && m.works[0] != m.p.preview {
		m.conflicts = 0
		m.finish(0, nil, false)
		return
	}
	if m.closed {
		t.Skip("closed")
	}
	c, a := codec.ExtractIntent, Args{UserInput: "x"}
	switch {
	case m.p.state == AwaitingApproval:
		a.Handle, _ = codec.ParseID([]byte(m.p.active.ID))
		if c = codec.ApprovePlan; m.p.active.Status == plan.Approved {
			c = codec.ExecutePlan
		}
	case m.p.state == Paused:
		m.resume = nil
		c, a.Handle = codec.Resume, m.p.exec.ID
	case len(m.p.recent) > 0:
		c, a.Handle = codec.GeneratePlan, m.p.recent[0].ID
	}
	m.all = append(m.all, m.request(c, a))
}

// Control pauses or cancels what runs.
func (m *machine) Control(t *rapid.T) {
	a := Args{Handle: codec.ID{9}}
	switch {
	case m.p.exec != nil && (m.p.state == Executing || m.p.state == Paused):
		a.Handle = m.p.exec.ID
	case m.p.activity != nil:
		a.Handle = m.p.activity.Request.Key
	case m.p.preview != nil:
		a.Handle = m.p.preview.Request.Key
	}
	c := codec.Cancel
	if rapid.Bool().Draw(t, "pause") {
		c = codec.Pause
	}
	if !m.closed {
		m.all = append(m.all, m.request(c, a))
	}
}

// Drift changes what the disk has for the next checks.
func (m *machine) Drift(t *rapid.T) {
	m.invalid, m.resume = nil, nil
	m.full = rapid.IntRange(0, 3).Draw(t, "full") == 0
	m.idle = rapid.Bool().Draw(t, "idle")
	if rapid.Bool().Draw(t, "drift") {
		m.invalid = []plan.Violation{{Code: "PD-1", Message: "x"}}
		m.resume = errcode.New(rapid.SampledFrom([]string{"VAL-005", "ST-002"}).Draw(t, "resume"), "x")
	}
}

// Expire ends the time of a request.
func (m *machine) Expire(t *rapid.T) {
	if len(m.all) == 0 {
		t.Skip("no request")
	}
	q := m.all[rapid.IntRange(max(0, len(m.all)-8), len(m.all)-1).Draw(t, "request")]
	if _, answered := m.answers[q]; !answered {
		m.p.Expired(q)
	}
}

// restored are the transitions of the first open in a session (exacta §5.2).
const restored = `Idle Paused SessionRestored
Idle Failed SessionRestored
Idle Completed SessionRestored
Idle Cancelling SessionRestored
`

// Restart ends the server as a crash does, and opens the project with what was saved.
func (m *machine) Restart(t *rapid.T) {
	m.Check(t)
	if m.undone > 0 && rapid.Bool().Draw(t, "in the rollback") {
		m.saved = m.atUndo
	}
	found := &Found{State: m.saved.State}
	if e := m.saved.Execution; e != nil {
		doc := *e.Plan.Plan
		found.Execution = &Execution{ID: e.ID, Plan: NewPlan(&doc), Next: e.Next}
	}
	fresh := newRig()
	fresh.saved = m.saved
	m.rig, m.state, m.seqs, m.read, m.all = fresh, "Idle", make(map[string]uint64), 0, nil
	m.conflicts = max(0, rapid.IntRange(-3, 1).Draw(t, "conflicts"))
	q := &Request{ID: []byte("x"), Key: codec.ID{0xfe}, Command: codec.OpenProject, Origin: new(Origin)}
	q.Begin(codec.ID{0xfd})
	m.p.Restore(q, found)
	want := found.State
	switch want {
	case ExtractingIntent, Planning, AwaitingApproval:
		want, m.saved = Idle, Saved{} // nothing is written for it
	case Executing:
		want = Paused
	case Cancelling:
		if want = Idle; m.conflicts > 0 {
			want = Failed
		}
	}
	undone := 0
	if found.Execution != nil && (found.State == Cancelling || found.State == Failed) {
		undone = 1
	}
	if m.p.state != want || m.undone != undone || m.answers[q] == "" || want != Paused && m.saved.Execution != nil {
		t.Fatalf("%+v leads to %s, %d were taken back, %s", found, m.p.state, m.undone, m.answers[q])
	}
}

// Check reads the new events.
func (m *machine) Check(t *rapid.T) {
	c := &Cursor{Next: m.read + 1, All: true}
	out, _ := m.p.Journal.Copy(nil, math.MaxInt, c, math.MaxUint64)
	for line := range bytes.Lines(out) {
		var e struct {
			Event       string
			Correlation string `json:"correlation_id"`
			Seq         uint64
			Stream      uint64 `json:"stream_seq"`
			Payload     struct{ From, To, Trigger string }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		m.read++
		m.seqs[e.Correlation]++
		if e.Stream != m.read || e.Seq != m.seqs[e.Correlation] {
			t.Fatalf("a gap: %s", line)
		}
		if e.Event != "StateChanged" {
			continue
		}
		if e.Payload.From != m.state || !strings.Contains(legal+restored, fmt.Sprintf("%s %s %s\n", e.Payload.From, e.Payload.To, e.Payload.Trigger)) {
			t.Fatalf("in %s: %s", m.state, line)
		}
		m.state = e.Payload.To
	}
	if m.state != m.p.state.String() || m.state != m.saved.State.String() && !m.lost {
		t.Fatalf("events lead to %s, the state is %s, and %s is saved", m.state, m.p.state, m.saved.State)
	}
	if len(m.p.parked) > DefaultParked || len(m.p.intents) > maxIntents || len(m.p.plans) > maxPlans {
		t.Fatalf("%d parked, %d intents, %d plans", len(m.p.parked), len(m.p.intents), len(m.p.plans))
	}
}

// TestTransitions: whatever comes in whatever order, only transitions of the table happen, and each
// request has one answer in the end.
func TestTransitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{rig: newRig(), state: "Idle", seqs: make(map[string]uint64)}
		t.Repeat(map[string]func(*rapid.T){"handle": m.Handle, "advance": m.Advance, "further": m.Advance, "more": m.Advance, "control": m.Control, "start": m.Start, "finish": m.Finish, "expire": m.Expire, "drift": m.Drift, "restart": m.Restart, "": m.Check})
		for len(m.works) > 0 {
			m.finish(0, nil, false)
		}
		m.Check(t)
		if e := m.p.exec; e != nil && e.pause != nil {
			t.Fatalf("a Pause waits in %s", m.state)
		}
		for _, q := range m.all {
			if _, answered := m.answers[q]; !answered {
				t.Fatalf("%s is not answered", q.Command)
			}
		}
	})
}
