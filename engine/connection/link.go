// Package connection is what a protocol sees of a connection, and what an owner of connections sees
// of a protocol.
//
// An owner (the event loop of engine/reactor, or the goroutine pair of engine/stream) lends bytes
// to a Session and takes the bytes the session appended; a Session never sees a socket, a loop or a
// goroutine. Between them stands the Port: the one name of a connection that other goroutines may
// hold, good for exactly one thing, waking the owner.
//
//	         Feed(in)          ┌─────────┐        Wake()
//	socket ───────────► owner ─┤ Session │ ◄───── bus, timers, other connections
//	       ◄───────────       ◄┤         │          through the Port
//	         out bytes         └─────────┘
//
// The package is a leaf: it imports no other room, so that every room may import it.
package connection

// Instant is one reading of both clocks. Intervals, leases, deadlines and rate windows use Mono;
// timestamps shown to people use Wall (kernel-ipc §6). An owner reads it once per turn.
type Instant struct {
	// Mono is in nanoseconds, never decreasing, from an arbitrary origin within the process.
	Mono int64
	// Wall is Unix time in milliseconds, UTC.
	Wall int64
}

// Verdict is what a Session asks for after a Feed.
type Verdict uint8

const (
	// More: every whole frame in the input was taken; call again when more bytes have come.
	More Verdict = iota
	// Yield: the session took its share of this turn (kernel-ipc §2.5, fairness); call Feed again
	// with the rest after the others had theirs.
	Yield
	// Blocked: the session waits for work of its own that leaves the loop; do not call Feed before
	// the next Pump. It ends by itself, without the peer or Drain, and then wakes the port.
	Blocked
	// Close: nothing after the taken bytes may be interpreted; send what was appended, then close.
	Close
)

// Load is a session's work beside bytes in buffers, for timers and for the end of connections.
type Load struct {
	// Busy: a request is in flight or a stream is live; the idle timer is off (kernel-ipc §2.4).
	Busy bool
	// Streams is true while a stream is live: chunks may come at any time, and no reply may wait
	// behind too many (kernel-ipc §2.5).
	Streams bool
	// Done: after EOF or Drain nothing more will be appended; close when the output is sent.
	Done bool
	// Over: nothing more will be appended, whatever the peer does; an owner that has the session on
	// goroutines closes when the output is sent.
	Over bool
	// Until, if not zero, is when the connection is closed like one whose frame is late, in
	// nanoseconds of Instant.Mono: the peer has not shown its identity by then.
	Until int64
}

// Phase is the shutdown state of a session. It never decreases: after EOF no request can arrive, so
// a Drain has no further effect.
type Phase uint8

// The phases of a session.
const (
	Open     Phase = iota
	Draining       // Drain was called: later requests are refused
	Ended          // EOF was called: there are no later requests
)

// Session is one protocol conversation on one connection. Its owner calls these methods one at a
// time, never concurrently, though not always from the same goroutine.
type Session interface {
	// Feed takes whole frames from the front of in, appends replies, whole frames too, to out, and
	// returns how many bytes of in it used and the extended out. in is lent: after Feed returns,
	// the owner overwrites it. Feed never blocks. The session stops with Yield once out has grown
	// past the owner's output bound (Limits.UnsentBytes) or its share of frames is used up.
	Feed(in, out []byte, now Instant) (used int, outAfter []byte, v Verdict)
	// Pump appends what arrived from elsewhere since the last call: answers that were waited for
	// first, then stream chunks until they have grown to room bytes. A chunk of more than
	// DefaultChunkBytes comes in pieces, one per Pump, and Feed is blocked until its last one; so
	// at most room and DefaultChunkBytes of chunks are appended. more is true while chunks remain,
	// for which the owner calls Pump again after other connections had their turn; with no room it
	// may be true without any. Owners call it after a Wake of the session's port, and while more is
	// true.
	Pump(out []byte, room int, now Instant) (outAfter []byte, more bool)
	// EOF means that the peer will send nothing more: streams and handlers end at once, requests
	// already taken are answered (kernel-ipc §2.3). A partial frame is dropped by the owner, which
	// feeds nothing more.
	EOF(now Instant)
	// Drain means that the server is shutting down (kernel-ipc §2.7): later requests are refused,
	// pending waits are cancelled, streams are flushed and ended, by way of Pump. Owners call it
	// once the whole frames they had read were served; so a blocked session is drained only when
	// its own work is done, which ends without a Drain.
	Drain(now Instant)
	// Load reports what is going on; cheap, called every turn.
	Load() Load
	// Closed is called exactly once, last: the connection is gone. It releases everything.
	Closed()
}

