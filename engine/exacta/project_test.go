package exacta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"trunkline/engine/exacta/fault"
	"trunkline/engine/exacta/plan"
	"trunkline/engine/exacta/planner"
	"trunkline/engine/exacta/wire"
)

// rig is a project whose works end when a test wants it, and whose disk obeys.
type rig struct {
	p       *Project
	works   []*Work
	answers map[*Request]string
	order   []*Request
	saved   Saved
	invalid []plan.Violation
	resume  *fault.Fault
	conflicts,
	undone int
	closed bool
	full   bool // Save fails
	lost   bool // it did
}

func newRig() *rig {
	r := &rig{answers: make(map[*Request]string)}
	r.p = New(Config{ID: wire.ID{1}, IDs: wire.NewScope("t", "p1"), Clock: wire.FixedClock(timeZero), Journal: NewJournal(0), Host: r, Disk: r,
		Redact: func(s string) string { return s }, Secret: func(s string) bool { return strings.Contains(s, "sk-") }, Ready: func() *fault.Fault { return nil }})
	return r
}

func (r *rig) Answer(q *Request, line []byte, _ bool) {
	if _, twice := r.answers[q]; twice {
		panic("two answers of " + q.Command.String())
	}
	r.answers[q] = string(line)
	r.order = append(r.order, q)
}
func (r *rig) Run(w *Work) { r.works = append(r.works, w) }
func (r *rig) Abort(*Work) {}
func (r *rig) Closed()     { r.closed = true }
func (r *rig) Save(s *Saved) *fault.Fault {
	if r.full {
		r.lost = true
		return fault.New("FS-004", "")
	}
	r.saved = *s
	return nil
}
func (r *rig) Keep(*Plan) *fault.Fault { return nil }
func (r *rig) Check(*Plan, bool) []plan.Violation {
	return r.invalid
}
func (r *rig) Resumable(*Execution) *fault.Fault { return r.resume }
func (r *rig) Undo(e *Execution) (int, *fault.Fault) {
	r.undone++
	return r.conflicts, nil
}

// request hands a request to the project.
func (r *rig) request(c wire.Command, a Args) *Request {
	n := len(r.answers) + len(r.works) + 1000*r.undone + int(r.p.Journal.Last())
	id := wire.ID{byte(n), byte(n >> 8), byte(c), 0xff}
	q := &Request{ID: []byte(id.String()), Key: id, Command: c, Args: a, Timeout: 5, Origin: new(Origin)}
	r.p.Handle(q)
	return q
}

// finish ends a work.
func (r *rig) finish(i int, err *fault.Fault, planner bool) {
	w := r.works[i]
	r.works = append(r.works[:i], r.works[i+1:]...)
	w.Fault, w.Planner = err, planner && err != nil
	switch {
	case err != nil || w.Step >= 0:
	case w.Request.Command == wire.ExtractIntent:
		w.Extracted = &planned
	case w.Request.Command == wire.GeneratePlan:
		w.Planned = NewPlan(&plan.Plan{Version: w.Intent.Version(), Status: plan.Pending, Steps: []plan.Step{
			{Order: 1, Type: plan.FileCreate, Target: "a", Diff: "d"}, {Order: 2, Type: plan.Build, Target: ".", Dependencies: []string{"1"}}}})
	}
	r.p.Finished(w)
}

var planned = planner.Intent{Type: "AddFeature", Confidence: 0.95, RawInput: "x"}

