package projects

import (
	"cmp"
	"strconv"
	"time"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
)

// Limits of a project (exacta §4.3).
const (
	maxIntents = 256
	maxPlans   = 256 // whose fate is remembered
)

// Config is what a project is made of.
type Config struct {
	Limits
	Counts  *Counts // of the server; nil: nothing is counted
	ID      codec.ID
	Session codec.ID
	Root    string // canonical
	IDs     *codec.Scope
	Clock   codec.Clock
	Journal *Journal
	Host    Host
	Disk    Disk
	Redact  func(text string) string // hides secrets in what is sent
	Secret  func(text string) bool   // finds secrets of high confidence
	Ready   func() *errcode.Fault    // why no planner can be asked, nil if one can
	Used    func(id codec.ID) bool   // an earlier session has a rollback point of the id; may be nil
}

// Project is one open project.
type Project struct {
	Config

	state    State
	unsaved  bool // the state was reported and could not be saved
	closed   bool
	stopped  bool // nothing more begins
	intents  map[codec.ID]*Intent
	recent   []*Intent // oldest first
	plans    map[codec.ID]*Plan
	planned  []*Plan // oldest first
	active   *Plan   // while it waits for approval
	exec     *Execution
	activity *Work
	preview  *Work   // the program that runs beside everything else
	exports  []*Work // bundles that are written
	parked   []*Request
	buf      []byte
	past     history
	refusals refusals
}

// New returns a project in the state Idle.
func New(c Config) *Project {
	c.Limits = c.WithDefaults()
	c.Counts = cmp.Or(c.Counts, new(Counts))
	return &Project{Config: c, intents: make(map[codec.ID]*Intent), plans: make(map[codec.ID]*Plan)}
}

// Busy reports whether something runs.
func (p *Project) Busy() bool {
	return p.activity != nil || p.preview != nil || len(p.exports) > 0 || p.exec != nil && p.exec.work != nil
}

// newFlow begins a correlation.
func (p *Project) newFlow() *Flow { return &Flow{ID: p.IDs.Next(codec.Correlation)} }

// newPoint returns the id of a rollback point. With a seed those of an earlier session come again.
func (p *Project) newPoint(k codec.Kind) codec.ID {
	id := p.IDs.Next(k)
	for p.Used != nil && p.Used(id) {
		id = p.IDs.Next(k)
	}
	return id
}

// emit adds an event. A nil request caused none.
func (p *Project) emit(name string, r *Request, f *Flow, payload []byte) {
	f.seq++
	e := codec.Event{Name: name, ID: p.IDs.Next(codec.EventID), Correlation: f.ID, Seq: f.seq, Project: p.ID, StreamSeq: p.Journal.Last() + 1}
	var origin *Origin
	if r != nil {
		e.RequestID, origin = r.ID, r.Origin
	}
	line := codec.AppendEvent(make([]byte, 0, 384+len(payload)), &e, p.Clock, payload)
	p.Journal.append(entry{line, origin, f.ID, f.seq}, p.state)
	p.Counts.event(name, p.state)
	p.buf = payload[:0]
}

// log reports what happened, for people, if its level is sent.
func (p *Project) log(r *Request, f *Flow, level, component, message string) {
	p.logAbout(r, f, level, component, message, "")
}

// logAbout is log with text of a client behind the message, which no bundle has.
func (p *Project) logAbout(r *Request, f *Flow, level, component, message, about string) {
	p.note(level, component, "LogEntry", r, message)
	if !p.logs(level) {
		return
	}
	message += about
	p.emit("LogEntry", r, f, codec.AppendLogEntry(p.buf[:0], level, component, p.Redact(message), f.ID))
}

func (p *Project) progress(r *Request, f *Flow, phase string, current, total int) {
	p.keepRecord(Record{Level: "DEBUG", Component: "Orchestrator", Event: "Progress", words: [3]string{phase}, current: current, total: total}, idOf(r), nil)
	p.emit("Progress", r, f, codec.AppendProgress(p.buf[:0], phase, current, total))
}

