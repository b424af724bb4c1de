package projects

import (
	"strconv"
	"strings"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
)

// Found is what the storage of a project has when it is opened first in a session (exacta §5.6).
type Found struct {
	State     State
	Execution *Execution       // of Executing, Paused and Cancelling; of Failed: its rollback was interrupted
	Undone    []string         // sets of diffs that were interrupted and taken back
	Kept      []*errcode.Fault // of sets that could not be taken back
	Foreign   []string         // what this installation did not write: nothing of it goes on
	Damaged   *errcode.Fault   // ST-002
}

// Restore opens the project and answers r (exacta §5.6).
func (p *Project) Restore(r *Request, found *Found) {
	markers := "no markers"
	if len(r.Args.Markers) > 0 {
		markers = "markers: " + strings.Join(r.Args.Markers, ", ")
	}
	rests := found.State == Failed || found.State == Completed
	again := p.Journal.Last() > 0 // not first in the session: no transition (exacta §5.2)
	if rests && again && found.Damaged == nil {
		p.state = found.State
	}
	p.log(r, r.flow, "INFO", "Orchestrator", "project opened; "+markers)
	for _, id := range found.Undone {
		p.log(r, r.flow, "WARN", "FileGateway", "an interrupted set of diffs was taken back: "+id)
	}
	for _, what := range found.Foreign {
		p.log(r, r.flow, "WARN", "FileGateway", "not written by this installation, or before it had a key: "+what)
	}
	for _, err := range found.Kept {
		p.raise(r, r.flow, err)
	}
	switch {
	case found.Damaged != nil:
		p.raise(r, r.flow, found.Damaged)
		p.settle(Failed, "SessionRestored", r, r.flow)
	case found.Execution != nil:
		p.restore(r, found)
	case rests && again:
	case rests:
		p.settle(found.State, "SessionRestored", r, r.flow)
	case found.State != Idle:
		p.log(r, r.flow, "WARN", "Orchestrator", "interrupted in "+found.State.String()+"; a plan that waited has expired")
	}
	p.answerOpen(r)
}

// restore goes on with an execution: it is paused, or what began to be taken back is. A step that
// failed had all steps taken back (exacta §4.8), which ends here if it was interrupted.
func (p *Project) restore(r *Request, found *Found) {
	e := found.Execution
	e.request, e.flow = r, p.newFlow()
	e.Plan.flow, e.Plan.fate = e.flow, "executed"
	p.exec = e
	p.keep(e.Plan)
	switch found.State {
	case Failed:
		p.undo(r)
		if p.state != Failed {
			p.settle(Failed, "SessionRestored", r, e.flow)
		}
	case Cancelling:
		p.settle(Cancelling, "SessionRestored", r, e.flow)
		p.rollBack(r)
	default:
		p.settle(Paused, "SessionRestored", r, e.flow)
		p.propose(r, e.flow, e.Plan.Plan) // no client of this session has seen it
	}
}

// open answers an OpenProject of a root that is open already.
func (p *Project) open(r *Request) {
	p.log(r, r.flow, "INFO", "Orchestrator", "the project is open already")
	p.answerOpen(r)
}

// answerOpen answers an OpenProject (exacta §4.1).
func (p *Project) answerOpen(r *Request) {
	dst := p.ID.Append([]byte(`{"project_id":"`))
	dst = codec.AppendText(append(dst, `","project_root":`...), p.Root)
	dst = codec.AppendTexts(append(dst, `,"detected_markers":`...), r.Args.Markers)
	dst = append(append(dst, `,"state":"`...), p.state.String()...)
	dst = p.Session.Append(append(dst, `","session_id":"`...))
	dst = strconv.AppendUint(append(dst, `","stream_seq":`...), p.Journal.Last(), 10)
	saved := p.saved()
	dst = append(dst, `,"active_plan_id":`...)
	if saved.Plan == "" {
		dst = append(dst, "null"...)
	} else {
		dst = codec.AppendText(dst, saved.Plan)
	}
	if dst = append(dst, `,"active_execution_id":`...); saved.Execution == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(saved.Execution.ID.Append(append(dst, '"')), '"')
	}
	p.done(r, append(dst, '}'))
}

// NewPlan returns a plan of a document.
func NewPlan(doc *plan.Plan) *Plan { return &Plan{Plan: doc} }

// Version returns the number of the next plan for an intent (exacta §4.4).
func (i *Intent) Version() int { return i.plans + 1 }
