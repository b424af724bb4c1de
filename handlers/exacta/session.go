package exacta

import (
	"sync"
	"time"

	"trunkline/codec/ndjson"
	"trunkline/engine/exacta"
	"trunkline/engine/exacta/secret"
	"trunkline/engine/exacta/wire"
	"trunkline/engine/link"
)

// Limits of a connection (exacta §2.5).
const (
	turnBytes    = 1 << 20
	queuedBytes  = 16 << 20 // of answers
	answerMemory = 256      // answers whose room is kept
)

// session is one connection over lines (exacta §2.1). What is above mu belongs to its owner.
type session struct {
	srv     *Server
	port    *link.Port
	carrier Carrier
	ended   func() // called once when the peer sends nothing more; may be nil
	scanner wire.Scanner
	message wire.Message
	payload payload
	sums    sums
	sum     exacta.Sum

	scanned  int  // of the line that is not complete
	skipping bool // the rest of a line that was too long
	eof      bool
	draining bool
	lost     bool // the connection cannot go on without a gap
	feeds    map[*exacta.Journal]*exacta.Cursor
	limits   []limitOf // room for a Pump

	mu         sync.Mutex
	outbox     []outgoing // from next on
	next       int
	queued     int // bytes of it
	unanswered int
	opening    bool    // an OpenProject is not in its place yet
	entered    []entry // projects that were opened for it
}

// outgoing is what a connection is to be sent.
type outgoing struct {
	exacta.Answer
	own    bool   // the answer of a request
	cursor *place // of an ack: where the events go on behind it
}

// place is what a subscribe changes (exacta §3.5).
type place struct {
	exacta.Cursor
	move bool // Next is set
}

// Open returns the session of a new connection over a carrier. ended, which may be nil, is called
// once when its peer sends nothing more. A session of a WebSocket is fed one line for each message,
// and every line that it appends is one message.
func (s *Server) Open(port *link.Port, carrier Carrier, ended func()) link.Session {
	return &session{srv: s, port: port, carrier: carrier, ended: ended, feeds: make(map[*exacta.Journal]*exacta.Cursor)}
}

// Feed implements link.Session.
func (s *session) Feed(in, out []byte, _ link.Instant) (used int, outAfter []byte, v link.Verdict) {
	if s.draining {
		return len(in), out, link.More
	}
	start := len(out)
	for {
		switch {
		case s.lost:
			return used, out, link.Close
		case s.waits():
			s.enterAll()
			return used, out, link.Blocked
		case used >= turnBytes || len(out)-start > link.DefaultUnsentBytes:
			return used, out, link.Yield
		}
		if s.skipping {
			n, done := ndjson.Skip(in[used:])
			used, s.skipping = used+n, !done
			if !done {
				return used, out, link.More
			}
		}
		line, n, st, scanned := ndjson.Split(in[used:], s.scanned, s.srv.cfg.MaxMessageBytes)
		s.scanned = scanned
		switch st {
		case ndjson.More:
			return used, out, link.More
		case ndjson.TooLong:
			s.skipping = true
			s.message = wire.Message{}
			out = s.refuse(out, &wire.Refusal{Code: "IPC-001", Detail: "message_too_large"})
		default:
			if !blank(line) {
				out = s.serve(line, out)
			}
		}
		used += n
	}
}

// blank reports whether a line is ignored.
func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' {
			return false
		}
	}
	return true
}

// waits reports whether an OpenProject is not in its place yet: what follows may be for its
// project.
func (s *session) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opening
}

// enterAll makes the cursors for projects that were opened.
func (s *session) enterAll() {
	s.mu.Lock()
	entered := s.entered
	s.entered = nil
	s.mu.Unlock()
	for _, at := range entered {
		s.feed(at.journal, at.next)
	}
}

// serve takes one line (exacta §3.6).
func (s *session) serve(line, out []byte) []byte {
	m := &s.message
	if r := s.scanner.Scan(line, m); r.Code != "" {
		return s.refuse(out, &r)
	}
	switch m.Type {
	case wire.Ack:
		s.ack()
		return out
	case wire.Subscribe:
		s.subscribe()
		return out
	}
	s.sum = s.sums.of(m, &s.srv.replays.Seeds)
	var asker exacta.Asker = s
	control := m.Command == wire.Pause || m.Command == wire.Resume || m.Command == wire.Cancel
	if !control && s.full() {
		asker = nil
	}
	out, outcome := s.srv.replays.Look(out, m.Key, &s.sum, asker, s.port.ID())
	if outcome == exacta.Joined && asker == nil {
		return s.refuse(out, &s.srv.busy)
	}
	if outcome != exacta.Unknown {
		return s.known(out, outcome)
	}
	return s.admit(out, asker == nil)
}

// admit makes the checks 14 to 17 and hands a request on, unless too many are unanswered.
func (s *session) admit(out []byte, full bool) []byte {
	m := &s.message
	s.payload = payloadOf(m)
	var id wire.ID
	if m.Command != wire.OpenProject {
		id = s.payload.id("project_id")
	}
	var args exacta.Args
	if s.payload.field == "" {
		s.payload.args(m.Command, &args)
	}
	if s.payload.field != "" {
		return s.refuse(out, &wire.Refusal{Code: "IPC-009", Value: []byte(s.payload.field), Detail: s.payload.field, Field: s.payload.why})
	}
	if m.Command == wire.ApplyDiffSet && !s.srv.cfg.Debug.on(s.carrier) {
		return s.refuse(out, &debugOff)
	}
	var p *project
	if m.Command != wire.OpenProject {
		if p = s.srv.project(id); p == nil {
			return s.refuse(out, &wire.Refusal{Code: "ST-003", Detail: notOpen})
		}
	}
	if full {
		return s.refuse(out, &s.srv.busy)
	}
	start := len(out)
	if out, done := s.atOnce(out, p, args.Handle); done {
		out, outcome := s.srv.replays.Keep(out, start, m.Key, &s.sum, s, s.port.ID())
		return s.known(out, outcome)
	}
	return s.begin(out, p, &args)
}

