package toolhost

import (
	"cmp"
	"sync"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/codec/ndjson"
	"trunkline/engine/connection"
	"trunkline/engine/idem"
	"trunkline/engine/obs"
	"trunkline/handlers/toolhost/selector"
	"trunkline/handlers/toolhost/sessionstate"
)

// How much one turn of a session may do before other connections get theirs.
const (
	turnLines = 1024
	turnBytes = 1 << 20
	// maxFailures bounds the wrong API tokens of a connection, maxOperatorFailures the operator's.
	maxFailures         = 3
	maxOperatorFailures = 5
	// maxFastInput is the longest input of a tool run on the loop: some work grows with it.
	maxFastInput = 4 << 10
	// guestLine, guestReplies and guestWithin bound a connection that has not shown its token yet:
	// the length of a line, the bytes that it is answered, and its time.
	guestLine    = 64 << 10
	guestReplies = 64 << 10
	guestWithin  = 10 * time.Second
)

// awaited is what blocks a session from taking the next line.
type awaited uint8

const (
	nothing   awaited = iota
	ownCall           // a call runs off the loop
	otherCall         // another call has the key session.waitsFor: the line is read again
)

// session is one stream of lines (toolhost §2.2). What is above mu belongs to its owner.
type session struct {
	srv       *Server
	port      *connection.Port
	via       Transport
	principal []byte
	now       connection.Instant // of the turn
	keyNow    int64              // of the turn, by the clock of the keys; 0: not read yet

	state    sessionstate.State
	room     sessionstate.Room // of state
	run      *selector.Run
	failures int   // of _auth and of requests before it
	strange  int   // wrong operator tokens
	until    int64 // until then it must have authenticated; 0: it has, or need not
	said     int   // bytes of the answers before that

	phase    connection.Phase
	scanned  int  // of the line that is not complete yet
	skipping bool // a line that is too long is being discarded
	awaits   awaited
	waitsFor idem.Key

	answer   *idem.Stored // what was waited for, for the line that is read again
	spare    *call        // for the next line of this turn
	observed bool         // an event has a subscriber in this turn: toolFinished
	last     *Entry       // the tool found before: callers tend to ask for one again
	tally    tally        // of this turn
	answered obs.Pending  // of this turn
	came     int64        // when the turn's lines were read, by the owner's clock
	waitFrom int64        // when the line that waits came; 0: none does

	mu    sync.Mutex
	ready *call        // off the loop, with its reply
	woken bool         // what it waited for has ended
	found *idem.Stored // and gave this
	gone  bool
}

func (s *session) nowMono() int64 { return s.srv.mono() }

func (s *session) enforced() bool { return s.srv.cfg.EnforceLeases.on(s.via) }

func (s *session) authed() bool { return s.until == 0 }

// closing reports whether the reply at hand is the last one: too many tokens were wrong.
func (s *session) closing() bool {
	return s.failures >= maxFailures || s.strange >= maxOperatorFailures
}

// Feed implements connection.Session.
func (s *session) Feed(in, out []byte, now connection.Instant) (used int, outAfter []byte, v connection.Verdict) {
	if s.awaits != nothing {
		return 0, out, connection.Blocked
	}
	s.now, s.observed, s.keyNow, s.came = s.srv.now(now), s.srv.hasSubscriber(toolFinished), 0, now.Mono
	start := len(out)
	used, out, v = s.feed(in, out)
	if !s.authed() {
		s.said += len(out) - start
	}
	s.tally.flush(s)
	s.left()
	if c := s.spare; c != nil {
		s.spare = nil
		s.srv.putCall(c)
	}
	return used, out, v
}