// code returns the code of an answer, "" for one that is ok.
func code(t interface{ Fatalf(string, ...any) }, line string) (code, message, detail string) {
	var m struct {
		OK    bool
		Error struct {
			Code, Message string
			Detail        string `json:"technical_detail"`
		}
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return m.Error.Code, m.Error.Message, m.Error.Detail
}

// The table of exacta §5.2, read a second time.
const legal = `Idle ExtractingIntent ExtractIntent
ExtractingIntent Idle IntentExtracted
ExtractingIntent Idle IntentRejected
ExtractingIntent Idle Cancel
ExtractingIntent Failed PlannerError
ExtractingIntent Failed Timeout
Idle Planning GeneratePlan
Failed Planning GeneratePlan
AwaitingApproval Planning GeneratePlan
Planning AwaitingApproval PlanReady
Planning Failed PlanInvalid
Planning Failed PlannerError
Planning Failed Timeout
Planning Idle Cancel
AwaitingApproval Executing ExecutePlan
AwaitingApproval Idle RejectPlan
AwaitingApproval Idle Cancel
AwaitingApproval Idle PlanExpired
Executing Completed ExecutionComplete
Executing Failed StepFailed
Executing Paused Pause
Executing Cancelling Cancel
Paused Executing Resume
Paused Cancelling Cancel
Paused Failed ResumeFailed
Cancelling Idle RollbackComplete
Cancelling Failed RollbackFailed
Failed Idle Acknowledge
Completed Idle Acknowledge
`

// The table of exacta §5.3, read a second time: where a command is allowed, and what it leads to.
var allowedIn = map[wire.Command][2]string{
	wire.OpenProject:   {"Idle ExtractingIntent Planning AwaitingApproval Executing Paused Failed Completed Cancelling", ""},
	wire.CloseProject:  {"Idle AwaitingApproval Failed Completed", "CloseProject"},
	wire.ExtractIntent: {"Idle Failed Completed", "ExtractingIntent"},
	wire.GeneratePlan:  {"Idle AwaitingApproval Failed Completed", "Planning"},
	wire.ValidatePlan:  {"AwaitingApproval", "ValidatePlan"},
	wire.ApprovePlan:   {"AwaitingApproval", "ApprovePlan"},
	wire.RejectPlan:    {"AwaitingApproval", "Idle"},
	wire.ExecutePlan:   {"AwaitingApproval", "Executing"},
	wire.Pause:         {"Executing", "Paused"},
	wire.Resume:        {"Paused", "Executing"},
	wire.Cancel:        {"ExtractingIntent Planning AwaitingApproval Executing Paused Cancelling", "Cancelling"},
	wire.ApplyDiffSet:  {"Idle Failed Completed", "ApplyDiffSet"},
	wire.Build:         {"Idle Failed Completed", "Build"},
}

// texts returns the message and the detail of a refusal by the gate.
func texts(c wire.Command, state string) (message, detail string) {
	row := allowedIn[c]
	list := strings.Fields(row[0])
	expected := strings.Join(list, ", ")
	if n := len(list); n > 1 {
		expected = strings.Join(list[:n-1], ", ") + " or " + list[n-1]
	}
	return "Invalid state transition: " + state + " → " + row[1], "Expected " + expected + " before " + row[1] + "."
}

// TestGate refuses every command in every state that does not allow it (exacta §5.3).
func TestGate(t *testing.T) {
	for c, row := range allowedIn {
		for state := State(0); state < states; state++ {
			r := newRig()
			r.p.state = state
			if strings.Contains(" "+row[0]+" ", " "+state.String()+" ") {
				continue
			}
			q := r.request(c, Args{UserInput: "x"})
			got, message, detail := code(t, r.answers[q])
			wantMessage, wantDetail := texts(c, state.String())
			if got != "ST-001" || message != wantMessage || detail != wantDetail || r.p.Journal.Last() != 0 {
				t.Errorf("%s in %s: %s %s %s", c, state, got, message, detail)
			}
		}
	}
}

// machine drives a project with random requests and ends of works, beside a model.
type machine struct {
	*rig
	state string // by the events
	seqs  map[string]uint64
	read  uint64 // events that were looked at
	all   []*Request
}

func (m *machine) handles(t *rapid.T) wire.ID {
	list := []wire.ID{{9}}
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
	if m.p.active != nil {
		id, _ := wire.ParseID([]byte(m.p.active.ID))
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

func sortIDs(list []wire.ID) {
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
	c := wire.Command(rapid.IntRange(int(wire.CloseProject), int(wire.Build)).Draw(t, "command"))
	if c == wire.CloseProject && rapid.IntRange(0, 9).Draw(t, "close") > 0 {
		c = wire.GeneratePlan
	}
	before, activity, pending := m.state, m.p.activity, m.p.exec != nil && (m.p.exec.pause != nil || len(m.p.exec.cancels) > 0)
	unapproved := m.p.active != nil && m.p.active.Status == plan.Pending
	q := m.request(c, Args{UserInput: rapid.SampledFrom([]string{"x", " ", "sk-"}).Draw(t, "input"), Handle: m.handles(t)})
	m.all = append(m.all, q)
	line, answered := m.answers[q]
	control := c == wire.Pause || c == wire.Resume || c == wire.Cancel
	if activity != nil && !control {
		if answered && len(m.p.parked) < maxParked {
			t.Fatalf("%s was not parked: %s", c, line)
		}
		return
	}
	if activity != nil && activity.Request.Command == wire.Build {
		return // a Cancel of the build is allowed in any state
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
	special := m.full || c == wire.GeneratePlan || c == wire.ExecutePlan && unapproved || c == wire.Pause && pending
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
	var err *fault.Fault
	if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
		err = fault.New("VAL-004", "x", "x")
	}
	m.invalid = nil
	if rapid.IntRange(0, 9).Draw(t, "invalid") == 0 {
		m.invalid = []plan.Violation{{Code: "PV-1", Message: "x"}}
	}
	m.conflicts = max(0, rapid.IntRange(-3, 1).Draw(t, "conflicts"))
	m.finish(rapid.IntRange(0, len(m.works)-1).Draw(t, "work"), err, rapid.Bool().Draw(t, "planner"))
	m.invalid = nil
}

// Advance does what leads further: the request that a client would make next, or the end of a work.
func (m *machine) Advance(t *rapid.T) {
	m.invalid, m.full = nil, false
	if len(m.works) > 0 {
		m.conflicts = 0
		m.finish(0, nil, false)
		return
	}
	if m.closed {
		t.Skip("closed")
	}
	c, a := wire.ExtractIntent, Args{UserInput: "x"}
	switch {
	case m.p.state == AwaitingApproval:
		a.Handle, _ = wire.ParseID([]byte(m.p.active.ID))
		if c = wire.ApprovePlan; m.p.active.Status == plan.Approved {
			c = wire.ExecutePlan
		}
	case m.p.state == Paused:
		m.resume = nil
		c, a.Handle = wire.Resume, m.p.exec.ID
	case len(m.p.recent) > 0:
		c, a.Handle = wire.GeneratePlan, m.p.recent[0].ID
	}
	m.all = append(m.all, m.request(c, a))
}

// Control pauses or cancels what runs.
func (m *machine) Control(t *rapid.T) {
	a := Args{Handle: wire.ID{9}}
	switch {
	case m.p.exec != nil && (m.p.state == Executing || m.p.state == Paused):
		a.Handle = m.p.exec.ID
	case m.p.activity != nil:
		a.Handle = m.p.activity.Request.Key
	}
	c := wire.Cancel
	if rapid.Bool().Draw(t, "pause") {
		c = wire.Pause
	}
	if !m.closed {
		m.all = append(m.all, m.request(c, a))
	}
}

// Drift changes what the disk has for the next checks.
func (m *machine) Drift(t *rapid.T) {
	m.invalid, m.resume = nil, nil
	m.full = rapid.IntRange(0, 3).Draw(t, "full") == 0
	if rapid.Bool().Draw(t, "drift") {
		m.invalid = []plan.Violation{{Code: "PD-1", Message: "x"}}
		m.resume = fault.New(rapid.SampledFrom([]string{"VAL-005", "ST-002"}).Draw(t, "resume"), "x")
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
		if e.Payload.From != m.state || !strings.Contains(legal, fmt.Sprintf("%s %s %s\n", e.Payload.From, e.Payload.To, e.Payload.Trigger)) {
			t.Fatalf("in %s: %s", m.state, line)
		}
		m.state = e.Payload.To
	}
	if m.state != m.p.state.String() || m.state != m.saved.State.String() && !m.lost {
		t.Fatalf("events lead to %s, the state is %s, and %s is saved", m.state, m.p.state, m.saved.State)
	}
	if len(m.p.parked) > maxParked || len(m.p.intents) > maxIntents || len(m.p.plans) > maxPlans {
		t.Fatalf("%d parked, %d intents, %d plans", len(m.p.parked), len(m.p.intents), len(m.p.plans))
	}
}

// TestTransitions: whatever comes in whatever order, only transitions of the table happen, and each
// request has one answer in the end.
func TestTransitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{rig: newRig(), state: "Idle", seqs: make(map[string]uint64)}
		t.Repeat(map[string]func(*rapid.T){"handle": m.Handle, "advance": m.Advance, "further": m.Advance, "more": m.Advance, "control": m.Control, "finish": m.Finish, "expire": m.Expire, "drift": m.Drift, "": m.Check})
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
