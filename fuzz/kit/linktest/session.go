package linktest

import (
	"encoding/binary"
	"sync"

	"trunkline/engine/connection"
)

// FramesPerTurn is the session's share of one Feed.
const FramesPerTurn = 256

// Session serves one connection. Its exported methods beyond connection.Session may be called from
// any goroutine.
type Session struct {
	port   *connection.Port
	limits connection.Limits

	mu        sync.Mutex
	queue     [][]byte // frames from elsewhere
	blocked   bool     // Block waits for Release, and then for the Pump that takes its answer
	released  bool     // its answer is queued
	pending   int      // Pending waits for Release
	streams   int      // live ones, Open's included
	opened    int      // those of Open
	phase     connection.Phase
	panicPump bool
	closed    int
	stop      chan struct{} // closed at EOF, drain and close: streams end
}

func newSession(p *connection.Port, l connection.Limits) *Session {
	return &Session{port: p, limits: l, stop: make(chan struct{})}
}

// Feed implements connection.Session.
func (s *Session) Feed(in, out []byte, _ connection.Instant) (int, []byte, connection.Verdict) {
	used := 0
	for frames := 0; ; frames++ {
		rest := in[used:]
		if len(rest) < HeaderBytes {
			return used, out, connection.More
		}
		n := int(binary.BigEndian.Uint32(rest))
		if n == 0 || n > s.limits.FrameBytes-HeaderBytes {
			return used, out, connection.Close
		}
		if len(rest) < HeaderBytes+n {
			return used, out, connection.More
		}
		if s.waiting() {
			return used, out, connection.Blocked
		}
		if frames == FramesPerTurn || len(out) > s.limits.UnsentBytes {
			return used, out, connection.Yield
		}
		body := rest[HeaderBytes : HeaderBytes+n]
		used += HeaderBytes + n
		var stop bool
		if out, stop = s.serve(body[0], body[1:], out); stop {
			return used, out, connection.Close
		}
	}
}

func (s *Session) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blocked
}

func (s *Session) serve(cmd byte, payload, out []byte) (after []byte, stop bool) {
	switch cmd {
	case Echo:
		return Append(out, Echo, payload), false
	case bye:
		return Append(out, bye, payload), true
	case big:
		n := binary.BigEndian.Uint32(payload)
		out = binary.BigEndian.AppendUint32(out, n+1)
		return Pattern(append(out, big), int(n)), false
	case panicFeed:
		panic("linktest: Panic")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch cmd {
	case block:
		s.blocked = true
	case pending:
		s.pending++
	case panicPump:
		s.panicPump = true
		s.port.Wake()
	case Open:
		s.streams, s.opened = s.streams+1, s.opened+1
		out = Append(out, Open, nil)
	case Stream:
		s.streams++
		go s.run(binary.BigEndian.Uint32(payload), binary.BigEndian.Uint32(payload[4:]))
	}
	return out, false
}

func (s *Session) run(count, size uint32) {
	body := Pattern(nil, int(size))
	for range count {
		select {
		case <-s.stop:
			s.end()
			return
		default:
			s.push(Append(nil, Stream, body))
		}
	}
	s.end()
}

func (s *Session) push(frame []byte) {
	s.mu.Lock()
	s.queue = append(s.queue, frame)
	s.mu.Unlock()
	s.port.Wake()
}

func (s *Session) end() {
	s.mu.Lock()
	s.streams--
	s.queue = append(s.queue, Frame(end, ""))
	s.mu.Unlock()
	s.port.Wake()
}

// Pump implements connection.Session.
func (s *Session) Pump(out []byte, room int, _ connection.Instant) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panicPump {
		panic("linktest: PanicPump")
	}
	took := 0
	for len(s.queue) > 0 && took < room {
		took += len(s.queue[0])
		out = append(out, s.queue[0]...)
		if s.queue[0][HeaderBytes] == block {
			s.blocked, s.released = false, false
		}
		s.queue = s.queue[1:]
	}
	return out, len(s.queue) > 0
}

// EOF implements connection.Session: streams end at once and unsent chunks are dropped, answers are
// kept.
func (s *Session) EOF(connection.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = connection.Ended
	s.streams, s.opened = s.streams-s.opened, 0
	s.stopStreams()
	kept := s.queue[:0]
	for _, f := range s.queue {
		if f[HeaderBytes] != Stream && f[HeaderBytes] != end {
			kept = append(kept, f)
		}
	}
	s.queue = kept
}

// Drain implements connection.Session: streams end with End.
func (s *Session) Drain(connection.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = max(s.phase, connection.Draining)
	for ; s.opened > 0; s.opened-- {
		s.streams--
		s.queue = append(s.queue, Frame(end, ""))
	}
	s.stopStreams()
}

// stopStreams ends the goroutines of Stream. The caller holds s.mu.
func (s *Session) stopStreams() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
}

// Load implements connection.Session.
func (s *Session) Load() connection.Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	busy := s.blocked || s.pending > 0 || s.streams > 0
	flying := s.blocked || s.pending > 0
	asked := s.phase == connection.Ended || s.phase == connection.Draining && s.streams == 0
	return connection.Load{Busy: busy, Streams: s.streams > 0, Done: asked && !flying && len(s.queue) == 0}
}

// Closed implements connection.Session.
func (s *Session) Closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	s.stopStreams()
}

// Release answers everything blocked or pending and wakes the owner.
func (s *Session) Release() {
	s.mu.Lock()
	if s.blocked && !s.released {
		s.released = true
		s.queue = append(s.queue, Frame(block, ""))
	}
	for ; s.pending > 0; s.pending-- {
		s.queue = append(s.queue, Frame(pending, ""))
	}
	s.mu.Unlock()
	s.port.Wake()
}

// Push queues one chunk of the given payload, as a publisher on another connection would.
func (s *Session) Push(payload string) { s.push(Frame(Stream, payload)) }

// EndStream ends one stream of Open.
func (s *Session) EndStream() {
	s.mu.Lock()
	s.opened--
	s.mu.Unlock()
	s.end()
}

// ClosedTimes returns how often Closed was called.
func (s *Session) ClosedTimes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Report implements connection.Reporter.
func (s *Session) Report() (inFlight, streams int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.pending), int64(s.streams)
}