func (s *session) feed(in, out []byte) (used int, outAfter []byte, v connection.Verdict) {
	start := len(out)
	for lines := 0; ; lines++ {
		if lines == turnLines || used >= turnBytes || len(out)-start > connection.DefaultUnsentBytes {
			return used, out, connection.Yield
		}
		if e := s.last; e != nil && e.bare(in[used:]) && s.answersBare(e) {
			var taken, n int
			taken, n, out = s.serveBare(e, in[used:], out, start, min(maxBare, turnLines-lines))
			used, lines = used+taken, lines+n-1
			continue
		}
		line, n, st := s.next(in[used:])
		switch st {
		case ndjson.More:
			return used + n, out, connection.More
		case ndjson.TooLong:
			used += n
			out = appendFault(out, s.longLine(), requestID{})
			s.answered.Add(s.srv.invalid, s.came, 1, 1)
			if s.via != Stdin {
				return used, out, connection.Close
			}
			continue
		}
		if len(line) == 0 {
			return used + n, out, connection.Close // the graceful end of this stream (D2)
		}
		switch out = s.serve(line, out); s.awaits {
		case otherCall:
			return used, out, connection.Blocked
		case ownCall:
			return used + n, out, connection.Blocked
		}
		if used += n; s.closing() || !s.authed() && s.said+len(out)-start > guestReplies {
			return used, out, connection.Close
		}
	}
}

// next splits off a line. With More, n bytes were discarded.
func (s *session) next(in []byte) (line []byte, n int, st ndjson.Status) {
	if s.skipping {
		var done bool
		if n, done = ndjson.Skip(in); !done {
			return nil, n, ndjson.More
		}
		s.skipping = false
		line, used, st := s.next(in[n:])
		return line, n + used, st
	}
	line, n, st, s.scanned = ndjson.Split(in, s.scanned, s.maxLine())
	switch st {
	case ndjson.More:
		return nil, 0, st
	case ndjson.TooLong:
		s.skipping = true
	}
	s.scanned = 0
	return line, n, st
}

func (s *session) maxLine() int {
	if s.authed() {
		return s.srv.cfg.MaxLineBytes
	}
	return min(s.srv.cfg.MaxLineBytes, guestLine)
}

func (s *session) longLine() string {
	if s.authed() {
		return errLongLine
	}
	return errNoAuth
}

// serve handles one line: it appends the reply, or sets awaits where one comes later.
func (s *session) serve(line, out []byte) []byte {
	c, start := s.takeCall(), len(out)
	if c.row, c.came = s.srv.invalid, s.came; s.waitFrom != 0 {
		c.came, s.waitFrom = s.waitFrom, 0
	}
	out = c.serve(line, out)
	s.answer = nil
	if len(out)-start > maxReply { // what it repeats of the request made it so long (toolhost §3.4)
		out = appendFault(out[:start], errTooLarge, c.id)
	}
	switch s.awaits {
	case nothing:
		s.answered.Add(c.row, c.came, 1, failed(out[start:]))
	case otherCall:
		s.waitFrom = c.came
	case ownCall: // it has c
		return out
	}
	c.next()
	s.spare = c
	return out
}

// takeCall returns the call for the next line.
func (s *session) takeCall() *call {
	c := s.spare
	if s.spare = nil; c == nil {
		c = s.srv.calls.Get().(*call)
	}
	c.srv, c.s = s.srv, s
	return c
}

