package workers

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"trunkline/handlers/toolhost/tool"
)

// maxWaiting is how many calls of one tool may wait for a worker, as many as a server has
// connections (toolhost §2.3); further ones are answered as if their deadline had passed.
const maxWaiting = 4096

var (
	errNoWorker = errors.New("no worker free before the deadline")
	errClosed   = errors.New("the tool is closed")
	// errLateStart is a start that the deadline came before: it goes on, for the calls to come.
	errLateStart = errors.New("not started before the deadline")
)

// pool is who may use which worker. A place is what a worker, or a start of one, takes of max.
type pool struct {
	t *Process

	mu      sync.Mutex
	idle    []*worker // the one used last at the end: the others grow old
	all     map[*worker]struct{}
	places  int            // taken; at most Max
	ending  int            // of them, by workers out of service
	waiting []chan *worker // calls: each gets a worker, or nil, a place to start one
	sweeper *time.Timer    // nil if none is due
	closed  bool
	// forsaken counts workers that the kernel does not end and that gave up their place: at most
	// Max, so that a tool whose processes all hang in the kernel has 2*Max of them, and no more.
	forsaken int

	processes sync.WaitGroup // started, or about to be
}

// take returns a worker for one call, which give or retire must end. It waits until ctx is done.
func (p *pool) take(ctx context.Context) (*worker, error) {
	w, mine, err := p.next(ctx)
	switch {
	case err != nil:
		return nil, err
	case mine:
		return p.spawn(ctx)
	}
	if pause := w.rest(time.Now()); pause > 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return w, nil
}

// next returns an idle worker, or reports that the caller has a place to start one.
func (p *pool) next(ctx context.Context) (w *worker, mine bool, err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, false, errClosed
	}
	if n := len(p.idle); n > 0 {
		w, p.idle = p.idle[n-1], p.idle[:n-1]
		p.mu.Unlock()
		return w, false, nil
	}
	if p.places < p.t.cfg.Pool.Max {
		p.occupy()
		p.mu.Unlock()
		return nil, true, nil
	}
	if len(p.waiting) >= maxWaiting {
		p.mu.Unlock()
		return nil, false, errNoWorker
	}
	me := make(chan *worker, 1)
	p.waiting = append(p.waiting, me)
	p.mu.Unlock()
	return p.wait(ctx, me)
}

func (p *pool) wait(ctx context.Context, me chan *worker) (w *worker, mine bool, err error) {
	select {
	case w, ok := <-me:
		if !ok {
			return nil, false, errClosed
		}
		return w, w == nil, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	if i := slices.Index(p.waiting, me); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.mu.Unlock()
		return nil, false, errNoWorker
	}
	p.mu.Unlock()
	// Granted in the same moment: another caller needs it.
	if w, ok := <-me; ok {
		if w != nil {
			p.put(w)
		} else {
			p.vacate()
		}
	}
	return nil, false, errNoWorker
}

func (p *pool) occupy() {
	p.places++
	p.processes.Add(1)
}

func (p *pool) vacate() {
	p.processes.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free()
}

// free gives up a place; the first waiter gets it. The caller holds the lock.
func (p *pool) free() {
	p.places--
	if len(p.waiting) > 0 && !p.closed {
		p.occupy()
		p.grant(nil)
	}
}

func (p *pool) grant(w *worker) {
	me := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	me <- w
}

// spawn starts a worker in the caller's place. If ctx ends first, the worker becomes idle later.
func (p *pool) spawn(ctx context.Context) (*worker, error) {
	type begun struct {
		w   *worker
		err error
	}
	started := make(chan begun)
	go func() {
		w, err := p.start(ctx)
		select {
		case started <- begun{w, err}:
		case <-ctx.Done():
			if w != nil {
				p.put(w)
			}
		}
	}()
	select {
	case b := <-started:
		if b.err != nil && ctx.Err() != nil {
			b.err = errLateStart
		}
		return b.w, b.err
	case <-ctx.Done():
		return nil, errLateStart
	}
}

// start is spawn without an end that is certain.
func (p *pool) start(ctx context.Context) (*worker, error) {
	w, err := newWorker(ctx, p.t)
	if err != nil {
		p.vacate()
		return nil, err
	}
	p.mu.Lock()
	p.all[w] = struct{}{}
	closed := p.closed
	p.mu.Unlock()
	p.t.cfg.Started(w.proc.Pid)
	if most := p.t.cfg.MaxProcesses; most > 0 {
		p.t.spawner.census.watch(w, most)
	}
	go w.drain()
	go func() {
		defer p.processes.Done()
		w.await()
		p.t.spawner.census.forget(w)
		p.end(w)
		p.t.cfg.Exited(w.proc.Pid, w.code, w.reason)
		close(w.gone)
	}()
	if closed {
		p.retire(w, reasonClosed, false)
		return nil, errClosed
	}
	if !w.prog.begun() {
		p.retire(w, reasonSwapped, false)
		return nil, errHash
	}
	return w, nil
}

