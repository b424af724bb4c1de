package connection

import (
	"context"
	"time"
)

// Action is what an owner does next about a session's input.
type Action uint8

// The actions. In each but DoFeed and DoDrain the session is not called before something happens.
const (
	DoRead  Action = iota // feed what comes
	DoFeed                // feed the rest, after other connections had their turn
	DoWait                // wait for a Pump that ends what the session is blocked by
	DoDrain               // call Session.Drain, then Drained
	DoClose               // send what was appended, then close
)

// drainPhase is how far the drain of a connection has come.
type drainPhase uint8

const (
	running   drainPhase = iota
	draining             // Session.Drain is due once the bytes before State.mark were taken
	drainDone            // Session.Drain was called
)

// PeerPhase is how far the end of a peer's input has come; phases follow each other.
type PeerPhase uint8

// The phases of a peer.
const (
	PeerOpen       PeerPhase = iota
	PeerEnded                // nothing more can be read
	PeerFrameEnded           // Limits.EndOfInput was put behind a partial frame
	PeerEOF                  // Session.EOF was called
)

// State is a conversation beside its bytes. It has no socket, clock or lock, and moves whole when a
// connection changes its owner. The zero State is that of a new connection; the owner sets Quiet.
// Its methods do not allocate.
//
//	          Fed(More)            Fed(Yield)           Fed(Blocked)
//	  ┌──────► DoRead ──Kept──────► DoFeed ◄──Pumped──── DoWait
//	  │          │ mark reached       │ Fed(Close), Close
//	Drained      ▼                    ▼
//	  └─────── DoDrain              DoClose
type State struct {
	Timers
	// Verdict is that of the last Feed. With Yield and Blocked the unread bytes may begin with a
	// whole frame; after Close the session is not fed any more.
	Verdict Verdict
	// Peer is written by the owner, and never goes back.
	Peer PeerPhase
	// More reports that the session has chunks left to pump.
	More bool
	// Opened is when the connection was opened, In and Out are the bytes read and written since.
	Opened, In, Out int64
	// Rests reports that the connection counts as one whose session is done in a drain.
	Rests bool
	drain drainPhase
	mark  int // unread bytes to feed before Session.Drain; less than 0: all at the next Lend
}

// Next returns what the last calls ask for.
func (s *State) Next() Action {
	switch {
	case s.Verdict == Close:
		return DoClose
	case s.Verdict == Blocked:
		return DoWait
	case s.Verdict == Yield:
		return DoFeed
	case s.drain == draining:
		return DoDrain
	}
	return DoRead
}

// Behind reports whether the unread bytes may begin with a whole frame.
func (s *State) Behind() bool { return s.Verdict == Yield || s.Verdict == Blocked }

// Runnable reports whether the session has work that waits for nothing but its turn.
func (s *State) Runnable() bool { return s.More || s.Verdict == Yield }

// Lend returns how many of the unread bytes may be fed: those that came before a drain.
func (s *State) Lend(unread int) int {
	if s.drain != draining {
		return unread
	}
	if s.mark < 0 {
		s.mark = unread
	}
	return min(s.mark, unread)
}

// Fed notes the outcome of a Feed, which took used bytes and left the others unread. An owner that
// had nothing to lend calls it as for a Feed of nothing.
func (s *State) Fed(used, left int, v Verdict, now int64) Action {
	s.Verdict = v
	if s.drain == draining {
		s.mark -= used
	}
	if s.Behind() {
		left = 0 // the owner is late, not the peer
	}
	s.took(used, left, now)
	return s.Next()
}

// Kept notes input that came while the session could not be fed.
func (s *State) Kept() {
	if s.Verdict == More {
		s.Verdict = Yield
	}
}

// Pumped notes a Pump, which appended n bytes. A session that was blocked may be fed again.
func (s *State) Pumped(n, unread int, more bool, now int64) Action {
	if s.More = more; n > 0 {
		s.Quiet = now
	}
	if s.Verdict == Blocked {
		s.resume(unread)
	}
	return s.Next()
}

// resume notes that the session may be fed the unread bytes.
func (s *State) resume(unread int) {
	if s.Verdict = More; unread > 0 {
		s.Verdict = Yield
	}
}

// Close has the connection closed once what was appended is sent.
func (s *State) Close() { s.Verdict, s.Frame = Close, 0 }

// DrainAfter makes Session.Drain due after the first n unread bytes were taken (kernel-ipc §2.7).
// Where n is less than 0 the number is that of the next Lend.
func (s *State) DrainAfter(n int) { s.drain, s.mark = draining, n }