// Reporter is a Session that counts what Load only notes.
type Reporter interface {
	// Report returns how many requests have no answer yet, and how many streams are live.
	Report() (inFlight, streams int64)
}

// Opener makes the session of a new connection.
type Opener func(p *Port) Session

// Limits are the bounds that every owner applies. Times are in nanoseconds of Instant.Mono.
type Limits struct {
	// IdleAfter and FrameWithin are both kernel.read_timeout_secs: silence with nothing going on,
	// and the time a begun frame may take (kernel-ipc §2.4). Zero switches the timers off.
	IdleAfter, FrameWithin int64
	// SendWithin is kernel.write_timeout_secs: how long a peer may take no byte while output waits
	// for it (kernel-ipc §2.3). Every byte it takes starts the time again. Zero switches it off.
	SendWithin int64
	// DrainWithin is kernel.shutdown_grace_secs: after it, connections are closed.
	DrainWithin int64
	// UnsentBytes bounds output that the socket has not; over it reading stops (kernel-ipc §2.5).
	UnsentBytes int
	// AheadBytes and AheadFrames bound what is read ahead while the session is blocked or
	// UnsentBytes is exceeded: at either one reading pauses, and it resumes at half of both; an
	// owner holds at most this plus one read (toolhost §2.2). With AheadBytes of zero nothing is
	// read ahead, and the session is pumped only when the socket has all its output (kernel-ipc
	// §2.5). AheadFrames of zero bounds no frames.
	AheadBytes, AheadFrames int
	// FramesIn counts the frames that end in input b, which may begin and end inside of one. It
	// must not allocate. AheadFrames needs it.
	FramesIn func(b []byte) int
	// ChunkBytes bounds the stream chunks that may stand before a later reply, one frame aside:
	// those a Pump brought and those that lie unsent in the socket (kernel-ipc §2.5).
	ChunkBytes int
	// FrameBytes is the largest whole frame a peer may send, prefix included: an owner never has to
	// hold more unread bytes than this plus one read.
	FrameBytes int
	// EndOfInput is what an owner feeds behind a partial frame when the peer sends nothing more, so
	// that the session takes it as a whole one. Empty: a partial frame is dropped.
	EndOfInput string
	// LateFrame, if any, appends what a peer gets whose frame took longer than FrameWithin, before
	// it is closed. It is called for each, as NoRoom is: an answer may have its own identifier.
	LateFrame func(dst []byte) []byte
	// Input bounds what all connections together hold of unfinished frames and of frames read
	// ahead. A connection whose unfinished frame finds no room is sent NoRoom and closed; one that
	// reads ahead pauses. Nil: only the bounds of each connection count.
	Input  *Budget
	NoRoom func(dst []byte) []byte
}

// Defaults that belong to the protocol contract rather than to a deployment.
const (
	DefaultUnsentBytes = 1 << 20
	DefaultChunkBytes  = 64 << 10
	DefaultTurnBytes   = 1 << 20
)

// DefaultLingerWithin is how long a connection that was served may linger where SendWithin is
// switched off, in nanoseconds.
const DefaultLingerWithin = int64(10e9)

// LingerWithin returns how long a connection whose last bytes are with the socket may wait until
// its peer has them, in nanoseconds. It does not allocate.
func (l *Limits) LingerWithin() int64 {
	if l.SendWithin > 0 {
		return l.SendWithin
	}
	return DefaultLingerWithin
}

// Full reports whether reading ahead pauses with so many bytes and frames; paused is whether it
// does already. It does not allocate.
func (l *Limits) Full(bytes, frames int, paused bool) bool {
	if paused {
		return bytes > l.AheadBytes/2 || l.AheadFrames > 0 && frames > l.AheadFrames/2
	}
	return bytes >= l.AheadBytes || l.AheadFrames > 0 && frames >= l.AheadFrames
}

// Count returns how many frames end in input b, zero without a count. It does not allocate.
func (l *Limits) Count(b []byte) int {
	if l.AheadFrames <= 0 || l.FramesIn == nil {
		return 0
	}
	return l.FramesIn(b)
}
