package route

import (
	"context"
	"errors"
	"net"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/cluster/upstream"
	"trunkline/engine/connection"
)

// maxDials is how often a leg is dialled, one time after the other, without being sent anything.
const maxDials = 3

var errLeg = errors.New("cannot understand what a partition sent")

// leg is the connection of a session to the owner of one partition; it is the session on that.
// s.mu guards it.
type leg struct {
	s         *session
	partition int
	port      *connection.Port // nil while it is not connected
	nc        net.Conn
	running   bool // its goroutine dials or serves

	unsent  []byte // requests
	queued  int    // how many they are
	owed    int    // requests that were sent and have not got their last frame
	blocked bool   // it is not read
	over    bool   // the owner has ended it, or lost the partition
	dials   int

	oldest, newest uint32 // slots of the window that it has to answer
	unanswered     int    // how many they are
	parked         queue  // their replies that came early
}

// push adds a slot that the leg has to answer.
func (l *leg) push(n uint32) {
	if l.unanswered == 0 {
		l.oldest = n
	} else {
		l.s.window.at(l.newest).next = n
	}
	l.newest = n
	l.unanswered++
}

// put appends a request to those that are to be sent; session.send follows.
func (l *leg) put(whole []byte) {
	l.unsent = append(l.unsent, whole...)
	l.s.waiting += len(whole)
	l.queued++
	l.s.touched |= 1 << l.partition
}

// finished counts a request as done.
func (l *leg) finished() { l.owed, l.dials = l.owed-1, 0 }

// rouse has the requests sent.
func (l *leg) rouse() {
	switch {
	case l.s.end >= failed:
	case l.port != nil:
		l.port.Wake()
	case !l.running:
		l.running = true
		l.s.r.wg.Go(l.run)
	}
}

// run dials and serves the leg, again if requests came to it while it ended.
func (l *leg) run() {
	for again := true; again; {
		nc, owns, err := l.s.r.owners.Connect(l.s.ctx, l.partition, l.s.port.Remote())
		if err == nil {
			err = l.serve(nc, owns)
		}
		again = l.ended(err)
	}
}

// serve serves the connection until it has ended.
func (l *leg) serve(nc net.Conn, owns context.Context) error {
	if !l.connected(nc) {
		return nc.Close()
	}
	defer context.AfterFunc(owns, l.lost)()
	return l.s.r.legs.ServeSession(nc, l.s.port.Remote(), l.open)
}

// connected notes the connection; false: it is not needed any more.
func (l *leg) connected(nc net.Conn) bool {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.nc, l.over = nc, false
	l.dials++
	return l.s.end < failed
}

// open is the connection.Opener of the connection.
func (l *leg) open(p *connection.Port) connection.Session {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.port = p
	p.Wake()
	return l
}

// lost ends the connection because its owner has lost the partition.
func (l *leg) lost() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.cut()
}

// cut closes the connection, and has what still comes on it dropped.
func (l *leg) cut() {
	if l.over = true; l.nc != nil {
		_ = upstream.Cut(l.nc)
	}
}

// ended notes the end of the connection, or of a dial, and reports whether to dial again.
func (l *leg) ended(err error) (again bool) {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l.nc, l.port, l.running, l.blocked = nil, nil, false, false
	if s.end >= failed {
		return false
	}
	if err != nil || l.owed > 0 || l.queued > 0 && l.dials >= maxDials {
		if l.owed == 0 && l.queued > 0 {
			s.leave(l) // nothing of it was sent
		} else {
			s.fail(l.partition, err)
		}
		return false
	}
	l.running = l.queued > 0
	return l.running
}

// Feed implements connection.Session: what the owner of the partition sends.
func (l *leg) Feed(in, out []byte, _ connection.Instant) (used int, outAfter []byte, v connection.Verdict) {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake()
	defer s.send()
	for !l.over && s.end < failed {
		if len(s.out) > unsentBytes {
			l.blocked = true
			return used, out, connection.Blocked
		}
		t, payload, n := frame.Split(in[used:], s.r.cfg.MaxFrameBytes)
		if n == 0 {
			return used, out, connection.More
		}
		wait, ok := false, n > 0
		if ok {
			wait, ok = s.arrived(l, t, payload, in[used:used+n])
		}
		switch {
		case !ok:
			s.fail(l.partition, errLeg)
		case wait:
			l.blocked = true
			return used, out, connection.Blocked
		default:
			used += n
		}
	}
	return used, out, connection.Close
}

