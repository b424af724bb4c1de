package link

import "time"

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
	// Quiet is when the connection last did anything that starts the idle timer anew.
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
