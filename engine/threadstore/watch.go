package threadstore

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/journal"
)

// gatherWakes is the least time between two rounds of wake-ups: messages of the meantime share one.
const gatherWakes = 5 * time.Millisecond

// Watcher is notified of changes of one thread, or of all threads of a workspace.
type Watcher interface {
	// Changed is called when the messages of a thread from number from up to number to are durable,
	// or, where from is larger than to, when its participants have changed. Each message is in one
	// call at most. It is called without a lock, must not block, and may be called once more after
	// the Watch has ended.
	Changed(thread string, from, to uint64)
}

// Watch is a registration of a Watcher. The zero Watch is none.
type Watch struct {
	to Watcher
	of *watched
	at int // in of.list
}

// watched is what is watched: a thread, or a workspace.
type watched struct {
	list      []*Watch
	thread    *thread // nil for a workspace
	workspace string

	queued      bool
	first, last journal.Index // of the changes since the last wake-up
	from        uint64        // number of the first message since then
}

// watches are the registrations of an engine. mu is taken under the lock of a thread.
type watches struct {
	mu         sync.Mutex
	workspaces map[string]*watched
	anyOf      atomic.Int32  // registrations for whole workspaces
	queue      []*watched    // threads that have changed
	queued     atomic.Int64  // length of queue
	ready      chan struct{} // has one element when a round is due
}

// Watch registers w for changes of a thread, or, where id is empty, for those of all threads of the
// actor's workspace. It returns the number of the last message that is durable already. A refusal
// is that of Read.
func (e *Engine) Watch(a *Actor, id []byte, to Watcher, w *Watch) (durable uint64, _ Refusal) {
	ws := &e.watches
	if len(id) == 0 {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		of := ws.workspaces[a.Workspace]
		if of == nil {
			of = &watched{workspace: a.Workspace}
			ws.workspaces[a.Workspace] = of
		}
		ws.anyOf.Add(1)
		of.add(w, to)
		return 0, Refusal{}
	}
	t, code := e.open(a, id, a.Rank == Participant)
	if code != OK {
		return 0, Refusal{Code: code}
	}
	defer t.mu.Unlock()
	if durable = t.visible(e.safe()); t.watched == nil {
		t.watched = &watched{thread: t}
	}
	if durable < t.latest {
		e.changed(t, t.index, durable+1)
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	t.watched.add(w, to)
	return durable, Refusal{}
}

func (of *watched) add(w *Watch, to Watcher) {
	*w = Watch{to: to, of: of, at: len(of.list)}
	of.list = append(of.list, w)
}

// Unwatch ends a registration. One that has ended stays so. The owner of the registration calls it.
func (e *Engine) Unwatch(w *Watch) {
	ws, of := &e.watches, w.of
	if of == nil {
		return
	}
	if of.thread != nil {
		of.thread.mu.Lock()
		defer of.thread.mu.Unlock()
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	end := len(of.list) - 1
	of.list[w.at] = of.list[end]
	of.list[w.at].at = w.at
	of.list[end] = nil
	of.list = of.list[:end]
	w.of = nil
	switch {
	case of.thread == nil:
		if ws.anyOf.Add(-1); end == 0 {
			delete(ws.workspaces, of.workspace)
		}
	case end == 0 && !of.queued:
		of.thread.watched = nil
	}
}

// changed notes that t has changed by the record at an index, with a message from a number on.
// Caller holds t.mu.
func (e *Engine) changed(t *thread, index journal.Index, from uint64) {
	ws := &e.watches
	if t.watched == nil && ws.anyOf.Load() == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if t.watched == nil {
		t.watched = &watched{thread: t}
	}
	w := t.watched
	if w.last = index; w.queued {
		return
	}
	w.queued, w.first, w.from = true, index, from
	ws.queue = append(ws.queue, w)
	ws.queued.Store(int64(len(ws.queue)))
	if index <= e.safe() {
		e.wake()
	}
}

// Durable has watchers notified of what is durable now. It is called whenever the journal has
// become durable up to a later index, and does not block.
func (e *Engine) Durable() {
	if e.watches.queued.Load() > 0 {
		e.wake()
	}
}

func (e *Engine) wake() {
	select {
	case e.watches.ready <- struct{}{}:
	default:
	}
}

// keepWaking is a goroutine of Start: it notifies watchers.
func (e *Engine) keepWaking() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	var round wakeRound
	for {
		select {
		case <-e.stop:
			return
		case <-pause.C:
		}
		select {
		case <-e.stop:
			return
		case <-e.watches.ready:
		}
		round.run(e)
		pause.Reset(gatherWakes)
	}
}

// wakeRound has the memory of a round of wake-ups.
type wakeRound struct {
	due []*watched
	to  []Watcher
}

// run notifies the watchers of all threads with a durable change.
func (r *wakeRound) run(e *Engine) {
	ws, safe := &e.watches, e.safe()
	ws.mu.Lock()
	r.due = r.due[:0]
	ws.queue = slices.DeleteFunc(ws.queue, func(w *watched) bool {
		if w.first > safe {
			return false
		}
		r.due = append(r.due, w)
		return true
	})
	ws.queued.Store(int64(len(ws.queue)))
	ws.mu.Unlock()
	for _, w := range r.due {
		r.notify(e, w, safe)
	}
	clear(r.due)
	if clear(r.to); cap(r.to) > 1024 {
		r.to = nil
	}
}

// notify notifies the watchers of a thread of what is durable up to an index.
func (r *wakeRound) notify(e *Engine, w *watched, safe journal.Index) {
	t, ws := w.thread, &e.watches
	t.mu.Lock()
	visible := t.visible(safe)
	ws.mu.Lock()
	from := w.from
	if w.queued = w.last > safe; w.queued { // more is appended already: its turn comes when that is durable
		w.first, w.from = safe+1, visible+1
		ws.queue = append(ws.queue, w)
		ws.queued.Store(int64(len(ws.queue)))
	}
	r.to = r.to[:0]
	for _, of := range []*watched{w, ws.workspaces[t.made.Workspace]} {
		if of == nil {
			continue
		}
		for _, one := range of.list {
			r.to = append(r.to, one.to)
		}
	}
	if len(w.list) == 0 && !w.queued {
		t.watched = nil
	}
	ws.mu.Unlock()
	t.mu.Unlock()
	for _, to := range r.to {
		to.Changed(t.made.ID, from, visible)
	}
}