// arrived takes one frame of a leg. wait: there is no room for it. ok is false for what no service
// sends.
func (s *session) arrived(l *leg, t frame.Type, payload, whole []byte) (wait, ok bool) {
	switch t {
	case frame.Response, frame.Error, frame.StreamChunk, frame.StreamEnd:
	default:
		return false, false
	}
	if l.owed == 0 {
		return false, false
	}
	if number, rest, ours := s.cutID(payload); ours {
		if s.chunks.len() > chunkBytes && t == frame.StreamChunk {
			return true, true
		}
		c := s.calls[number]
		if c == nil {
			return false, false
		}
		if s.refuses(t, rest) {
			rest = noOwnerRest
			defer s.leave(l)
		}
		return c.frame(l, t, rest)
	}
	if t == frame.StreamChunk || t == frame.StreamEnd {
		return false, false
	}
	if rest := payload[mpack.Next(payload, 1+len(idStart)):]; s.refuses(t, rest) {
		id := mpack.ReadValue(payload[1+len(idStart):]).Data
		if wait, ok = s.answered(l, s.appendFrame(nil, t, id, noOwnerRest)); ok && !wait {
			s.leave(l)
		}
		return wait, ok
	}
	return s.answered(l, whole)
}

// Pump implements connection.Session: the requests that are to be sent.
func (l *leg) Pump(out []byte, _ int, _ connection.Instant) (outAfter []byte, more bool) {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.over || len(l.unsent) == 0 {
		return out, false
	}
	out = append(out, l.unsent...)
	s.waiting -= len(l.unsent)
	l.owed, l.queued = l.owed+l.queued, 0
	if l.unsent = l.unsent[:0]; cap(l.unsent) > keepBytes {
		l.unsent = nil
	}
	if s.stalled {
		s.port.Wake()
	}
	return out, false
}

// EOF implements connection.Session.
func (l *leg) EOF(connection.Instant) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.over = true
}

// Drain implements connection.Session: a leg ends with its client.
func (l *leg) Drain(connection.Instant) {}

// Load implements connection.Session.
func (l *leg) Load() connection.Load {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return connection.Load{Busy: l.owed > 0 || l.queued > 0, Done: l.over, Over: l.over}
}

// Closed implements connection.Session. What follows is for leg.ended.
func (l *leg) Closed() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.over = true
}

// noOwner is the refusal of a request whose partition no node serves: its owner hands it over, or
// cannot be reached within Config.Hold. The request has had no effect.
const noOwner = "No node serves the partition now; try again"

// noOwnerRest is the payload of that behind the identifier.
var noOwnerRest = mpack.AppendError(nil, nil, wire.Unavailable.String(), noOwner, mpack.Extras{Retryable: true})[len("\x83\xa2id\xa0"):]

// refuses reports whether a service that ends refuses a request so; rest is behind the identifier.
func (s *session) refuses(t frame.Type, rest []byte) bool {
	if t != frame.Error {
		return false
	}
	value, ok := s.content(rest, errorRest)
	return ok && string(member(value, "code").Data) == wire.Unavailable.String()
}

// leave ends the client's connection behind the refusal of a request that l has not brought to its
// owner: what follows is refused as well or not read, so that it has no effect before that.
func (s *session) leave(l *leg) {
	if !l.refuse() {
		s.fail(l.partition, errLeg)
		return
	}
	if s.end == serving {
		s.end = closing
		s.r.broken.Add(1)
	}
	s.port.Wake()
}

// refuse answers the requests that the leg has not sent. false: parts of calls are among them.
func (l *leg) refuse() (all bool) {
	s := l.s
	var ids [][]byte
	for at := 0; at < len(l.unsent); {
		_, payload, n := frame.Split(l.unsent[at:], s.r.cfg.MaxFrameBytes)
		var q mpack.Request
		if _, _, ours := s.cutID(payload); ours || n <= 0 || s.scan.ParseRequest(payload, &q) != mpack.NoProblem {
			return false
		}
		ids, at = append(ids, q.ID), at+n
	}
	n, before := l.oldest, l.unanswered-len(ids) // the last ones of the leg
	for i := range l.unanswered {
		sl := s.window.at(n)
		if i == before-1 {
			l.newest = n
		}
		n = sl.next
		if i >= before {
			sl.leg, sl.done, sl.text = own, true, s.appendFrame(nil, frame.Error, ids[i-before], noOwnerRest)
		}
	}
	s.waiting -= len(l.unsent)
	l.unsent, l.queued, l.unanswered = nil, 0, before
	s.settle()
	return true
}
