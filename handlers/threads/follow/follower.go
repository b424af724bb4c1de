package follow

import (
	"sync"

	"trunkline/engine/threadstore"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// Reader is who follows.
type Reader interface {
	// Ready is called when there may be messages since the last call of Next. It must not block.
	Ready()
	// Frame returns what stands around the messages of a thread. whole is set where, but for these,
	// nothing older is left to send: a stream can go on behind them.
	Frame(thread string, whole bool) threadstore.Frame
}

// Follower is the position of a stream. Its methods but Changed are for one goroutine at a time.
type Follower struct {
	s      *Server
	claims *token.Claims
	reader Reader
	watch  threadstore.Watch
	thread string // empty: all
	next   uint64 // the number of the last message that was sent, of one thread

	mu     sync.Mutex
	ready  bool             // Ready was called
	lost   bool             // it is too far behind
	behind []*span          // of all threads: what is durable and was not sent, oldest first
	spans  map[string]*span // the elements of behind, by thread
}

// span is messages of a thread.
type span struct {
	thread    string
	next, end uint64 // the number before the first one, that of the last one
}

// Begin begins to follow a thread behind a number or, where thread is empty, all threads that c may
// read, from now on. Close has to follow, also after a fault.
func (f *Follower) Begin(s *Server, c *token.Claims, thread []byte, since uint64, r Reader) *method.Fault {
	*f = Follower{s: s, claims: c, reader: r, thread: string(thread), next: since}
	s.streams.Add(1)
	a := actor(c)
	durable, ref := s.cfg.Engine.Watch(&a, thread, f, &f.watch)
	if ref.Code != threadstore.OK {
		return method.Refused(&ref)
	}
	if durable > since {
		f.Changed(f.thread, since+1, durable)
	}
	return nil
}

// Resume adds, to a stream of all threads, the messages behind one of a thread: what was sent at
// most resumeOverlap before that one comes again.
func (f *Follower) Resume(thread []byte, seq uint64) *method.Fault {
	a := actor(f.claims)
	ref := f.s.cfg.Engine.Since(&a, thread, seq, resumeOverlap, func(id string, next, end uint64) {
		f.Changed(id, next+1, end)
	})
	if ref.Code != threadstore.OK {
		return method.Refused(&ref)
	}
	return nil
}

// resumeOverlap is in milliseconds. Messages that became durable together may be sent in another
// order than they were posted in, and the clock of another leader may differ.
const resumeOverlap = 10_000

// Changed implements threadstore.Watcher.
func (f *Follower) Changed(thread string, from, to uint64) {
	f.mu.Lock()
	if f.thread == "" {
		f.enter(thread, from, to)
	}
	was := f.ready
	f.ready = true
	f.mu.Unlock()
	if !was {
		f.reader.Ready()
	}
}

// enter notes messages of a thread. Caller holds mu.
func (f *Follower) enter(thread string, from, to uint64) {
	switch s := f.spans[thread]; {
	case from > to || f.lost:
	case s != nil:
		s.end = max(s.end, to)
	case len(f.behind) == maxBehind:
		f.lost, f.behind, f.spans = true, nil, nil
	default:
		if f.spans == nil {
			f.spans = map[string]*span{}
		}
		s = &span{thread, from - 1, to}
		f.behind, f.spans[thread] = append(f.behind, s), s
	}
}

// Step is what Next found.
type Step struct {
	// More is set where messages are left: Ready is not called for them.
	More bool
	// Cold is set where they are not in memory and the caller does not wait.
	Cold bool
	// Fault ends the stream.
	Fault *method.Fault
}

// stepMessages bounds a page.
const stepMessages = 256

// Next appends the next messages in their frames, about room bytes of them. With wait it reads what
// is not in memory.
func (f *Follower) Next(dst []byte, room int, wait bool) (_ []byte, st Step) {
	start := len(dst)
	f.mu.Lock()
	a, lost := actor(f.claims), f.lost
	f.ready = false
	f.mu.Unlock()
	if lost {
		return dst, Step{Fault: &method.Fault{Condition: method.RateLimited, Message: "the stream is too far behind"}}
	}
	if f.thread != "" {
		frame := f.reader.Frame(f.thread, true)
		dst, f.next, st = f.page(&a, dst, f.thread, &frame, f.next, stepMessages, room, wait)
		return dst, st
	}
	for len(dst)-start < room {
		f.mu.Lock()
		if len(f.behind) == 0 {
			f.behind, f.spans = nil, nil
			f.mu.Unlock()
			return dst, Step{}
		}
		first, s, whole := f.behind[0], *f.behind[0], len(f.behind) == 1
		f.mu.Unlock()
		frame := f.reader.Frame(s.thread, whole)
		dst, s.next, st = f.page(&a, dst, s.thread, &frame, s.next, min(stepMessages, int(s.end-s.next)), room-(len(dst)-start), wait)
		switch {
		case st.Cold:
			return dst, st
		case st.Fault != nil && (st.Fault.Condition == method.Forbidden || st.Fault.Condition == method.NotFound):
			s.next, st.Fault = s.end, nil // it may not read this one
		case st.Fault != nil:
			return dst, st
		}
		f.mu.Lock()
		if first.next = s.next; s.next >= first.end && len(f.behind) > 0 {
			f.behind = f.behind[1:]
			delete(f.spans, s.thread)
		}
		f.mu.Unlock()
	}
	return dst, Step{More: true}
}

// page appends messages of one thread.
func (f *Follower) page(
	a *threadstore.Actor, dst []byte, thread string, frame *threadstore.Frame, next uint64, limit, room int, wait bool,
) ([]byte, uint64, Step) {
	frame.Bytes = room
	dst, p, ref := f.s.cfg.Engine.ReadFramed(a, []byte(thread), next, limit, wait, frame, dst)
	switch {
	case ref.Code != threadstore.OK:
		return dst, next, Step{Fault: method.Refused(&ref)}
	case p.Cold:
		return dst, next, Step{Cold: true, More: true}
	}
	return dst, max(next, p.Next), Step{More: p.More}
}

// SetClaims changes the token that the stream reads by. Any goroutine may call it.
func (f *Follower) SetClaims(c *token.Claims) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claims = c
}

// Close ends the stream. It may be called again.
func (f *Follower) Close() {
	if f.s != nil {
		f.s.cfg.Engine.Unwatch(&f.watch)
		f.s.streams.Add(-1)
		f.s = nil
	}
}