// raise reports a failure.
func (p *Project) raise(r *Request, f *Flow, err *errcode.Fault) {
	p.noteFault(r, err)
	p.emit("ErrorRaised", r, f, codec.AppendErrorRaised(p.buf[:0], p.hide(err)))
}

// hide returns a fault without secrets.
func (p *Project) hide(err *errcode.Fault) *errcode.Fault { return err.Hidden(p.Redact) }

// enter makes a transition (exacta §5.2): it is saved, then reported. With a fault nothing has
// changed.
func (p *Project) enter(to State, trigger string, r *Request, f *Flow) *errcode.Fault {
	from := p.state
	if !transitions[from].has(to) {
		return errcode.New("ST-001", "defect: "+trigger, from.String(), to.String())
	}
	p.state = to
	if err := p.Disk.Save(p.saved()); err != nil {
		p.state = from
		return err
	}
	p.unsaved = false
	p.changedTo(from, trigger, r, f)
	return nil
}

// settle is enter for an end that must be reached: if it cannot be saved, the failure is reported,
// and saving is tried again with each request and at the close.
func (p *Project) settle(to State, trigger string, r *Request, f *Flow) {
	if err := p.enter(to, trigger, r, f); err != nil {
		p.raise(r, f, err)
		from := p.state
		p.state, p.unsaved = to, true
		p.changedTo(from, trigger, r, f)
	}
}

// saveAgain saves a state that could not be saved when it was reported.
func (p *Project) saveAgain() {
	if p.unsaved {
		p.unsaved = p.Disk.Save(p.saved()) != nil
	}
}

// changedTo reports a transition from a state to that of the project.
func (p *Project) changedTo(from State, trigger string, r *Request, f *Flow) {
	to := p.state.String()
	p.past.changed = p.Clock.Now()
	p.note("INFO", "Orchestrator", "StateChanged", r, from.String(), to, trigger)
	p.emit("StateChanged", r, f, codec.AppendStateChanged(p.buf[:0], from.String(), to, trigger))
}

// saved returns what is to be kept.
func (p *Project) saved() *Saved {
	s := &Saved{State: p.state}
	if p.active != nil {
		s.Plan = p.active.ID
	}
	if p.exec != nil && of(Executing, Paused, Cancelling).has(p.state) {
		s.Execution = p.exec
		s.Plan = p.exec.Plan.ID
	}
	return s
}

// done answers a request.
func (p *Project) done(r *Request, result []byte) {
	r.answered = true
	p.noteAnswer(r, nil)
	p.Host.Answer(r, codec.AppendResult(nil, r.ID, r.flow.ID, p.Clock, result), true)
}

// fail answers a request with a fault.
func (p *Project) fail(r *Request, err *errcode.Fault) {
	r.answered = true
	p.noteAnswer(r, err)
	p.Host.Answer(r, codec.AppendFailure(nil, r.ID, r.flow.ID, p.Clock, p.hide(err)), true)
}

// turnAway answers a request that is not to be remembered.
func (p *Project) turnAway(r *Request, err *errcode.Fault) {
	r.answered = true
	p.noteAnswer(r, err)
	p.Host.Answer(r, codec.AppendFailure(nil, r.ID, p.IDs.Next(codec.Correlation), p.Clock, err), false)
}

// Handle takes a request that passed the checks up to the open project (exacta §3.6).
func (p *Project) Handle(r *Request) {
	switch {
	case p.closed:
		p.Host.Late(r)
		return
	case p.activity == nil || p.besides(r.Command):
		p.begin(r)
	case len(p.parked) == p.Limits.MaxParkedPerProject:
		p.turnAway(r, errcode.New("RES-004", "parked requests: "+strconv.Itoa(p.Limits.MaxParkedPerProject)))
	default:
		p.parked = append(p.parked, r)
	}
	if r.over && !r.answered {
		p.Expired(r)
	}
}

