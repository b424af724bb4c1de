package projects

import (
	"hash/maphash"
	"slices"
	"sync"

	"trunkline/engine/projects/codec"
)

// maxFree bounds how many dropped answers are used again.
const maxFree = 64

// Sum is the fingerprint of a command and its payload. It is of one process, which does not show
// it: the seeds, and not the hash, keep different requests from having the same.
type Sum [2]uint64

// Seeds are those of all sums of a server.
type Seeds [len(Sum{})]maphash.Seed

// Sum returns the fingerprint of text.
func (s *Seeds) Sum(text []byte) (sum Sum) {
	for i := range sum {
		sum[i] = maphash.Bytes(s[i], text)
	}
	return sum
}

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
	Seeds           Seeds // they do not change
	most, mostBytes int   // finished ones

	mu      sync.Mutex
	entries map[codec.ID]*replay
	order   []*replay // finished ones, oldest first, from next on
	next    int
	bytes   int
	added   Seen
	free    []*replay // dropped ones whose line is theirs
}

// replay is one request_id.
type replay struct {
	id     codec.ID
	sum    Sum
	line   []byte // nil while it runs
	own    bool   // nothing else has the line
	askers []Asker
	origin *Origin
}

// NewReplays returns an empty cache. l has its defaults.
func NewReplays(l *Limits) *Replays {
	return &Replays{
		Seeds:     Seeds{maphash.MakeSeed(), maphash.MakeSeed()},
		most:      l.ReplayCacheEntries,
		mostBytes: l.ReplayCacheBytes,
		entries:   make(map[codec.ID]*replay),
	}
}

// Seen is how many requests had been noted. An id that was new then is new while it does not
// change.
type Seen uint64

// Outcome is what is known about a request_id.
type Outcome uint8

// The outcomes.
const (
	Unknown  Outcome = iota // the request is new
	Stored                  // it was answered
	Joined                  // it runs; the asker gets its answer
	Conflict                // another request has the same id
)

// Look returns what is known about an id, and appends the answer to out if it is Stored. An asker
// of the same request that runs joins it, as connection conn; a nil asker does not. It does not
// allocate, but for a join.
func (r *Replays) Look(out []byte, id codec.ID, sum *Sum, a Asker, conn uint64) ([]byte, Outcome, Seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, o := r.look(out, id, sum, a, conn)
	return out, o, r.added
}

func (r *Replays) look(out []byte, id codec.ID, sum *Sum, a Asker, conn uint64) ([]byte, Outcome) {
	e := r.entries[id]
	switch {
	case e == nil:
		return out, Unknown
	case e.sum != *sum:
		return out, Conflict
	case e.line != nil:
		return append(out, e.line...), Stored
	}
	if a != nil {
		e.askers = append(e.askers, a)
		e.origin.Add(conn)
	}
	return out, Joined
}

// Begin is Look, and notes that a new request runs.
func (r *Replays) Begin(out []byte, id codec.ID, sum *Sum, a Asker, conn uint64, origin *Origin) ([]byte, Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, o := r.look(out, id, sum, a, conn)
	if o == Unknown {
		origin.Add(conn)
		r.added++
		r.entries[id] = &replay{id: id, sum: *sum, askers: []Asker{a}, origin: origin}
	}
	return out, o
}

// Keep is Begin and End of a request that was answered at once: out has its answer from start on. A
// request that is not new any more since Look is not answered so. It does not allocate once as many
// answers are kept as may be.
func (r *Replays) Keep(out []byte, start int, id codec.ID, sum *Sum, a Asker, conn uint64, seen Seen) ([]byte, Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.added != seen && r.entries[id] != nil {
		return r.look(out[:start], id, sum, a, conn)
	}
	var e *replay
	if n := len(r.free); n > 0 {
		e, r.free = r.free[n-1], r.free[:n-1]
	} else {
		e = &replay{own: true}
	}
	r.added++
	e.id, e.sum, e.line = id, *sum, append(e.line[:0], out[start:]...)
	r.entries[id] = e
	r.keep(e)
	return out, Unknown
}

// keep puts an answer behind the others, and drops the oldest over the limits.
func (r *Replays) keep(e *replay) {
	r.bytes += len(e.line)
	r.order = append(r.order, e)
	r.drop()
}

// End has all askers of a request answered. The answer is kept if store is set.
func (r *Replays) End(id codec.ID, answer *Answer, store bool) {
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
		r.keep(e)
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
		e := r.order[r.next]
		r.order[r.next] = nil
		r.next++
		r.bytes -= len(e.line)
		delete(r.entries, e.id)
		if e.own && len(r.free) < maxFree {
			r.free = append(r.free, e)
		}
	}
	if r.next > r.most {
		r.order = slices.Delete(r.order, 0, r.next)
		r.next = 0
	}
}