func (p *pool) end(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, w)
	w.ended = true
	if i := slices.Index(p.idle, w); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		w.retired = true
		w.closePipes()
		p.free()
		return
	}
	switch {
	case !w.retired: // its user retires it
	case w.forsaken:
		p.forsaken--
	default:
		p.ending--
		p.free()
	}
}

// forsake gives up the place of a worker that SIGKILL does not end.
func (p *pool) forsake(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.ended || p.forsaken >= p.t.cfg.Pool.Max {
		return
	}
	w.forsaken = true
	p.forsaken++
	p.ending--
	p.free()
}

func (p *pool) give(w *worker) {
	w.errs.reset()
	w.shrink()
	if w.served++; w.served >= p.t.cfg.Pool.MaxRequests {
		p.retire(w, reasonMaxRequests, true)
		return
	}
	p.put(w)
}

func (p *pool) put(w *worker) {
	now := time.Now()
	w.free(now)
	p.mu.Lock()
	spare := p.t.cfg.Pool.Idle == 0 && p.places-p.ending > p.t.cfg.Pool.Min
	switch {
	case p.closed || w.ended || spare && len(p.waiting) == 0:
		closed := p.closed
		p.mu.Unlock()
		if closed {
			p.retire(w, reasonClosed, true)
		} else {
			p.retire(w, reasonIdle, true)
		}
		return
	case len(p.waiting) > 0:
		p.grant(w)
	default:
		w.idleAt = now
		p.idle = append(p.idle, w)
		p.sweepLater()
	}
	p.mu.Unlock()
}

// retire takes the caller's worker out of service and ends it: politely, by the end of its input,
// or at once. Its place is free when it has ended: with Max 1 a worker is alone.
func (p *pool) retire(w *worker, reason string, politely bool) {
	p.mu.Lock()
	w.retired = true
	if w.ended {
		p.free()
	} else {
		p.ending++
	}
	p.mu.Unlock()
	w.end(reason, politely, func() { p.forsake(w) })
	w.closePipes()
}

// sweepLater schedules the sweep for the oldest idle worker. The caller holds the lock.
func (p *pool) sweepLater() {
	if p.sweeper == nil && p.t.cfg.Pool.Idle > 0 && !p.closed && len(p.idle) > 0 {
		p.sweeper = time.AfterFunc(max(time.Until(p.idle[0].idleAt.Add(p.t.cfg.Pool.Idle)), time.Millisecond), p.sweep)
	}
}

// sweep ends workers that are idle for too long, but keeps Min, and any that wrote unasked.
func (p *pool) sweep() {
	p.mu.Lock()
	p.sweeper = nil
	retiring := make(map[*worker]string)
	before, places := time.Now().Add(-p.t.cfg.Pool.Idle), p.places-p.ending
	p.idle = slices.DeleteFunc(p.idle, func(w *worker) bool {
		reason := w.unfit()
		if old := !w.idleAt.After(before); reason == "" && old {
			if places > p.t.cfg.Pool.Min {
				reason = reasonIdle
			} else {
				w.idleAt = time.Now() // kept: to be looked at again
			}
		}
		if reason == "" {
			return false
		}
		retiring[w] = reason
		places--
		return true
	})
	slices.SortStableFunc(p.idle, func(a, b *worker) int { return a.idleAt.Compare(b.idleAt) })
	p.sweepLater()
	p.mu.Unlock()
	for w, reason := range retiring {
		p.retire(w, reason, reason == reasonIdle)
	}
}

// close ends all workers, the idle ones politely, and reports whether all have ended in time.
func (p *pool) close() bool {
	p.mu.Lock()
	p.closed = true
	idle, waiting := p.idle, p.waiting
	p.idle, p.waiting = nil, nil
	var busy []*worker
	for w := range p.all {
		if !w.retired && !slices.Contains(idle, w) {
			busy = append(busy, w)
		}
	}
	if p.sweeper != nil {
		p.sweeper.Stop()
	}
	p.mu.Unlock()
	for _, me := range waiting {
		close(me)
	}
	for _, w := range idle {
		p.retire(w, reasonClosed, true)
	}
	for _, w := range busy {
		w.kill(reasonClosed) // its user retires it
	}
	return tool.EndWithin(&p.processes, closeGrace)
}
