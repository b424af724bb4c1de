package projects

import (
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
)

// stopped is why a request ended that a Cancel hit.
func stopped() *errcode.Fault { return errcode.New("IPC-010", "") }

// abort has a work end, for a reason. One that has had no effect so far ends now: what it reads may
// be a disk that does not answer.
func (p *Project) abort(w *Work, why *errcode.Fault) {
	if w.cause != nil {
		return
	}
	w.cause = why
	if !p.Host.Abort(w) {
		return
	}
	switch w.Request.Command {
	case codec.ApplyDiffSet, codec.Build, codec.Preview:
		if p.activity != w {
			return
		}
		p.activity = nil
	case codec.ExportDiagnostics:
		p.dropExport(w)
	default:
		return
	}
	p.raise(w.Request, w.Request.flow, why)
	p.fail(w.Request, why)
	p.cancelled(w)
	p.closeIdle()
	p.unpark()
}

// status returns the result of a Cancel whose handle is no execution.
func status(r *Request) []byte {
	return append(r.Args.Handle.Append([]byte(`{"execution_id":"`)), `","status":"cancelling"}`...)
}

// cancel answers a Cancel in a state that has one (exacta §4.11).
func (p *Project) cancel(r *Request) {
	switch p.state {
	case Executing, Paused:
		p.cancelSteps(r)
	case AwaitingApproval:
		pl := p.plans[r.Args.Handle]
		if pl == nil || pl != p.active {
			p.fail(r, errcode.New("ST-003", "plan_id"))
			return
		}
		p.retire(pl, "cancelled")
		p.settle(Idle, "Cancel", r, r.flow)
		p.done(r, status(r))
	case ExtractingIntent, Planning:
		w := p.activity
		if w == nil || !w.has(r.Args.Handle) {
			p.fail(r, errcode.New("ST-003", "no such request runs"))
			return
		}
		p.abort(w, stopped())
		p.activity = nil
		p.settle(Idle, "Cancel", r, r.flow)
		p.fail(w.Request, stopped())
		p.done(r, status(r))
		p.unpark()
	default:
		p.fail(r, errcode.New("ST-003", "the rollback has ended"))
	}
}

// cancelSteps cancels an execution at its next boundary. A build is killed at once (D10).
func (p *Project) cancelSteps(r *Request) {
	e := p.exec
	if e.ID != r.Args.Handle {
		p.fail(r, errcode.New("ST-003", "execution_id"))
		return
	}
	if len(e.cancels) == p.Limits.MaxParkedPerProject {
		p.turnAway(r, p.tooManyCancels())
		return
	}
	e.cancels = append(e.cancels, r)
	switch w := e.work; {
	case w == nil:
		p.cancelExecution()
	case e.Plan.Steps[w.Step].Type == plan.Build:
		p.abort(w, stopped())
	}
}

// cancelExecution takes an execution back at a boundary.
func (p *Project) cancelExecution() {
	e := p.exec
	first := e.cancels[0]
	if p.state == Executing { // it must not go on, saved or not
		p.settle(Cancelling, "Cancel", first, e.flow)
	} else if err := p.enter(Cancelling, "Cancel", first, e.flow); err != nil {
		p.raise(first, e.flow, err)
		for _, r := range e.cancels {
			p.fail(r, err)
		}
		e.cancels = nil
		return
	}
	for _, r := range e.cancels {
		p.done(r, e.result("cancelling"))
	}
	e.cancels = nil
	p.late()
	p.rollBack(first)
}

// rollBack ends Cancelling. The events are those of r.
func (p *Project) rollBack(r *Request) {
	if p.undo(r) {
		p.settle(Idle, "RollbackComplete", r, p.exec.flow)
	} else {
		p.settle(Failed, "RollbackFailed", r, p.exec.flow)
	}
}
