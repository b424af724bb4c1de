// Package follow is how agents wait for the messages of threads (threads §4.12): calls that wait,
// and streams of one thread or of all threads that an agent may read. What a stream has not sent
// yet is not kept: it is read from the store at the pace of its reader.
//
//	Wait      blocks a call of read_messages until there is a message
//	Waiter    the same without a goroutine
//	Follower  the position of a stream, and its next messages
//	Lease     the token of a wait or a stream, which ends with it
package follow

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/threadstore"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// DefaultMaxWaits is how many calls may wait at a time, by default.
const DefaultMaxWaits = 4096

// maxBehind is in how many threads a stream of all threads may be behind; one that is behind in
// more ends.
const maxBehind = 10_000

// Verifier verifies tokens that were valid.
type Verifier interface {
	// VerifyKnown never waits.
	VerifyKnown(text string) (*token.Claims, error)
	// Generation changes when a verified token has to be verified again.
	Generation() uint64
}

// Config is what a Server is made of.
type Config struct {
	Engine   *threadstore.Engine
	Verifier Verifier
	// Skew is added to the end of a token's life.
	Skew time.Duration
	// MaxWaits bounds the calls that wait; 0: DefaultMaxWaits.
	MaxWaits int
	// Now is the clock of tokens; nil: time.Now.
	Now func() time.Time
}

// Server is what all waits and streams share. Its methods may be called from any goroutine.
type Server struct {
	cfg     Config
	waits   atomic.Int64
	streams atomic.Int64
	drains  chan struct{}
	drain   sync.Once
	leases  leases
}

// New returns a server.
func New(cfg Config) *Server {
	cfg.MaxWaits = cmp.Or(cfg.MaxWaits, DefaultMaxWaits)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Server{cfg: cfg, drains: make(chan struct{}), leases: leases{held: map[*Lease]struct{}{}}}
}

// Drain ends all waits, as if their time was up, and all streams.
func (s *Server) Drain() {
	s.drain.Do(func() { close(s.drains) })
	s.leases.endAll()
}

// Draining is closed by Drain.
func (s *Server) Draining() <-chan struct{} { return s.drains }

// Counts returns how many calls wait, and how many streams there are.
func (s *Server) Counts() (waits, streams int64) { return s.waits.Load(), s.streams.Load() }

// Confirm returns the index that has to be durable before a stream shows what it has read.
func (s *Server) Confirm() uint64 { return s.cfg.Engine.Confirm() }

// actor returns the bearer of claims.
func actor(c *token.Claims) threadstore.Actor {
	a := threadstore.Actor{Workspace: c.Workspace, Agent: c.Agent, Session: c.Session, Role: c.Role.String()}
	switch c.Role {
	case token.Coordinator, token.Operator:
		a.Rank = threadstore.Coordinator
	case token.Auditor:
		a.Rank = threadstore.Auditor
	}
	return a
}

// Watch registers w as threadstore.Engine.Watch does, for the bearer of claims; Unwatch ends it.
func (s *Server) Watch(c *token.Claims, thread []byte, to threadstore.Watcher, w *threadstore.Watch) *method.Fault {
	a := actor(c)
	if _, ref := s.cfg.Engine.Watch(&a, thread, to, w); ref.Code != threadstore.OK {
		return method.Refused(&ref)
	}
	return nil
}

// Unwatch ends what Watch began.
func (s *Server) Unwatch(w *threadstore.Watch) { s.cfg.Engine.Unwatch(w) }

// MayRead reports whether the bearer of claims may read a thread.
func (s *Server) MayRead(c *token.Claims, thread []byte) bool {
	return mayRead(s.cfg.Engine, c, thread)
}

func mayRead(e *threadstore.Engine, c *token.Claims, thread []byte) bool {
	a := actor(c)
	_, _, ref := e.Read(&a, thread, 1<<53, 1, false, nil)
	return ref.Code == threadstore.OK
}

// Waiter is a call that waits without a goroutine. The zero Waiter is ready.
type Waiter struct {
	s      *Server
	engine *threadstore.Engine
	claims *token.Claims
	watch  threadstore.Watch
	thread []byte
	since  uint64
	wake   func()
}

// Begin calls wake once the thread of w has a message behind w.Since, or the caller may not read it
// any more: at once, if it has one. wake may be called several times, on any goroutine, and must
// not block. A fault means that it does not wait. End has to follow.
func (wt *Waiter) Begin(s *Server, c *token.Claims, w *method.Wait, wake func()) *method.Fault {
	if s.waits.Add(1) > int64(s.cfg.MaxWaits) {
		s.waits.Add(-1)
		return method.Limited(time.Second, "too many calls wait for messages")
	}
	*wt = Waiter{s: s, engine: s.cfg.Engine, claims: c, thread: w.Thread, since: w.Since, wake: wake}
	a := actor(c)
	durable, ref := s.cfg.Engine.Watch(&a, w.Thread, wt, &wt.watch)
	if ref.Code != threadstore.OK {
		wt.End()
		return method.Refused(&ref)
	}
	select {
	case <-s.drains:
		wake()
	default:
		if durable > w.Since {
			wake()
		}
	}
	return nil
}

// Changed implements threadstore.Watcher.
func (wt *Waiter) Changed(_ string, from, to uint64) {
	if from <= to && to > wt.since || from > to && !mayRead(wt.engine, wt.claims, wt.thread) {
		wt.wake()
	}
}

// End ends a wait that has begun. It may be called again.
func (wt *Waiter) End() {
	if wt.s != nil {
		wt.s.cfg.Engine.Unwatch(&wt.watch)
		wt.s.waits.Add(-1)
		wt.s = nil
	}
}

// Wait blocks until w is over. Without a fault the call is to be repeated.
func (s *Server) Wait(ctx context.Context, c *token.Claims, bearer string, w *method.Wait) *method.Fault {
	var wt Waiter
	woken := make(chan struct{}, 1)
	f := wt.Begin(s, c, w, func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	if f != nil {
		return f
	}
	defer wt.End()
	var void atomic.Pointer[method.Fault]
	l := s.Hold(c, bearer, func(f *method.Fault) {
		void.Store(f)
		wt.wake()
	})
	defer l.Release()
	late := time.NewTimer(w.For)
	defer late.Stop()
	select {
	case <-woken:
	case <-late.C:
	case <-s.drains:
	case <-ctx.Done():
	}
	return void.Load()
}
