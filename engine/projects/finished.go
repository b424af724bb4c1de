package projects

import (
	"strconv"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
)

// Finished takes the result of a work.
func (p *Project) Finished(w *Work) {
	if w.Step >= 0 {
		if p.exec != nil && p.exec.work == w {
			p.stepped(w)
		}
		return
	}
	if w.Request.Command == codec.ExportDiagnostics {
		p.exported(w)
		return
	}
	if p.preview == w {
		p.previewed(w)
		return
	}
	if p.activity != w {
		return // it was aborted, and answered then
	}
	p.activity = nil
	switch c := w.Request.Command; {
	case w.cause != nil && (c == codec.ExtractIntent || c == codec.GeneratePlan): // the server stops
		p.settle(Idle, "Cancel", w.Request, w.Request.flow)
		p.fail(w.Request, w.cause)
	case c == codec.ExtractIntent:
		p.extracted(w)
	case c == codec.GeneratePlan:
		p.generated(w)
	case c == codec.ApplyDiffSet:
		p.applied(w)
	case c == codec.Build:
		p.built(w)
	case c == codec.Preview:
		p.unstarted(w)
	}
	p.unpark()
}

// applied ends an ApplyDiffSet (exacta §4.12).
func (p *Project) applied(w *Work) {
	r := w.Request
	if err := w.Fault; err != nil {
		if w.cause != nil && err.Code != "FS-006" { // else it was taken back
			err = w.cause
		}
		p.raise(r, r.flow, err)
		p.fail(r, err)
		return
	}
	p.tellLost(w, r.flow)
	for k := range w.Applied {
		p.progress(r, r.flow, "apply", k+1, w.Applied)
	}
	p.log(r, r.flow, "INFO", "FileGateway", "files changed: "+strconv.Itoa(w.Applied))
	dst := strconv.AppendBool([]byte(`{"applied":`), w.Applied > 0)
	dst = w.Point.Append(append(dst, `,"rollback_point_id":"`...))
	p.done(r, append(dst, `"}`...))
}

// built ends a Build (exacta §4.13).
func (p *Project) built(w *Work) {
	r := w.Request
	err := w.Fault
	if w.cause != nil {
		err = w.cause
	}
	if err == nil {
		p.progress(r, r.flow, "build", 1, 1)
		b := &w.Build
		if b.ExitCode != 0 {
			p.raise(r, r.flow, b.Fault())
		}
		dst := strconv.AppendInt([]byte(`{"exit_code":`), int64(b.ExitCode), 10)
		dst = strconv.AppendInt(append(dst, `,"duration_ms":`...), p.Clock.Milliseconds(w.Started), 10)
		dst = strconv.AppendInt(append(dst, `,"warnings":`...), int64(b.Warnings), 10)
		dst = strconv.AppendInt(append(dst, `,"errors":`...), int64(b.Errors), 10)
		p.done(r, append(dst, '}'))
	} else {
		p.raise(r, r.flow, err)
		p.fail(r, err)
	}
	p.cancelled(w)
}

// Expired ends a request whose time is over (exacta §4.0.3).
func (p *Project) Expired(r *Request) {
	r.over = true // it may come only now, and then ends at once
	late := errcode.New("IPC-008", "", strconv.FormatInt(r.Timeout, 10))
	for i, waiting := range p.parked {
		if waiting == r {
			p.parked = append(p.parked[:i], p.parked[i+1:]...)
			r.flow = p.newFlow()
			p.fail(r, late)
			return
		}
	}
	if e := p.exec; e != nil && e.pause == r {
		e.pause = nil
		p.fail(r, late)
		return
	}
	if w := p.exportOf(r); w != nil {
		p.abort(w, late)
		return
	}
	w := p.activity
	if w == nil || w.Request != r || r.Command == codec.Preview || r.Command == codec.CloseProject {
		return // those are short, and finish
	}
	p.abort(w, late)
	if p.activity != w || p.state != ExtractingIntent && p.state != Planning {
		return // it has ended, or ends by itself
	}
	p.activity = nil
	p.raise(r, r.flow, late)
	p.settle(Failed, "Timeout", r, r.flow)
	p.fail(r, late)
	p.unpark()
}

// Stop has an execution pause at its next boundary, and activities and a preview end: the server
// stops. What is parked does not begin any more.
func (p *Project) Stop() {
	p.stopped = true
	if p.activity != nil {
		p.abort(p.activity, stopped())
	}
	if p.preview != nil {
		p.abort(p.preview, stopped())
	}
	if e := p.exec; e != nil && p.state == Executing && e.pause == nil && len(e.cancels) == 0 {
		e.stop = true
	}
}

// Broken ends a request that hit a defect, and the project fails (exacta §8). A step that runs ends
// first: until then it may change files.
func (p *Project) Broken(r *Request) {
	err := errcode.New("ST-002", "an internal failure")
	if r.flow == nil {
		r.flow = p.newFlow()
	}
	if w := p.activity; w != nil && w.Request == r {
		if w.cause == nil {
			w.cause = err
			p.Host.Abort(w)
		}
		p.activity = nil
		p.cancelled(w)
	}
	if w := p.preview; w != nil && w.Request == r {
		p.abort(w, err)
	}
	e := p.exec
	switch {
	case p.state == Executing:
		if e.broken = err; e.work == nil {
			p.failExecution(err)
		} else {
			p.abort(e.work, err)
		}
	case p.state == Cancelling:
		p.raise(r, r.flow, err)
		p.settle(Failed, "RollbackFailed", r, r.flow)
	case (p.state == ExtractingIntent || p.state == Planning) && p.activity == nil:
		p.raise(r, r.flow, err)
		p.settle(Failed, "PlannerError", r, r.flow)
	default:
		p.raise(r, r.flow, err)
	}
	if !r.answered {
		p.fail(r, err)
	}
	p.unpark()
}

// Leave answers what still waits when the server stops.
func (p *Project) Leave() {
	p.closed = true
	for _, r := range p.parked {
		p.Handle(r)
	}
	p.parked = nil
	if e := p.exec; e != nil {
		p.late()
	}
	p.saveAgain()
}