// serve takes a line through the steps of toolhost §4.3.
func (c *call) serve(line, out []byte) []byte {
	s := c.s
	line = jsonx.TrimBOM(line)
	fault := c.req.scan(line, s.last)
	if c.id, _ = c.req.requestID(); fault != "" {
		return appendFault(out, fault, c.id)
	}
	if s.phase == connection.Draining {
		return appendFault(out, "shutting_down", c.id)
	}
	if !c.req.readAID() {
		return appendFault(out, errMissingAID, c.id)
	}
	if !s.authed() && !openToAll(c.req.aid) {
		s.failures++
		return appendFault(out, errNoAuth, c.id)
	}
	if c.req.aid[0] == '_' {
		if op := operations[string(c.req.aid)]; op != nil {
			return c.operate(op, line, out)
		}
	}
	if s.last == nil || s.last.AID != string(c.req.aid) {
		e := s.srv.cfg.Registry.find(c.req.aid)
		if e == nil {
			return appendFaultAbout(out, "tool not found: ", jsonx.Clip(c.req.aid, maxAID), c.id)
		}
		s.last = e
	}
	c.entry, c.row = s.last, s.last.index
	if fault := c.req.read(&s.state); fault != "" {
		return appendFault(out, fault, c.id)
	}
	if id := c.req.runID; len(id) > 0 && (s.run == nil || s.run.ID() != string(id)) {
		return appendFault(out, errNoRun, c.id)
	}
	fast := c.entry.Fast && len(c.req.input) <= maxFastInput
	if fast && len(c.req.key) == 0 && c.entry.Breaker == nil && (c.entry.Tier == 0 || !s.enforced()) {
		c.applyState() // nothing of steps 7 to 11 concerns it
		return c.run(out, !s.observed)
	}
	out, next := c.begin(out, fast)
	switch next {
	case stepRun:
		return c.run(out, false)
	case stepStart:
		c.start()
	}
	return out
}

// lend returns the state for a call that leaves the loop.
func (s *session) lend() sessionstate.State {
	s.room.Share()
	return s.state
}

func (s *session) post(c *call) {
	s.srv.drains.end()
	s.mu.Lock()
	gone := s.gone
	if !gone {
		s.ready = c
	}
	s.mu.Unlock()
	if gone {
		s.lose(c)
		s.endRun(cmp.Or(c.runEnded, runLost))
	}
	s.port.Wake()
}

// Wake implements idem.Waiter: the execution that a request waited for has ended.
func (s *session) Wake(r *idem.Stored) {
	s.mu.Lock()
	s.woken, s.found = true, r
	s.mu.Unlock()
	s.port.Wake()
}

// Pump implements connection.Session.
func (s *session) Pump(out []byte, _ int, now connection.Instant) (outAfter []byte, more bool) {
	s.now = s.srv.now(now)
	s.mu.Lock()
	c, woken, found := s.ready, s.woken, s.found
	s.ready, s.woken, s.found = nil, false, nil
	s.mu.Unlock()
	if woken {
		s.awaits, s.answer = nothing, found
	}
	if c != nil {
		out = append(out, c.reply...)
		s.answered.Add(c.row, c.came, 1, failed(c.reply))
		s.left()
		if c.changed != nil {
			s.state = c.changed.Clone()
			s.room.Share()
		}
		if c.runEnded != "" {
			s.endRun(c.runEnded)
		}
		s.awaits = nothing
		s.srv.putCall(c)
	}
	return out, false
}

// EOF implements connection.Session: what was taken is answered.
func (s *session) EOF(connection.Instant) { s.phase = connection.Ended }

// Drain implements connection.Session: running tools are waited for, later lines are refused.
func (s *session) Drain(connection.Instant) {
	s.phase = max(s.phase, connection.Draining)
	s.srv.drains.wait(s, s.port.Wake)
}

// Load implements connection.Session. Unix peers and stdin may be silent for any time (toolhost
// §2.2).
func (s *session) Load() connection.Load {
	blocked := s.awaits != nothing
	over := s.phase == connection.Ended || s.phase == connection.Draining && s.srv.drains.idle()
	return connection.Load{Busy: blocked || s.via != TCP, Done: over && !blocked, Until: s.until}
}

// Closed implements connection.Session. A running tool goes on: its outcome is kept for its key
// (§2.3).
func (s *session) Closed() {
	if s.awaits == otherCall {
		s.srv.idem.Cancel(s.waitsFor, s)
	}
	if s.phase != connection.Open {
		s.srv.drains.leave(s)
	}
	s.mu.Lock()
	s.gone = true
	c := s.ready
	away := s.awaits == ownCall && c == nil
	s.ready, s.found = nil, nil
	s.mu.Unlock()
	if c != nil {
		s.lose(c)
	}
	if !away { // what runs off the loop may have the run, and ends it
		s.endRun(runLost)
	}
	s.srv.sessions.Add(-1)
}
