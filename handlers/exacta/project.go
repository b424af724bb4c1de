package exacta

import (
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/secret"
	"trunkline/handlers/exacta/workspace"
)

// scopeName returns the name of the scope of the ids of the k-th root (exacta §6.2).
func scopeName(k int) string { return "p" + strconv.Itoa(k) }

// event is what the queue of a project takes.
type event struct {
	request *projects.Request
	done    *projects.Work
	started *projects.Work    // a Preview whose program lives
	late    *projects.Request // its time is over
	stop    bool              // the server stops
}

// project is one open project: a queue with a goroutine (exacta §4.0.1).
type project struct {
	srv     *Server
	id      codec.ID
	root    string
	journal *projects.Journal
	disk    *storage
	core    *projects.Project

	turn    sync.Mutex   // held by who decides: the queue, or a session whose request needs no queue
	waiting atomic.Int64 // events that were posted and not served; the first open is one

	mu     sync.Mutex
	queue  []event
	closed bool
	ring   chan struct{} // has room for one: there is something in the queue
	gone   chan struct{} // closed when the project is gone

	// Only the goroutine of the queue uses these.
	jobs   map[*projects.Work]*job // that have not ended: they may use the storage
	ending bool                    // the project was closed, or the server stops
	behind []event                 // came behind an OpenProject when it was closed, that one first
}

func newProject(s *Server, r *root, ws *workspace.Project, dir string, markers []string) *project {
	p := &project{srv: s, id: r.id, root: dir, journal: projects.NewJournal(r.last, &s.cfg.Limits), ring: make(chan struct{}, 1), gone: make(chan struct{}),
		jobs: make(map[*projects.Work]*job)}
	p.waiting.Store(1)
	p.disk = &storage{ws: ws, id: r.id, clock: s.cfg.Clock, planner: s.planner}
	p.disk.rules.Store(rulesOf(ws.Config(), markers))
	ws.SetDeny(func(path string, dir bool) bool {
		if dir {
			return p.disk.rules.Load().Prune(path)
		}
		return p.disk.rules.Load().Denied(path, false)
	})
	p.core = projects.New(projects.Config{Limits: s.cfg.Limits, Counts: &s.counts.core, ID: r.id, Session: s.session, Root: dir, IDs: r.scope, Clock: s.cfg.Clock, Journal: p.journal, Host: p, Disk: p.disk,
		Redact: redact, Ready: p.disk.ready, Used: p.disk.used, Secret: func(text string) bool { return secret.Find([]byte(text)) }})
	return p
}

// post puts an event into the queue. It reports false if the project is closed.
func (p *project) post(e event) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.queue = append(p.queue, e)
	p.waiting.Add(1)
	select {
	case p.ring <- struct{}{}:
	default:
	}
	return true
}

// take returns what is in the queue.
func (p *project) take() []event {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queue
	p.queue = nil
	return q
}

// run serves the queue until the project is closed or the server stops.
func (p *project) run(first *projects.Request) {
	defer p.srv.running.Done()
	p.guard(first, func() { p.core.Restore(first, p.disk.found()) })
	p.waiting.Add(-1)
	for !p.ending || p.core.Busy() || len(p.jobs) > 0 {
		<-p.ring
		for _, e := range p.take() {
			p.serve(e)
		}
	}
	p.core.Leave()
	p.disk.ws.Close()
	p.srv.forget(p)
	close(p.gone)
}

// end closes the queue. What is left in it is late.
func (p *project) end() {
	p.mu.Lock()
	p.closed = true
	rest := p.queue
	p.queue = nil
	p.mu.Unlock()
	for _, e := range rest {
		p.late(e)
	}
}

// serve takes one event.
func (p *project) serve(e event) {
	p.turn.Lock()
	defer p.turn.Unlock()
	defer p.waiting.Add(-1)
	switch {
	case e.stop:
		p.ending = true
		p.core.Stop()
	case e.done != nil:
		delete(p.jobs, e.done)
		p.guard(e.done.Request, func() { p.core.Finished(e.done) })
	case e.started != nil:
		p.guard(e.started.Request, func() { p.core.Started(e.started) })
	case len(p.behind) > 0:
		p.late(e)
	case e.late != nil:
		p.guard(e.late, func() { p.core.Expired(e.late) })
	case p.ending:
		p.late(e)
	default:
		p.guard(e.request, func() { p.core.Handle(e.request) })
		p.limit(e.request)
	}
}

// limit has a request end when its time is over. One whose turn comes later than that is handled
// all the same: most take no time.
func (p *project) limit(r *projects.Request) {
	if !p.ending && r.Command != codec.OpenProject && !r.Answered() {
		r.Timer = time.AfterFunc(time.Until(r.Deadline), func() { p.post(event{late: r}) })
	}
}

// begins begins a turn if nothing is before it in the queue: turn is locked then.
func (p *project) begins() bool {
	if p.waiting.Load() > 0 || !p.turn.TryLock() {
		return false
	}
	if p.waiting.Load() > 0 || p.ending {
		p.turn.Unlock()
		return false
	}
	return true
}

// guard keeps a defect in one request from ending the server (exacta §8).
func (p *project) guard(r *projects.Request, f func()) {
	defer p.recovered("cannot end a broken request", func() {})
	defer p.recovered("cannot serve request", func() { p.core.Broken(r) })
	f()
}

// recovered ends a panic, if there is one, with then. It is deferred.
func (p *project) recovered(message string, then func()) {
	if v := recover(); v != nil {
		p.srv.cfg.Logger.Error(message, "project", p.id.String(), "panic", v, "stack", string(debug.Stack()))
		then()
	}
}

// Answer implements projects.Host.
func (p *project) Answer(r *projects.Request, line []byte, store bool) {
	stop(r.Timer)
	opens := r.Command == codec.OpenProject && codec.CodeOf(line) == nil
	p.srv.end(r, &projects.Answer{Line: slices.Clip(line), Journal: p.journal, After: p.journal.Last(), Opens: opens}, store)
}

// maxJobs bounds the works of a project that have not ended, those included that were answered and
// wait for a disk that does not.
const maxJobs = 100

// Run implements projects.Host.
func (p *project) Run(w *projects.Work) {
	if len(p.jobs) >= maxJobs && w.Step < 0 {
		w.Fault, w.Planner = errcode.New("RES-004", "works that do not end: 100"), true
		p.post(event{done: w})
		return
	}
	j := &job{p: p, w: w, stop: make(chan struct{})}
	p.jobs[w] = j
	go func() {
		j.run()
		p.post(event{done: w})
	}()
}

// Abort implements projects.Host.
func (p *project) Abort(w *projects.Work) (idle bool) {
	j := p.jobs[w]
	if j == nil {
		return false
	}
	close(j.stop)
	return j.acts.CompareAndSwap(false, true)
}

// Late implements projects.Host.
func (p *project) Late(r *projects.Request) { p.late(event{request: r}) }

// Closed implements projects.Host.
func (p *project) Closed() { p.ending = true }

// stop stops the timer of a request that has one.
func stop(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