// Drained notes a call of Session.Drain; unread bytes that came later may be fed now. The session
// is pumped, because Drain ends its streams.
func (s *State) Drained(unread int) Action {
	if s.drain, s.More = drainDone, true; s.Verdict == More {
		s.resume(unread)
	}
	return s.Next()
}

// Draining reports whether a drain has begun.
func (s *State) Draining() bool { return s.drain != running }

// DrainDue reports whether Session.Drain is due and was not called.
func (s *State) DrainDue() bool { return s.drain == draining }

// EOF reports whether Session.EOF is to be called, which is so once. A partial frame is gone.
func (s *State) EOF() (first bool) {
	first, s.Frame = s.Peer != PeerEOF, 0
	s.Peer = PeerEOF
	return first
}

// Finished reports whether a connection whose output is sent may be closed, and the reason. With
// ReasonDrain it may be closed together with the others.
func (s *State) Finished(sess Session) (r Reason, done bool) {
	if s.Verdict == Close {
		return ReasonProtocol, true
	}
	switch load := sess.Load(); {
	case load.Over:
		return ReasonProtocol, true
	case s.Peer == PeerEOF:
		return ReasonEOF, load.Done
	case s.drain == drainDone:
		return ReasonDrain, s.Verdict == More && !s.More && load.Done
	}
	return 0, false
}

// Overdue reports the read timer that ran out, if any (kernel-ipc §2.4); unsent counts output.
func (s *State) Overdue(l *Limits, load Load, unsent int, now int64) (r Reason, late bool) {
	if unsent > l.UnsentBytes && s.Frame != 0 {
		s.Frame = now // the owner does not read
	}
	if s.Verdict == Close {
		load.Until = 0 // the time of the last frame counts
	}
	return s.Timers.Overdue(l, load, unsent > 0 || s.Behind() || s.More, now)
}

// Reason is why a connection was closed.
type Reason uint8

// The reasons, in the order of their counters.
const (
	ReasonEOF      Reason = iota // the peer ended and got all its answers
	ReasonIdle                   // silence with nothing going on (kernel-ipc §2.4)
	ReasonFrame                  // a begun frame was not completed in time
	ReasonWrite                  // the peer did not take output in time
	ReasonProtocol               // the session asked for it
	ReasonDrain                  // the server is shutting down
	ReasonError                  // the socket failed
	ReasonPanic                  // a session method panicked
	ReasonDropped                // an operator had it closed
	// Reasons is how many there are.
	Reasons
)

// String returns the reason's name as used in logs and metric labels.
func (r Reason) String() string {
	return [...]string{"eof", "idle", "frame_timeout", "write_timeout", "protocol", "drain", "error", "panic", "dropped"}[r]
}

// Timers are the times an owner keeps per connection; zero means the timer is off. They travel with
// a connection that leaves its loop.
type Timers struct {
	// Quiet is when the connection last did anything that restarts the idle timer.
	Quiet int64
	// Frame is when the first byte of the partly read frame came.
	Frame int64
	// Busy is whether the session was busy when last asked.
	Busy bool
}

// took notes a Feed: used bytes taken, rest left of an incomplete frame. It does not allocate.
func (t *Timers) took(used, rest int, now int64) {
	if used > 0 {
		t.Quiet = now
	}
	switch {
	case rest == 0:
		t.Frame = 0
	case used > 0 || t.Frame == 0:
		t.Frame = now
	}
}

// Overdue reports the read timer that ran out, if any. With pending, output or whole frames wait,
// and the peer need not send. It does not allocate.
func (t *Timers) Overdue(l *Limits, load Load, pending bool, now int64) (Reason, bool) {
	if l.FrameWithin > 0 && t.Frame != 0 && now-t.Frame >= l.FrameWithin || load.Until != 0 && now >= load.Until {
		return ReasonFrame, true
	}
	if load.Busy || pending || t.Busy {
		t.Quiet = now
	}
	t.Busy = load.Busy || pending
	if l.IdleAfter > 0 && t.Frame == 0 && now-t.Quiet >= l.IdleAfter {
		return ReasonIdle, true
	}
	return 0, false
}

// origin is set once, before main; it is a constant of the process.
var origin = time.Now()

// Now reads both clocks. All readings of a process share one origin, so their Mono values compare.
// Inside a testing/synctest bubble it follows the bubble's clock. Mono is at least 1 outside of it,
// so that zero can mean "no time". It does not allocate.
func Now() Instant {
	t := time.Now()
	return Instant{Mono: int64(t.Sub(origin)) + 1, Wall: t.UnixMilli()}
}

// Mono is Now().Mono for about half the price: it reads one clock. It does not allocate.
func Mono() int64 { return int64(time.Since(origin)) + 1 }

// Pause waits, and reports whether ctx goes on.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
