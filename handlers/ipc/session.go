package ipc

import (
	"sync"
	"sync/atomic"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/engine/bus"
	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/obs"
)

// session is one connection's conversation. Everything but mail belongs to the connection's owner
// (connection.Session): others leave something in mail or in a stream's queue, and wake the port.
type session struct {
	svc     *Service
	port    *connection.Port
	streams []*liveStream              // oldest first
	queries map[*pendingQuery]struct{} // this connection's unanswered Query calls
	mail    mailbox
	first   int  // the stream that Pump serves first, so that all get their share
	cut     part // of a chunk that the connection has the beginning of
	blocked bool // a listing runs beside the loop; later requests wait for it
	phase   connection.Phase
	closing bool        // the connection closes once the deferred replies are out
	gone    atomic.Bool // closed; looked at by listings that run beside the loop

	deferred connection.Deferral // replies that wait for the journal
	answered obs.Pending         // requests whose answers have not left
	awaited  map[asked]int64     // how many requests have no answer yet that comes by answer
}

// Feed implements connection.Session.
func (s *session) Feed(in, out []byte, now connection.Instant) (used int, outAfter []byte, v connection.Verdict) {
	if s.closing {
		if out = s.appendDeferred(out); s.deferred.Len() > 0 {
			return 0, out, connection.Blocked
		}
		return 0, out, connection.Close
	}
	if s.blocked || s.cut.msg != nil || s.deferralFull() || !s.mail.room(0, int64(s.svc.cfg.UnsentBytes)) {
		// A letter that waits has woken the owner, the journal will, or the rest of a chunk is
		// asked for.
		return 0, out, connection.Blocked
	}
	out = s.appendDeferred(out)
	start := len(out)
	if st := s.svc.store; st.Log() != nil {
		defer st.Leave(st.Enter())
	}
	t := s.svc.turns.Get().(*turn)
	t.begin(s, out, now)
	v = t.run(in)
	upTo := t.upTo
	used, outAfter = t.end()
	outAfter = s.deferReplies(outAfter, start, upTo)
	t.count(s)
	s.svc.turns.Put(t)
	if v == connection.Close && s.deferred.Len() > 0 && len(in) > 0 {
		// The replies in front leave first. A byte stays unread, so that the owner asks again.
		s.closing = true
		return min(used, len(in)-1), outAfter, connection.Blocked
	}
	return used, outAfter, v
}

// Pump implements connection.Session.
func (s *session) Pump(out []byte, room int, _ connection.Instant) (outAfter []byte, more bool) {
	outAfter, more = s.pump(out, room)
	s.left()
	return outAfter, more
}

func (s *session) pump(out []byte, room int) (outAfter []byte, more bool) {
	out = s.appendDeferred(out)
	if s.closing {
		return out, false
	}
	start := len(out)
	if s.cut.msg != nil {
		if s.deferralFull() {
			return out, false // the journal wakes us
		}
		out = s.cut.appendTo(out, room)
		room -= len(out) - start
		out = s.deferReplies(out, start, 0) // its content was durable before its beginning left
		if s.cut.msg != nil {
			return out, true
		}
		start = len(out)
	}
	out = s.takeMail(out)
	if s.deferralFull() {
		return s.deferReplies(out, start, s.appended()), false
	}
	room += len(out)
	kept := s.streams[:0]
	for i := range s.streams {
		st := s.streams[(s.first+i)%len(s.streams)]
		var dry bool
		if out, dry = s.pop(st, out, room); !dry {
			more = true // the bus wakes us again only after a Pop that found nothing
		} else if st.ending {
			out = s.ended(st, out)
			st.done = true
		}
	}
	for _, st := range s.streams {
		if !st.done {
			kept = append(kept, st)
		}
	}
	clear(s.streams[len(kept):])
	s.streams = kept
	if s.first++; s.first >= len(s.streams) {
		s.first = 0
	}
	return s.deferReplies(out, start, s.appended()), more
}

// takeMail appends the frames left by other goroutines.
func (s *session) takeMail(out []byte) []byte {
	for _, l := range s.mail.take() {
		out = append(out, l.frame...)
		s.answer(l.asked, l.frame[frame.PrefixSize] == byte(frame.Error))
		if l.query != nil {
			delete(s.queries, l.query)
		}
		if l.unblocks {
			s.blocked = false
		}
	}
	return out
}

// EOF implements connection.Session: streams and handlers end at once, and nothing with their ids
// is sent any more; what was asked is still answered (kernel-ipc §2.3, D10).
func (s *session) EOF(connection.Instant) {
	s.phase = connection.Ended
	for _, st := range s.streams {
		st.bus.Discard()
		for _, w := range st.waiters {
			if reply := w.release(s.svc); reply != nil {
				s.post(letter{frame: reply, asked: w.asked})
			}
		}
	}
	s.streams = nil
}

// Drain implements connection.Session.
func (s *session) Drain(connection.Instant) {
	s.phase = max(s.phase, connection.Draining)
	for q := range s.queries {
		q.bus.Cancel()
	}
	for _, st := range s.streams {
		st.end()
	}
	s.port.Wake()
}

// Load implements connection.Session.
func (s *session) Load() connection.Load {
	streams := len(s.streams) > 0
	busy := streams || s.blocked || s.cut.msg != nil || len(s.queries) > 0 || s.deferred.Len() > 0
	return connection.Load{Busy: busy, Streams: streams, Done: s.phase != connection.Open && !busy && s.mail.empty()}
}

