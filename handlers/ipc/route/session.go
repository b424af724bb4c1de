package route

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"math/bits"
	"sync"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/cluster/placement"
	"trunkline/engine/connection"
	"trunkline/engine/envelope"
	"trunkline/handlers/ipc"
)

const (
	// unsentBytes bounds each of a session's buffers, one frame aside.
	unsentBytes = connection.DefaultUnsentBytes
	// chunkBytes bounds the chunks that a session holds, one frame aside: its streams are buffered
	// by the services.
	chunkBytes = connection.DefaultChunkBytes
	// framesPerTurn is how many frames are taken before others get the lock.
	framesPerTurn = 256
)

// ending is the state of a shutdown that neither the client nor a drain started; it never
// decreases.
type ending uint8

const (
	serving ending = iota
	closing        // the length of a frame was invalid, or a partition has no owner
	failed         // a leg broke
	gone           // Closed was called
)

// session is a client's connection. Its owner calls the methods of connection.Session, and the
// owners of its legs those of leg; mu is held in all of them. Owners are woken under mu, which
// takes no lock.
type session struct {
	r      *Router
	port   *connection.Port
	ctx    context.Context // of the dials
	cancel context.CancelFunc

	mu      sync.Mutex
	legs    []leg // by partition
	touched uint64
	waiting int // bytes of requests that no leg has taken
	turn    int // the partition for what any may serve

	scan  mpack.Scanner
	head  mpack.Head
	route *ipc.Route // of head
	req   mpack.Request
	field [1]mpack.Value
	env   *envelope.Env // scratch; nil until it is needed

	window window
	out    []byte // replies in order
	chunks queue  // of streams, and what follows them
	parked int    // bytes in the parked queues of the legs

	nonce   [8]byte
	calls   map[uint32]call
	last    uint32        // the number of the last call
	queries int           // among calls
	streams []*liveStream // oldest first
	op      *op           // later requests wait for it

	stalled bool // the client is not read
	phase   connection.Phase
	end     ending
}

// open makes the session of a new client; it is a connection.Opener.
func (r *Router) open(p *connection.Port) connection.Session {
	s := &session{r: r, port: p, legs: make([]leg, r.cfg.Partitions), turn: int(p.ID() % uint64(r.cfg.Partitions))}
	s.ctx, s.cancel = context.WithCancel(r.ctx)
	for i := range s.legs {
		s.legs[i].s, s.legs[i].partition = s, i
	}
	var random [len(s.nonce) / 2]byte
	_, _ = rand.Read(random[:]) // it never fails
	hex.Encode(s.nonce[:], random[:])
	return s
}

// Feed implements connection.Session.
func (s *session) Feed(in, out []byte, _ connection.Instant) (used int, outAfter []byte, v connection.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.send()
	for range framesPerTurn {
		if s.stalled = s.full(); s.stalled {
			return used, out, connection.Blocked
		}
		t, payload, n := frame.Split(in[used:], s.r.cfg.MaxFrameBytes)
		switch {
		case n == 0:
			return used, out, connection.More
		case n == frame.Malformed:
			s.end = closing // what was asked before is answered before (Load)
			s.port.Wake()
			return len(in), out, connection.Blocked
		case !s.take(t, payload, in[used:used+n]):
			s.stalled = true
			return used, out, connection.Blocked
		}
		used += n
	}
	return used, out, connection.Yield
}

// full reports whether the client is not to be read.
func (s *session) full() bool {
	return s.op != nil || s.end != serving || s.window.len() >= s.r.cfg.MaxInFlight || len(s.calls) >= s.r.cfg.MaxCalls
}

// take sends one frame to where it belongs; false: it has to wait. It does not allocate for a
// request whose row names a field.
func (s *session) take(t frame.Type, payload, whole []byte) bool {
	if t != frame.Request {
		return s.pass(0, whole, false)
	}
	body, ok := s.head.Parse(payload, &s.req)
	if !ok {
		if body, ok = mpack.ParseHead(payload, &s.req); ok {
			if found := s.r.routing.Find(s.req.Service, s.req.Method); found != nil {
				s.head.Keep(payload, &s.req, body)
				s.route = found
			} else {
				ok = false
			}
		}
	}
	if !ok || s.route.To != ipc.ToKey || s.phase == connection.Draining {
		return s.takeWhole(payload, whole)
	}
	next, problem := s.scan.ParseFields(payload, body, s.route.Key, s.field[:])
	if problem != mpack.NoProblem || next != len(payload) {
		return s.pass(0, whole, false)
	}
	return s.pass(s.home(s.route), whole, true)
}

// home returns the partition of the key in s.field; that of a key which is no string is 0, whose
// service refuses it.
func (s *session) home(route *ipc.Route) int {
	if s.field[0].Kind != mpack.Str {
		return 0
	}
	return int(s.r.owners.PartitionOf(route.Kind, s.field[0].Data))
}

// takeWhole is take for a request that has to be read to its end first.
func (s *session) takeWhole(payload, whole []byte) bool {
	q := &s.req
	if s.scan.ParseRequest(payload, q) != mpack.NoProblem || len(q.ID) == 0 || len(q.ID) > wire.MaxIdentifier ||
		len(q.Service) == 0 || len(q.Method) == 0 || q.Body == nil {
		return s.pass(0, whole, false)
	}
	if s.phase == connection.Draining {
		s.refuse(q.ID, wire.Unavailable, "Server is shutting down")
		return true
	}
	route := s.r.routing.Find(q.Service, q.Method)
	if route == nil {
		return s.pass(0, whole, true)
	}
	switch route.To {
	case ipc.ToKey:
		s.scan.ParseFields(q.Body, 0, route.Key, s.field[:])
		return s.pass(s.home(route), whole, true)
	case ipc.ToEnvelope:
		return s.pass(s.envelopeHome(), whole, true)
	case ipc.ToAny:
		return s.pass(s.anyHome(), whole, true)
	case ipc.ToSeveral:
		if begin := several(route.Method); begin != nil {
			return begin(s, whole)
		}
	}
	return s.pass(0, whole, true)
}

