package projects

import (
	"encoding/json"
	"strings"
	"testing"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
	"trunkline/engine/projects/planner"
)

// rig is a project whose works end when a test wants it, and whose disk obeys.
type rig struct {
	p       *Project
	works   []*Work
	answers map[*Request]string
	order   []*Request
	saved   Saved
	atUndo  Saved // what was saved when an execution was taken back
	invalid []plan.Violation
	resume  *errcode.Fault
	conflicts,
	undone int
	late   []*Request
	closed bool
	idle   bool // works have had no effect
	full   bool // Save fails
	lost   bool // it did
}

func newRig() *rig {
	r := &rig{answers: make(map[*Request]string)}
	r.p = New(Config{ID: codec.ID{1}, IDs: codec.NewScope("t", "p1"), Clock: codec.FixedClock(timeZero), Journal: NewJournal(0, defaults()), Host: r, Disk: r,
		Redact: func(s string) string { return s }, Secret: func(s string) bool { return strings.Contains(s, "sk-") }, Ready: func() *errcode.Fault { return nil }})
	return r
}

func (r *rig) Answer(q *Request, line []byte, _ bool) {
	if _, twice := r.answers[q]; twice {
		panic("two answers of " + q.Command.String())
	}
	r.answers[q] = string(line)
	r.order = append(r.order, q)
}
func (r *rig) Run(w *Work)      { r.works = append(r.works, w) }
func (r *rig) Abort(*Work) bool { return r.idle }
func (r *rig) Late(q *Request) {
	r.late = append(r.late, q)
	r.Answer(q, []byte(`{"ok":false,"error":{"code":"ST-003"}}`), false)
}
func (r *rig) Closed() { r.closed = true }
func (r *rig) Save(s *Saved) *errcode.Fault {
	if r.full {
		r.lost = true
		return errcode.New("FS-004", "")
	}
	r.saved = *s
	return nil
}
func (r *rig) Keep(*Plan) *errcode.Fault { return nil }
func (r *rig) Check(*Plan, bool) []plan.Violation {
	return r.invalid
}
func (r *rig) Resumable(*Execution) *errcode.Fault { return r.resume }
func (r *rig) Undo(e *Execution) (int, *errcode.Fault) {
	r.undone++
	r.atUndo = r.saved
	return r.conflicts, nil
}

// request hands a request to the project.
func (r *rig) request(c codec.Command, a Args) *Request {
	n := len(r.answers) + len(r.works) + 1000*r.undone + int(r.p.Journal.Last())
	id := codec.ID{byte(n), byte(n >> 8), byte(c), 0xff}
	q := &Request{ID: []byte(id.String()), Key: id, Command: c, Args: a, Timeout: 5, Origin: new(Origin)}
	r.p.Handle(q)
	return q
}

// finish ends a work.
func (r *rig) finish(i int, err *errcode.Fault, planner bool) {
	w := r.works[i]
	r.works = append(r.works[:i], r.works[i+1:]...)
	w.Fault, w.Planner = err, planner && err != nil
	switch {
	case err != nil || w.Step >= 0:
	case w.Request.Command == codec.ExtractIntent:
		w.Extracted = &planned
	case w.Request.Command == codec.GeneratePlan:
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
var allowedIn = map[codec.Command][2]string{
	codec.OpenProject:   {"Idle ExtractingIntent Planning AwaitingApproval Executing Paused Failed Completed Cancelling", ""},
	codec.CloseProject:  {"Idle AwaitingApproval Failed Completed", "CloseProject"},
	codec.ExtractIntent: {"Idle Failed Completed", "ExtractingIntent"},
	codec.GeneratePlan:  {"Idle AwaitingApproval Failed Completed", "Planning"},
	codec.ValidatePlan:  {"AwaitingApproval", "ValidatePlan"},
	codec.ApprovePlan:   {"AwaitingApproval", "ApprovePlan"},
	codec.RejectPlan:    {"AwaitingApproval", "Idle"},
	codec.ExecutePlan:   {"AwaitingApproval", "Executing"},
	codec.Pause:         {"Executing", "Paused"},
	codec.Resume:        {"Paused", "Executing"},
	codec.Cancel:        {"ExtractingIntent Planning AwaitingApproval Executing Paused Cancelling", "Cancelling"},
	codec.ApplyDiffSet:  {"Idle Failed Completed", "ApplyDiffSet"},
	codec.Build:         {"Idle Failed Completed", "Build"},
	codec.Preview:       {"Idle Completed", "Preview"},
}

// texts returns the message and the detail of a refusal by the gate.
func texts(c codec.Command, state string) (message, detail string) {
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
