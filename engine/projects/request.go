package projects

import (
	"strconv"
	"time"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
	"trunkline/engine/projects/planner"
)

// Request is a request that reached a project.
type Request struct {
	ID      []byte // as it was given
	Key     codec.ID
	Command codec.Command
	Args    Args
	Timeout int64 // in milliseconds
	Origin  *Origin

	Deadline time.Time   // when its time is over
	Timer    *time.Timer // of it; nil before the request has had its turn
	Asker    Asker       // the connection that sent it

	flow     *Flow
	answered bool
	over     bool // its time is
}

// NewRequest returns a request of a message. Its Origin is apart: events keep it, and nothing else
// of the request.
func NewRequest(m *codec.Message, args *Args, asker Asker) *Request {
	r := &struct {
		Request
		id [36]byte
	}{Request: Request{Key: m.Key, Command: m.Command, Args: *args, Origin: new(Origin), Asker: asker}}
	r.ID = append(r.id[:0], m.RequestID...)
	return &r.Request
}

// Begin gives a request a correlation of its own: that of an OpenProject is not of its project
// (exacta §6.2).
func (r *Request) Begin(id codec.ID) { r.flow = &Flow{ID: id} }

// Begun reports whether a request has a correlation.
func (r *Request) Begun() bool { return r.flow != nil }

// Answered reports whether a request has its answer.
func (r *Request) Answered() bool { return r.answered }

// Args are the fields of payloads (exacta §4). A command has those that it knows.
type Args struct {
	Path, UserInput string   // Path of an ExportDiagnostics: output_path
	Markers         []string // of an OpenProject: what its root has
	Handle          codec.ID // intent_id, plan_id or execution_id
	Diffs           []string
	Configuration   string // of a Build; empty: that of the project
	Seconds         int    // of a Build and a Preview
	Debug, Tree     bool   // of an ExportDiagnostics: what it includes
}

// Flow is one correlation (exacta §4.0.2). Its counter lives as long as something refers to it.
type Flow struct {
	ID  codec.ID
	seq uint64
}

// Correlation returns the correlation of a request that has begun.
func (r *Request) Correlation() codec.ID { return r.flow.ID }

// Work is what a project has done off its queue. The Host fills in the second half.
type Work struct {
	Request *Request
	Intent  *Intent  // of GeneratePlan
	Plan    *Plan    // of a step: the plan of the execution
	Step    int      // of a step: its index; -1 for any other work
	Point   codec.ID // of a step and of ApplyDiffSet: the rollback point
	Started time.Time

	Snapshot *Snapshot // of ExportDiagnostics

	Extracted *planner.Intent // of ExtractIntent
	Planned   *Plan           // of GeneratePlan: without ids; dependencies are orders of steps
	Applied   int             // of ApplyDiffSet: how many files were changed
	Build     BuildResult     // of Build, of build steps, and of Preview: only ExitCode
	Bundle    string          // of ExportDiagnostics: the path of the file
	Late      bool            // of Preview: its time was over
	Fault     *errcode.Fault
	Planner   bool     // the planner failed, not what it was asked
	Loose     []string // of GeneratePlan: constraints that cannot be enforced
	Cut       bool     // of ExtractIntent: the index has as many files as it can have
	Lost      []string // of a step and of ApplyDiffSet: files that lost their owner, group or attributes

	cause   *errcode.Fault // why it was aborted
	cancels []*Request     // of a Build and a Preview: they wait for its end
}

// BuildResult is how a build ended (exacta §4.13).
type BuildResult struct {
	ExitCode         int
	Warnings, Errors int
	Missing          string // a package that the project certainly needs and does not have
	Tail             string // the end of its output
}

// Fault returns why a build failed.
func (b *BuildResult) Fault() *errcode.Fault {
	if b.Missing != "" {
		return errcode.New("BLD-003", b.Tail, b.Missing)
	}
	return errcode.New("BLD-002", b.Tail, strconv.Itoa(b.Errors))
}

// Host runs what a project decides.
type Host interface {
	// Answer sends the one answer of a request, behind all events so far. It is stored for repeats
	// if store is set (exacta §4.0.4).
	Answer(r *Request, line []byte, store bool)
	// Run starts a work; Project.Finished follows, and before it Project.Started for a Preview
	// whose program lives. A step of an execution counts on it that the step before has ended.
	Run(w *Work)
	// Abort has a work end as soon as it can. Finished follows. It reports whether the work has had
	// no effect so far and will have none: one that only reads, however long that takes.
	Abort(w *Work) (idle bool)
	// Closed is called when the project was closed.
	Closed()
	// Late takes a request whose turn comes when the project was closed.
	Late(r *Request)
}

// Disk is the storage of a project. Its methods wait for the disk.
type Disk interface {
	// Save writes the state before it is reported (exacta §4.18).
	// With Failed and an execution its rollback has begun and not ended.
	Save(s *Saved) *errcode.Fault
	// Keep writes a plan, before it is proposed and when its status changes.
	Keep(p *Plan) *errcode.Fault
	// Check makes the checks of a plan against the tree (exacta §4.5). Nothing can have drifted
	// while the plan is being made.
	Check(p *Plan, making bool) []plan.Violation
	// Resumable compares the tree with an execution that is to go on (exacta §4.10).
	Resumable(e *Execution) *errcode.Fault
	// Undo takes all steps of an execution back and returns how many files it had to leave as they
	// are (exacta §4.8).
	Undo(e *Execution) (conflicts int, f *errcode.Fault)
}

// Saved is what is kept of a project (exacta §4.18).
type Saved struct {
	State     State
	Plan      string // active_plan_id, empty for none
	Execution *Execution
}

// Execution is a plan that runs or has run (exacta §5.5).
type Execution struct {
	ID   codec.ID
	Plan *Plan
	Next int // index of the next step

	request *Request // whose events it has
	flow    *Flow
	pause   *Request       // waits for a boundary
	cancels []*Request     // the same
	work    *Work          // the step that runs
	broken  *errcode.Fault // a defect: all steps are taken back at the next boundary
	stop    bool           // it pauses at the next boundary, and no request asked for it
}

// refusals are the answers to what the gate refuses (exacta §5.3), made when they are first needed.
type refusals [states][codec.Commands]codec.Prepared

// of returns the answer to a command that is refused in a state.
func (r *refusals) of(c codec.Command, now State) codec.Prepared {
	answer := &r[now][c]
	if *answer == nil {
		*answer = codec.Prepare(refuse(c, now))
	}
	return *answer
}

// Refused appends the answer of a request whose turn it is if the project refuses it because of its
// state (exacta §5.3) and nothing else runs, and reports whether it does. Otherwise the request
// goes to Handle. Nothing is changed but what the project remembers of itself, and once warm
// nothing is allocated where dst has room.
func (p *Project) Refused(dst, id []byte, c codec.Command, handle codec.ID, clock codec.Clock) ([]byte, bool) {
	if p.closed || p.unsaved || p.activity != nil || p.preview != nil || p.expired() {
		return dst, false
	}
	if allowed, _ := gate(c); allowed.has(p.state) {
		return dst, false
	}
	var correlation codec.ID
	if f := p.known(c, handle); f != nil {
		correlation = f.ID
	} else {
		correlation = p.IDs.Next(codec.Correlation)
	}
	p.noteCode(id, c, "ST-001", clock.Now())
	return p.refusals.of(c, p.state).Append(dst, id, correlation, clock), true
}
