package projects

import (
	"strconv"
	"time"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
)

// execute begins an execution (exacta §4.8).
func (p *Project) execute(r *Request) {
	pl := p.waiting(r)
	if pl == nil {
		return
	}
	if pl.Status != plan.Approved {
		p.fail(r, errcode.New("ST-001", "Plan "+pl.ID+" is "+string(pl.Status)+"; ApprovePlan is required first.", p.state.String(), Executing.String()))
		return
	}
	if !p.stillValid(r, pl) {
		return
	}
	before := p.exec
	p.active, pl.fate, pl.Status = nil, "executed", plan.Executed
	_ = p.Disk.Keep(pl) // the state that is saved next contains the same
	p.exec = &Execution{ID: p.newPoint(codec.Execution), Plan: pl, request: r, flow: r.flow}
	if err := p.enter(Executing, "ExecutePlan", r, r.flow); err != nil {
		p.active, p.exec, pl.Status = pl, before, plan.Approved
		p.raise(r, r.flow, err)
		p.fail(r, err)
		return
	}
	if before != nil {
		before.Plan.forget()
	}
	p.done(r, append(p.exec.ID.Append([]byte(`{"execution_id":"`)), `"}`...))
	p.boundary()
}

// boundary goes on with an execution between two steps: cancel, pause, the next step, or the end
// (exacta §4.9).
func (p *Project) boundary() {
	e := p.exec
	switch {
	case len(e.cancels) > 0:
		p.cancelExecution()
	case e.pause != nil:
		r := e.pause
		e.pause = nil
		if err := p.enter(Paused, "Pause", e.request, e.flow); err != nil {
			p.raise(e.request, e.flow, err)
			p.fail(r, err)
			p.boundary()
			return
		}
		p.done(r, e.result("paused"))
	case e.stop:
		e.stop = false
		p.settle(Paused, "Pause", e.request, e.flow)
	case e.Next < len(e.Plan.Steps):
		p.step()
	default:
		p.log(e.request, e.flow, "INFO", "Orchestrator", "all steps are done: "+strconv.Itoa(len(e.Plan.Steps)))
		p.settle(Completed, "ExecutionComplete", e.request, e.flow)
	}
}

// step begins the next step.
func (p *Project) step() {
	e := p.exec
	s := &e.Plan.Steps[e.Next]
	p.note("DEBUG", "Orchestrator", "StepStarted", e.request, "step "+strconv.Itoa(s.Order))
	p.emit("StepStarted", e.request, e.flow, codec.AppendStepStarted(p.buf[:0], s.ID, s.Order, s.Description))
	if s.Type == plan.Build {
		p.progress(e.request, e.flow, "build", 0, 1)
	} else {
		p.emit("DiffProposed", e.request, e.flow, codec.AppendDiffProposed(p.buf[:0], s.ID, s.Diff))
	}
	e.work = &Work{Request: e.request, Plan: e.Plan, Step: e.Next, Point: e.ID, Started: time.Now()}
	p.Host.Run(e.work)
}

// stepped ends a step.
func (p *Project) stepped(w *Work) {
	e := p.exec
	e.work = nil
	if w.Fault == nil && e.broken != nil {
		w.Fault = e.broken
	}
	s := &e.Plan.Steps[w.Step]
	if s.Type == plan.Build && w.Fault == nil {
		p.progress(e.request, e.flow, "build", 1, 1)
	}
	p.tellLost(w, e.flow)
	ms := p.Clock.Milliseconds(w.Started)
	p.note("DEBUG", "Orchestrator", "StepCompleted", e.request, "step "+strconv.Itoa(s.Order)+": "+strconv.FormatBool(w.Fault == nil))
	p.emit("StepCompleted", e.request, e.flow, codec.AppendStepCompleted(p.buf[:0], s.ID, w.Fault == nil, ms))
	p.Counts.step(w.Fault == nil)
	switch {
	case w.Fault == nil:
		p.progress(e.request, e.flow, "apply", s.Order, len(e.Plan.Steps))
		e.Next++
	case w.cause == nil || e.broken != nil:
		p.failExecution(w.Fault)
		return
	}
	p.boundary()
}

// tellLost reports files that could not be rewritten as they were (exacta §4.17).
func (p *Project) tellLost(w *Work, f *Flow) {
	for _, path := range w.Lost {
		p.logAbout(w.Request, f, "WARN", "FileGateway",
			"the owner, group or attributes of a file could not be kept; it is neither setuid nor setgid", ": "+path)
	}
}

// failExecution takes all steps back after one failed. That is saved first: a crash on the way is
// no pause, and the next open ends what was begun.
func (p *Project) failExecution(err *errcode.Fault) {
	e := p.exec
	p.raise(e.request, e.flow, err)
	if err := p.Disk.Save(&Saved{State: Failed, Plan: e.Plan.ID, Execution: e}); err != nil {
		p.log(e.request, e.flow, "WARN", "Orchestrator", "the rollback that begins cannot be saved: "+err.Detail)
	}
	p.undo(e.request)
	p.settle(Failed, "StepFailed", e.request, e.flow)
	p.late()
}

// undo takes the steps of the execution back and reports conflicts. The events are those of r.
func (p *Project) undo(r *Request) (clean bool) {
	e := p.exec
	conflicts, err := p.Disk.Undo(e)
	if err == nil && conflicts == 0 {
		p.log(r, e.flow, "INFO", "FileGateway", "all steps of the execution were taken back")
		return true
	}
	if conflicts > 0 {
		detail := ""
		if err != nil {
			detail = err.Detail
		}
		err = errcode.New("FS-006", detail, strconv.Itoa(conflicts))
	}
	p.raise(r, e.flow, err)
	return false
}

// late answers those who wait for a boundary of an execution that has ended.
func (p *Project) late() {
	e := p.exec
	if r := e.pause; r != nil {
		e.pause = nil
		p.fail(r, refuse(r.Command, p.state))
	}
	for _, r := range e.cancels {
		p.fail(r, refuse(r.Command, p.state))
	}
	e.cancels = nil
}

// pause waits for the next boundary (exacta §4.9).
func (p *Project) pause(r *Request) {
	e := p.exec
	switch {
	case e.ID != r.Args.Handle:
		p.fail(r, errcode.New("ST-003", "execution_id"))
	case e.pause != nil || len(e.cancels) > 0:
		p.fail(r, refuse(r.Command, p.state))
	default:
		e.pause = r
	}
}

// resume goes on with an execution (exacta §4.10).
func (p *Project) resume(r *Request) {
	e := p.exec
	if e.ID != r.Args.Handle {
		p.fail(r, errcode.New("ST-003", "execution_id"))
		return
	}
	if err := p.Disk.Resumable(e); err != nil {
		p.raise(r, r.flow, err)
		if err.Code == "ST-002" {
			p.settle(Failed, "ResumeFailed", r, r.flow)
		}
		p.fail(r, err)
		return
	}
	if err := p.enter(Executing, "Resume", r, r.flow); err != nil {
		p.raise(r, r.flow, err)
		p.fail(r, err)
		return
	}
	e.request = r
	p.done(r, e.result("executing"))
	p.boundary()
}

// result returns the result of Pause, Resume and Cancel.
func (e *Execution) result(status string) []byte {
	dst := e.ID.Append([]byte(`{"execution_id":"`))
	return append(append(append(dst, `","status":"`...), status...), `"}`...)
}