var keyFields = mpack.Fields(ipc.IdempotencyKey)

// idempotencyKey returns that of the request at hand, nil without one.
func (s *session) idempotencyKey() []byte {
	if s.scan.ParseFields(s.req.Body, 0, keyFields, s.field[:]); s.field[0].Kind != mpack.Str {
		return nil
	}
	return s.field[0].Data
}

// anyHome returns the partition for what any may serve: that of the request's idempotency key, so
// that a repetition meets its answer, or else the next one.
func (s *session) anyHome() int {
	if key := s.idempotencyKey(); key != nil {
		return int(s.r.owners.PartitionOf(placement.Process, key))
	}
	at := s.turn // one partition after the other
	s.turn = (at + 1) % len(s.legs)
	return at
}

// appendKey appends a map of so many members, whose first one is the idempotency key if there is
// one: it makes one more.
func appendKey(dst, key []byte, members int) []byte {
	if key == nil {
		return mpack.AppendMap(dst, members)
	}
	return mpack.AppendStr(mpack.AppendStr(mpack.AppendMap(dst, members+1), ipc.IdempotencyKey), key)
}

// pass sends a frame unchanged to a partition; its reply takes its place in the window. named: it
// is a request whose reply has an identifier. false: the legs have too much to send.
func (s *session) pass(partition int, whole []byte, named bool) bool {
	if s.waiting > 0 && s.waiting+len(whole) > unsentBytes {
		return false
	}
	l := &s.legs[partition]
	l.push(s.window.push(partition, named))
	l.put(whole)
	return true
}

// send wakes or dials the legs that got requests.
func (s *session) send() {
	for ; s.touched != 0; s.touched &= s.touched - 1 {
		s.legs[bits.TrailingZeros64(s.touched)].rouse()
	}
}

// Pump implements connection.Session.
func (s *session) Pump(out []byte, room int, _ connection.Instant) (outAfter []byte, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	room += len(out)
	out = append(out, s.out...)
	if s.out = s.out[:0]; cap(s.out) > keepBytes {
		s.out = nil
	}
	for s.chunks.len() > 0 && len(out) < room {
		out = append(out, s.chunks.take(frame.Len(s.chunks.rest()))...)
	}
	s.resume()
	return out, s.chunks.len() > 0
}

// resume has the legs fed again that were blocked: there may be room for what they have.
func (s *session) resume() {
	for i := range s.legs {
		if l := &s.legs[i]; l.blocked {
			l.blocked = false
			l.port.Wake()
		}
	}
}

// wake has the client pumped, and fed again if it was stalled.
func (s *session) wake() {
	if len(s.out) > 0 || s.chunks.len() > 0 || s.stalled || s.phase != connection.Open || s.end == closing {
		s.port.Wake()
	}
}

// EOF implements connection.Session: streams end at once, and nothing of them is sent any more;
// what was asked is still answered (kernel-ipc D10).
func (s *session) EOF(connection.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = connection.Ended
	for _, st := range s.streams {
		st.silent = true
		st.end(nil)
	}
	s.send()
}

// Drain implements connection.Session.
func (s *session) Drain(connection.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = max(s.phase, connection.Draining)
	for n, c := range s.calls {
		if q, ok := c.(*query); ok {
			q.cancel(n, nil)
		}
	}
	for _, st := range s.streams {
		st.end(nil)
	}
	s.send()
	s.port.Wake()
}

// Load implements connection.Session.
func (s *session) Load() connection.Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.window.len() > 0 || s.queries > 0 || s.op != nil
	busy := asked || len(s.calls) > 0 // a client that sees the end knows that its streams have ended
	return connection.Load{
		Busy: busy, Streams: len(s.streams) > 0, Done: s.phase != connection.Open && !busy && !s.hasOutput(),
		Over: (s.end >= failed || s.end == closing && s.window.len() == 0) && !s.hasOutput(),
	}
}

func (s *session) hasOutput() bool { return len(s.out) > 0 || s.chunks.len() > 0 }

// Report implements connection.Reporter.
func (s *session) Report() (inFlight, streams int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.window.len() + s.queries), int64(len(s.streams))
}

// Closed implements connection.Session.
func (s *session) Closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = gone
	s.drop()
	s.out, s.chunks, s.calls, s.streams, s.op = nil, queue{}, nil, nil, nil
	s.window = window{}
}

// fail ends the client's connection, behind what it was answered: a leg broke that had something to
// do for it.
func (s *session) fail(partition int, why error) {
	if s.end >= failed {
		return
	}
	s.end = failed
	s.r.broken.Add(1)
	s.r.cfg.Logger.Debug("a client loses its connection with a leg", "conn", s.port.ID(), "remote", s.port.Remote(),
		"partition", partition, "err", why)
	s.drop()
	s.port.Wake()
}

// drop closes all legs.
func (s *session) drop() {
	s.cancel()
	for i := range s.legs {
		s.legs[i].cut()
	}
}
