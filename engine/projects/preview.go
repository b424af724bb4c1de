package projects

import (
	"strconv"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
)

// Started takes a Preview whose program lives (exacta §4.14). Finished follows when it has ended.
func (p *Project) Started(w *Work) {
	if p.activity != w || w.cause != nil {
		return // it is being ended
	}
	p.activity, p.preview = nil, w
	p.started(w)
	p.unpark()
}

// started answers a Preview.
func (p *Project) started(w *Work) {
	p.progress(w.Request, w.Request.flow, "preview", 1, 1)
	p.done(w.Request, []byte(`{"started":true}`))
}

// unstarted ends a Preview whose program never counted as started: it ended at once, failed, or was
// cancelled.
func (p *Project) unstarted(w *Work) {
	r := w.Request
	err := w.Fault
	if w.cause != nil {
		err = w.cause
	}
	if err != nil {
		p.raise(r, r.flow, err)
		p.fail(r, err)
	} else {
		p.started(w)
		p.gone(w)
	}
	p.cancelled(w)
}

// previewed ends a Preview that was started. The state does not change.
func (p *Project) previewed(w *Work) {
	p.preview = nil
	p.gone(w)
	p.cancelled(w)
	p.closeIdle()
}

// gone reports the end of a preview.
func (p *Project) gone(w *Work) {
	message := "the preview has ended: exit code " + strconv.Itoa(w.Build.ExitCode)
	switch {
	case w.Late:
		message = "the preview was stopped: its time is over"
	case w.cause != nil || w.Fault != nil:
		message = "the preview was stopped"
	}
	p.log(w.Request, w.Request.flow, "INFO", "BuildExecutor", message)
}

// cancelled answers the cancels of a build or a preview that has ended.
func (p *Project) cancelled(w *Work) {
	for _, r := range w.cancels {
		if !r.answered { // by a defect
			p.done(r, status(r))
		}
	}
	w.cancels = nil
}

// processOf returns the build or preview that a handle names, nil if none (exacta §4.11).
func (p *Project) processOf(h codec.ID) *Work {
	for _, w := range [...]*Work{p.activity, p.preview} {
		if w != nil && (w.Request.Command == codec.Build || w.Request.Command == codec.Preview) && w.has(h) {
			return w
		}
	}
	return nil
}

// cancelsProcess reports whether a Cancel is of a build or a preview that runs, in any state.
func (p *Project) cancelsProcess(r *Request) bool {
	w := p.processOf(r.Args.Handle)
	if w == nil {
		return false
	}
	if len(w.cancels) == p.Limits.MaxParkedPerProject {
		p.turnAway(r, p.tooManyCancels())
		return true
	}
	w.cancels = append(w.cancels, r)
	p.abort(w, stopped())
	return true
}

// tooManyCancels refuses one more Cancel that would wait.
func (p *Project) tooManyCancels() *errcode.Fault {
	return errcode.New("RES-004", "cancels that wait: "+strconv.Itoa(p.Limits.MaxParkedPerProject))
}

// close closes the project (exacta §4.2). While a preview ends, or a bundle is written, it is an
// activity: what comes behind it waits.
func (p *Project) close(r *Request) {
	if p.state == AwaitingApproval {
		p.retire(p.active, "session")
		p.settle(Idle, "PlanExpired", r, r.flow)
	}
	p.activity = &Work{Request: r, Step: -1}
	if p.preview != nil {
		p.abort(p.preview, stopped())
	}
	p.closeIdle()
}

// closeIdle ends a CloseProject once nothing runs.
func (p *Project) closeIdle() {
	if p.preview != nil || len(p.exports) > 0 || p.activity == nil || p.activity.Request.Command != codec.CloseProject {
		return
	}
	r := p.activity.Request
	p.activity = nil
	p.closed = true
	p.done(r, []byte(`{"closed":true}`))
	p.Journal.end()
	p.Host.Closed()
	p.unpark()
}