// besides reports whether a command does not wait for the end of the activity (exacta §4.0.1).
// Behind a CloseProject everything waits.
func (p *Project) besides(c codec.Command) bool {
	return (c == codec.Pause || c == codec.Resume || c == codec.Cancel || c == codec.ExportDiagnostics) && p.activity.Request.Command != codec.CloseProject
}

// unpark begins the requests that waited for the end of an activity.
func (p *Project) unpark() {
	for p.activity == nil && !p.stopped && len(p.parked) > 0 {
		r := p.parked[0]
		p.parked = p.parked[1:]
		p.Handle(r)
	}
}

// begin makes the checks 18 to 20 of exacta §3.6 and the operation.
func (p *Project) begin(r *Request) {
	if r.Command == codec.Preview && p.preview != nil {
		p.turnAway(r, errcode.New("RES-004", "a preview runs"))
		return
	}
	p.saveAgain()
	p.expire()
	if r.flow == nil {
		r.flow = p.flowOf(r)
	}
	if r.Command == codec.Cancel && p.cancelsProcess(r) {
		return
	}
	if allowed, _ := gate(r.Command); !allowed.has(p.state) {
		r.answered = true
		p.noteCode(r.ID, r.Command, "ST-001", p.Clock.Now())
		p.Host.Answer(r, p.refusals.of(r.Command, p.state).Append(nil, r.ID, r.flow.ID, p.Clock), true)
		return
	}
	p.operate(r)
}

// operate runs the operation of a request.
func (p *Project) operate(r *Request) {
	switch r.Command {
	case codec.OpenProject:
		p.open(r)
	case codec.CloseProject:
		p.close(r)
	case codec.ExtractIntent:
		p.extract(r)
	case codec.GeneratePlan:
		p.generate(r)
	case codec.ValidatePlan:
		p.validate(r)
	case codec.ApprovePlan:
		p.approve(r)
	case codec.RejectPlan:
		p.reject(r)
	case codec.ExecutePlan:
		p.execute(r)
	case codec.Pause:
		p.pause(r)
	case codec.Resume:
		p.resume(r)
	case codec.Cancel:
		p.cancel(r)
	case codec.ApplyDiffSet, codec.Build, codec.Preview:
		p.start(r)
	case codec.ExportDiagnostics:
		p.export(r)
	}
}

// flowOf returns the correlation that a request belongs to, a new one if to none (exacta §4.0.2).
func (p *Project) flowOf(r *Request) *Flow {
	if f := p.known(r.Command, r.Args.Handle); f != nil {
		return f
	}
	return p.newFlow()
}

// known returns the correlation that a command with a handle belongs to, nil if to none.
func (p *Project) known(c codec.Command, h codec.ID) *Flow {
	switch c {
	case codec.GeneratePlan:
		if i := p.intents[h]; i != nil {
			return i.flow
		}
	case codec.ValidatePlan, codec.ApprovePlan, codec.RejectPlan, codec.ExecutePlan:
		if plan := p.plans[h]; plan != nil {
			return plan.flow
		}
	case codec.Pause, codec.Resume, codec.Cancel:
		switch {
		case p.exec != nil && p.exec.ID == h:
			return p.exec.flow
		case p.plans[h] != nil:
			return p.plans[h].flow
		case p.activity != nil && p.activity.has(h):
			return p.activity.Request.flow
		case p.preview != nil && p.preview.has(h):
			return p.preview.Request.flow
		}
	}
	return nil
}

// has reports whether h names the request of a work.
func (w *Work) has(h codec.ID) bool { return w.Request.Key == h || w.Request.flow.ID == h }

// start begins an activity.
func (p *Project) start(r *Request) {
	w := &Work{Request: r, Step: -1, Started: time.Now()}
	switch r.Command {
	case codec.ApplyDiffSet:
		w.Point = p.newPoint(codec.Rollback)
	case codec.Build:
		p.progress(r, r.flow, "build", 0, 1)
	case codec.Preview:
		p.progress(r, r.flow, "preview", 0, 1)
	}
	p.activity = w
	p.Host.Run(w)
}
