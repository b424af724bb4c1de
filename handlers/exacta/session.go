package exacta

import (
	"sync"
	"sync/atomic"

	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
)

// Limits of a connection (exacta §2.5).
const (
	queuedBytes  = 16 << 20 // of answers
	answerMemory = 256      // answers whose room is kept
)

// expected is what a session expects next from its peer.
type expected uint8

const (
	wholeLine  expected = iota
	firstLine           // over TCP: it has the token, if one is asked for
	restOfLine          // of an oversized one, discarded
	endOfLine           // of one that is decoded off the loop
)

// session is one connection over lines (exacta §2.1). What is above mu belongs to its owner.
type session struct {
	srv     *Server
	port    *connection.Port
	id      uint64 // unlike that of port it is unique among all carriers
	carrier Carrier
	ended   func()      // called once when the peer sends nothing more; may be nil
	in      incoming    // the message at hand
	clock   codec.Clock // of the turn

	phase     connection.Phase
	expects   expected
	scanned   int               // of the line that is not complete
	discarded int               // bytes of the line that is too long
	bad       int               // lines in a row that were no envelope
	until     int64             // by when the token is to be shown, in nanoseconds of Instant.Mono; 0: it need not
	charge    connection.Charge // of the line that is read off the loop
	lost      bool              // the connection cannot go on without a gap
	feeds     map[*projects.Journal]*projects.Cursor
	limits    []limitOf   // room for a Pump
	came      int64       // when the turn's lines were read
	answered  obs.Pending // of this turn, without those that a project answers

	mu         sync.Mutex
	outbox     []outgoing // from next on
	next       int
	queued     int // bytes of it
	unanswered int
	entered    []entry // projects that were opened for it

	back    atomic.Pointer[incoming] // what became of the line that was away
	opening atomic.Bool              // an OpenProject is not in its place yet
	held    atomic.Int64             // what is in outbox and entered
}

// outgoing is what a connection is to be sent.
type outgoing struct {
	projects.Answer
	own    bool   // the answer of a request
	cursor *place // of an ack: where the events go on behind it
}

// place is what a subscribe changes (exacta §3.5).
type place struct {
	projects.Cursor
	move bool // Next is set
}

// Open returns the session of a new connection over a carrier. ended, which may be nil, is called
// once when its peer sends nothing more. A session of a WebSocket is fed one line for each message,
// and every line that it appends is one message.
func (s *Server) Open(port *connection.Port, carrier Carrier, ended func()) connection.Session {
	c := &session{srv: s, port: port, id: s.conns.Add(1), carrier: carrier, ended: ended, feeds: make(map[*projects.Journal]*projects.Cursor)}
	s.counts.sessions[carrier].Add(1)
	if carrier == TCP {
		c.expects = firstLine
		if s.Live().AuthToken != "" {
			c.until = connection.Mono() + int64(authWithin)
		}
	}
	return c
}

// enter notes where the events of an OpenProject begin, before there is one.
func (s *session) enter(p *project) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered = append(s.entered, entry{p.journal, p.journal.Last() + 1})
	s.held.Add(1)
}

// settled notes that an OpenProject is in its place.
func (s *session) settled() {
	s.opening.Store(false)
	s.port.Wake()
}

// maxControls is how many requests that no limit holds back, Pause, Resume and Cancel, may be
// unanswered beside the others. A project whose disk does not answer takes none.
const maxControls = 1024

// full reports whether as many requests are unanswered as may be.
func (s *session) full(control bool) bool {
	most := s.srv.cfg.MaxInflightPerConnection
	if control {
		most += maxControls
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unanswered >= most
}

func (s *session) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unanswered += n
}

// feed returns the cursor in the journal of a project. A new one begins at an event, with those of
// own requests.
func (s *session) feed(j *projects.Journal, next uint64) *projects.Cursor {
	c := s.feeds[j]
	if c == nil {
		c = &projects.Cursor{Conn: s.id, Next: next}
		s.feeds[j] = c
		j.Watch(s.port)
	}
	return c
}

// Answer implements projects.Asker.
func (s *session) Answer(a *projects.Answer) { s.send(outgoing{Answer: *a, own: true}) }

// send queues something for the connection.
func (s *session) send(o outgoing) {
	s.mu.Lock()
	s.outbox = append(s.outbox, o)
	s.held.Add(1)
	s.queued += len(o.Line)
	s.mu.Unlock()
	s.port.Wake()
}

// EOF implements connection.Session.
func (s *session) EOF(connection.Instant) {
	s.phase = connection.Ended
	s.unlimit()
	if s.ended != nil {
		s.ended()
	}
}

// Drain implements connection.Session.
func (s *session) Drain(connection.Instant) {
	s.phase = max(s.phase, connection.Draining)
	s.unlimit()
}

// unlimit ends all windows: no ack will be taken.
func (s *session) unlimit() {
	for _, c := range s.feeds {
		c.Window = 0
	}
}

// left takes the time of the answers that have left.
func (s *session) left() {
	if !s.answered.Empty() {
		s.answered.Record(s.srv.meter, connection.Mono(), s.port)
	}
}

// Report implements connection.Reporter.
func (s *session) Report() (inFlight, streams int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.unanswered), int64(len(s.feeds))
}

// Load implements connection.Session.
func (s *session) Load() connection.Load {
	l := connection.Load{Busy: true, Streams: len(s.feeds) > 0, Until: s.until}
	s.mu.Lock()
	idle := s.unanswered == 0 && s.next == len(s.outbox) && !s.opening.Load()
	if s.queued > queuedBytes {
		s.lost = true
	}
	s.mu.Unlock()
	for j, c := range s.feeds {
		st := j.Status()
		s.lost = s.lost || c.Next < st.Oldest // and its owner may wait for the peer, without a Pump
		if c.Next <= st.Last || st.State.Runs() && !st.Ended {
			idle = false
		}
	}
	if s.lost {
		l.Until = 1
		return l
	}
	// What a socket's peer asked for runs on without it (exacta §2.1).
	l.Done = idle && s.phase != connection.Open || s.phase == connection.Ended && s.carrier != Stdio
	return l
}

// Closed implements connection.Session. What runs goes on.
func (s *session) Closed() {
	s.srv.counts.sessions[s.carrier].Add(-1)
	s.srv.input.Fit(&s.charge, 0)
	for j := range s.feeds {
		j.Unwatch(s.port)
	}
	clear(s.feeds)
}
