package link

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