// atOnce answers a request that the state of its project refuses, if neither the queue of the
// project nor the connection has something before it: in the queue it would get the same answer.
func (s *session) atOnce(out []byte, p *project, handle wire.ID) (_ []byte, done bool) {
	if p == nil || !p.begins() {
		return out, false
	}
	defer p.turn.Unlock()
	if c := s.feeds[p.journal]; c != nil && c.Next <= p.journal.Last() || s.behind() {
		return out, false
	}
	return p.core.Refused(out, s.message.RequestID, s.message.Command, handle)
}

// behind reports whether answers wait to be sent.
func (s *session) behind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next < len(s.outbox) || len(s.entered) > 0
}

// known answers a request that another connection sent before.
func (s *session) known(out []byte, o exacta.Outcome) []byte {
	switch o {
	case exacta.Conflict:
		return s.refuse(out, &wire.Refusal{Code: "IPC-006"})
	case exacta.Joined:
		s.join()
	}
	return out
}

// debugOff refuses a command that is not enabled on a carrier (exacta §3.6, step 15).
var debugOff = wire.Refusal{Code: "CFG-002", Value: []byte("debug_commands"), Detail: "debug_commands: off on this carrier"}

// begin hands a request on to its project.
func (s *session) begin(out []byte, p *project, args *exacta.Args) []byte {
	m := &s.message
	r := exacta.NewRequest(m, args)
	r.Timeout = limit(m.Command, args)
	if m.Timeout != 0 {
		r.Timeout = m.Timeout
	}
	r.Deadline = time.Now().Add(time.Duration(r.Timeout) * time.Millisecond)
	out, outcome := s.srv.replays.Begin(out, m.Key, &s.sum, s, s.port.ID(), r.Origin)
	if outcome != exacta.Unknown {
		return s.known(out, outcome)
	}
	s.count(1)
	if p == nil {
		s.mu.Lock()
		s.opening = true
		s.mu.Unlock()
		s.srv.running.Add(1)
		r.Asker = s
		go s.srv.open(r, s.settled)
		return out
	}
	s.enterAll()
	s.feed(p.journal, p.journal.Last()+1)
	if !p.post(event{request: r}) {
		s.srv.turnAway(r)
	}
	return out
}

// join waits for the answer of a request that runs.
func (s *session) join() {
	s.count(1)
	s.payload = payloadOf(&s.message)
	if p := s.srv.project(s.payload.id("project_id")); p != nil {
		s.enterAll()
		s.feed(p.journal, p.journal.Last()+1)
	}
}

// enter notes where the events of an OpenProject begin, before there is one.
func (s *session) enter(p *project) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered = append(s.entered, entry{p.journal, p.journal.Last() + 1})
}

// settled notes that an OpenProject is in its place.
func (s *session) settled() {
	s.mu.Lock()
	s.opening = false
	s.mu.Unlock()
	s.port.Wake()
}

func (s *session) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unanswered >= s.srv.cfg.MaxInFlight
}

func (s *session) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unanswered += n
}

// feed returns the cursor in the journal of a project. A new one begins at an event, with those of
// own requests.
func (s *session) feed(j *exacta.Journal, next uint64) *exacta.Cursor {
	c := s.feeds[j]
	if c == nil {
		c = &exacta.Cursor{Conn: s.port.ID(), Next: next}
		s.feeds[j] = c
		j.Watch(s.port)
	}
	return c
}

// refuse answers the message at hand. It does not allocate, but to hide a credential.
func (s *session) refuse(out []byte, r *wire.Refusal) []byte {
	if len(r.Value) > 0 && secret.Leaks(r.Value) {
		r.Value = []byte(secret.Redacted)
	}
	return wire.AppendRefusal(out, s.message.RequestID, s.srv.scope.Next(wire.Correlation), s.srv.cfg.Clock, r)
}

// Answer implements exacta.Asker.
func (s *session) Answer(a *exacta.Answer) { s.send(outgoing{Answer: *a, own: true}) }

// send queues something for the connection.
func (s *session) send(o outgoing) {
	s.mu.Lock()
	s.outbox = append(s.outbox, o)
	s.queued += len(o.Line)
	s.mu.Unlock()
	s.port.Wake()
}

// EOF implements link.Session.
func (s *session) EOF(link.Instant) {
	s.eof = true
	for _, c := range s.feeds {
		c.Window = 0 // no ack will come
	}
	if s.ended != nil {
		s.ended()
	}
}

// Drain implements link.Session.
func (s *session) Drain(link.Instant) { s.draining = true }

// Load implements link.Session.
func (s *session) Load() link.Load {
	l := link.Load{Busy: true, Streams: len(s.feeds) > 0}
	s.mu.Lock()
	idle := s.unanswered == 0 && s.next == len(s.outbox) && !s.opening
	if s.queued > queuedBytes {
		s.lost = true
	}
	s.mu.Unlock()
	if s.lost {
		l.Until = 1
		return l
	}
	for j, c := range s.feeds {
		if st := j.Status(); c.Next <= st.Last || st.State.Runs() && !st.Ended {
			idle = false
		}
	}
	l.Done = idle && (s.eof || s.draining)
	return l
}

// Closed implements link.Session. What runs goes on.
func (s *session) Closed() {
	for j := range s.feeds {
		j.Unwatch(s.port)
	}
	clear(s.feeds)
}
