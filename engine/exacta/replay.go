package exacta

import (
	"sync"

	"trunkline/engine/exacta/wire"
)

// Sum is the fingerprint of a command and its payload.
type Sum [32]byte

// Asker is a connection that waits for an answer.
type Asker interface {
	// Answer takes the answer of a request.
	Answer(a *Answer)
}

// Answer is the answer of a request. It does not change.
type Answer struct {
	Line    []byte
	Journal *Journal // of its project; nil if there is none
	After   uint64   // the event that the answer stands behind
	Opens   bool     // a project was opened for the connections that asked
}

// Replays has the answers of all requests that reached a project (exacta §4.0.4): a repeated
// request is answered again and not run again. Its methods may be called from any goroutine.
type Replays struct {
	most, mostBytes int // finished ones

	mu      sync.Mutex
	entries map[wire.ID]*replay
	order   []wire.ID // of finished ones, oldest first, from next on
	next    int
	bytes   int
}

// replay is one request_id.
type replay struct {
	sum    Sum
	line   []byte // nil while it runs
	askers []Asker
	origin *Origin
}

// NewReplays returns an empty cache. l has its defaults.
func NewReplays(l *Limits) *Replays {
	return &Replays{most: l.ReplayEntries, mostBytes: l.ReplayBytes, entries: make(map[wire.ID]*replay)}
}

// Outcome is what is known about a request_id.
type Outcome uint8

// The outcomes.
const (
	Unknown  Outcome = iota // the request is new
	Stored                  // it was answered
	Joined                  // it runs; the asker gets its answer
	Conflict                // another request has the same id
)

// Look returns what is known about an id: the answer if it is Stored. An asker of the same request
// that runs joins it, as connection conn; a nil asker does not. It does not allocate, but for a
// join.
func (r *Replays) Look(id wire.ID, sum *Sum, a Asker, conn uint64) (line []byte, o Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.look(id, sum, a, conn)
}

func (r *Replays) look(id wire.ID, sum *Sum, a Asker, conn uint64) (line []byte, o Outcome) {
	e := r.entries[id]
	switch {
	case e == nil:
		return nil, Unknown
	case e.sum != *sum:
		return nil, Conflict
	case e.line != nil:
		return e.line, Stored
	}
	if a != nil {
		e.askers = append(e.askers, a)
		e.origin.Add(conn)
	}
	return nil, Joined
}

// Begin is Look, and notes that a new request runs.
func (r *Replays) Begin(id wire.ID, sum *Sum, a Asker, conn uint64, origin *Origin) (line []byte, o Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if line, o = r.look(id, sum, a, conn); o == Unknown {
		origin.Add(conn)
		r.entries[id] = &replay{sum: *sum, askers: []Asker{a}, origin: origin}
	}
	return line, o
}

// End has all askers of a request answered. The answer is kept if store is set.
func (r *Replays) End(id wire.ID, answer *Answer, store bool) {
	r.mu.Lock()
	e := r.entries[id]
	if e == nil || e.line != nil {
		r.mu.Unlock()
		return
	}
	askers := e.askers
	e.askers, e.origin = nil, nil
	if store {
		e.line = answer.Line
		r.bytes += len(e.line)
		r.order = append(r.order, id)
		r.drop()
	} else {
		delete(r.entries, id)
	}
	r.mu.Unlock()
	for _, a := range askers {
		a.Answer(answer)
	}
}

// drop drops the oldest answers over the limits.
func (r *Replays) drop() {
	for len(r.order)-r.next > r.most || r.bytes > r.mostBytes {
		id := r.order[r.next]
		r.next++
		r.bytes -= len(r.entries[id].line)
		delete(r.entries, id)
	}
	if r.next > r.most {
		r.order = append(r.order[:0], r.order[r.next:]...)
		r.next = 0
	}
}