// Report implements connection.Reporter.
func (s *session) Report() (inFlight, streams int64) {
	inFlight = s.answered.Len()
	for _, n := range s.awaited {
		inFlight += n
	}
	return inFlight, int64(len(s.streams))
}

// Closed implements connection.Session. It does not undo any process state (kernel-ipc §2.3).
func (s *session) Closed() {
	s.gone.Store(true)
	for a, n := range s.awaited {
		s.answered.Add(a.row, a.came, n, n)
	}
	s.answered.Record(s.svc.meter, connection.Mono(), s.port)
	for _, st := range s.streams {
		st.bus.Discard()
	}
	for q := range s.queries {
		q.bus.Forget()
	}
	s.cut.drop()
	s.streams, s.queries, s.awaited = nil, nil, nil
}

// post leaves a letter for the session and wakes its owner. Any goroutine may call it.
func (s *session) post(l letter) {
	s.mail.put(l)
	s.port.Wake()
}

// liveStream is a Subscribe stream or a handler as its connection sees it (kernel-ipc §5.4).
type liveStream struct {
	bus          *bus.Stream
	id           string
	prefix       []byte // type byte excluded: what every chunk frame of the stream begins with
	kind         bus.Kind
	subscriberID string // Subscribe only
	generated    bool   // subscriberID was made by the server
	ending       bool   // flushed by Pump, then STREAM_END
	done         bool   // STREAM_END was appended
	waiters      []*pendingUnsubscribe
}

// end makes the stream take no new messages; Pump flushes it and sends STREAM_END.
func (st *liveStream) end() {
	st.ending = true
	st.bus.Detach()
}

// pop appends the chunk frames of st until out has grown to room, or the stream has nothing
// buffered (dry). Of a large one it appends the beginning, and the rest stays in s.cut, so that the
// bus has the only copy of what a peer does not take.
func (s *session) pop(st *liveStream, out []byte, room int) (outAfter []byte, dry bool) {
	for len(out) < room && s.cut.msg == nil {
		m := st.bus.Pop()
		if m == nil {
			return out, true
		}
		if len(m.Body) > connection.DefaultChunkBytes {
			out = append(frame.BeginSized(out, frame.StreamChunk, len(st.prefix)+len(m.Body)), st.prefix...)
			s.cut = part{msg: m}
			return s.cut.appendTo(out, room-len(out)), false
		}
		out = frame.Append(out, frame.StreamChunk, st.prefix, m.Body)
		m.Release()
	}
	return out, false
}

// part is a message whose body was appended up to at; there is none while msg is nil.
type part struct {
	msg *bus.Message
	at  int
}

// appendTo appends at most room bytes of the rest, and releases the message after the last one.
func (p *part) appendTo(out []byte, room int) []byte {
	rest := p.msg.Body[p.at:]
	n := min(len(rest), max(room, 0))
	out = append(out, rest[:n]...)
	if p.at += n; n == len(rest) {
		p.drop()
	}
	return out
}

func (p *part) drop() {
	if p.msg != nil {
		p.msg.Release()
	}
	*p = part{}
}

// ended appends the stream's STREAM_END and the replies that waited for it.
func (s *session) ended(st *liveStream, out []byte) []byte {
	start := len(out)
	out = mpack.AppendStreamEnd(frame.Begin(out, frame.StreamEnd), []byte(st.id))
	frame.Finish(out, start)
	for _, w := range st.waiters {
		if reply := w.release(s.svc); reply != nil {
			out = append(out, reply...)
			s.answer(w.asked, false)
		}
	}
	st.waiters = nil
	return out
}

// deferReplies holds back what was appended to out behind start until the journal is durable up to
// an index.
func (s *session) deferReplies(out []byte, start int, upTo journal.Index) []byte {
	return s.deferred.Hold(s.port, &s.svc.rt.Gate, out, start, upTo)
}

// appendDeferred appends the deferred replies, if the journal is durable up to their index.
func (s *session) appendDeferred(out []byte) []byte {
	out = s.deferred.Append(s.port, &s.svc.rt.Gate, out)
	s.left()
	return out
}

// appended is the index that a reader of the present state has to wait for.
func (s *session) appended() journal.Index { return s.svc.store.Appended() }

// deferralFull reports whether so much is deferred that nothing more should be made.
func (s *session) deferralFull() bool { return s.deferred.Len() > s.svc.cfg.UnsentBytes }

// letter is one thing that came to pass away from the connection's owner.
type letter struct {
	frame    []byte        // a whole frame, sent as it is
	asked    asked         // what it answers
	query    *pendingQuery // the query this answers, if any
	unblocks bool          // the listing that blocked the connection is done
}

// mailbox passes letters to a connection's owner. While it has more bytes than may be unsent, the
// connection is not read. What was asked before is bounded by room and by the pending queries.
type mailbox struct {
	mu      sync.Mutex
	letters []letter
	bytes   atomic.Int64 // of the letters' frames; written under mu
}

func (m *mailbox) put(l letter) {
	m.mu.Lock()
	m.letters = append(m.letters, l)
	m.bytes.Add(int64(len(l.frame)))
	m.mu.Unlock()
}

// room reports whether n more bytes stay within the bound.
func (m *mailbox) room(n int, bound int64) bool { return m.bytes.Load()+int64(n) <= bound }

func (m *mailbox) take() []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.letters
	m.letters = nil
	m.bytes.Store(0)
	return l
}

func (m *mailbox) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.letters) == 0
}
