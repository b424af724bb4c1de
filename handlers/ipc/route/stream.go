package route

import (
	"bytes"
	"math/bits"
	"slices"

	"trunkline/codec/frame"
	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/connection"
)

// liveStream is a stream of the client that is open at all partitions. Sets of partitions are bits.
type liveStream struct {
	s          *session
	number     uint32
	id         []byte // the client's
	name       string // the subscriber's or handler's
	subscribes bool
	// acknowledged: the client gets the first chunk that partitions send.
	acknowledged bool
	silent       bool // nothing of it is sent any more
	ending       bool // the partitions end it
	evicted      bool
	waiters      []*unsubscription

	opening           *op // until it is open everywhere
	first             []byte
	refusal           []byte // why a partition did not open it
	asked, live, over uint64 // partitions that were asked, have opened it, have ended it
}

var (
	subscribeFields = mpack.Fields("event_types", "subscriber_id", "ack", "event_patterns")
	commandFields   = mpack.Fields("command_types", "handler_id")
	queriesFields   = mpack.Fields("query_types", "handler_id")
)

// subscribe opens a subscription at all partitions. They are asked to acknowledge it, so that it is
// live everywhere before later requests of the client.
func (s *session) subscribe(whole []byte) bool {
	var f [4]mpack.Value
	s.scan.ParseFields(s.req.Body, 0, subscribeFields, f[:])
	if f[2].Kind != mpack.Absent && f[2].Kind != mpack.Nil && f[2].Kind != mpack.Bool {
		return s.pass(0, whole, true)
	}
	st := &liveStream{subscribes: true, acknowledged: f[2].Kind == mpack.Bool && f[2].Int != 0}
	return s.openStream(st, &f[1], s.streamBody(subscribeFields))
}

// register opens the stream of a handler at all partitions.
func (s *session) register([]byte) bool {
	fields := commandFields
	if string(s.req.Method) == "RegisterQueryHandler" {
		fields = queriesFields
	}
	var f [2]mpack.Value
	s.scan.ParseFields(s.req.Body, 0, fields, f[:])
	return s.openStream(&liveStream{acknowledged: true}, &f[1], s.streamBody(fields))
}

// streamBody encodes the fields that are there, and ack for a subscription.
func (s *session) streamBody(fields []mpack.Field) []byte {
	body, n := mpack.AppendMap(nil, 0), 0
	for _, f := range fields {
		raw := rawMember(s.req.Body, f.Name)
		if f.Name == "ack" {
			raw = mpack.AppendBool(nil, true)
		}
		if raw != nil {
			body = append(mpack.AppendStr(body, f.Name), raw...)
			n++
		}
	}
	body[0] |= byte(n) // a map of less than 16
	return body
}

// openStream opens st: at partition 0 first, which decides, then at one after the other. One that
// refuses has the others undone.
func (s *session) openStream(st *liveStream, name *mpack.Value, body []byte) bool {
	st.s, st.id = s, bytes.Clone(s.req.ID)
	for _, other := range s.streams {
		if !other.silent && bytes.Equal(other.id, st.id) {
			s.refuse(st.id, wire.InvalidArgument, "Stream id already in use")
			return true
		}
	}
	if name.Kind == mpack.Str {
		st.name = string(name.Data)
	}
	o := s.begin()
	st.opening, st.number = o, s.add(st)
	replaced := s.replacedBy(st)
	if replaced != nil {
		replaced.ending = true // partitions end it with the new one
	}
	at := -1
	o.next = func() {
		at++
		switch {
		case st.refusal != nil:
			st.undo(replaced)
		case at < len(s.legs):
			st.ask(at, body)
		default:
			st.opened()
		}
	}
	o.next()
	return true
}

// replacedBy returns the subscription that a new one takes the name of, nil without one.
func (s *session) replacedBy(st *liveStream) *liveStream {
	for _, other := range s.streams {
		if st.subscribes && st.name != "" && other.subscribes && !other.ending && other.name == st.name {
			return other
		}
	}
	return nil
}

// ask opens the stream at a partition.
func (st *liveStream) ask(partition int, body []byte) {
	o := st.opening
	if !st.s.ask(partition, st.number, len(st.id), o.service, o.method, body) {
		st.refusal = appendError(nil, st.id, wire.ResourceExhausted, tooLargeToForward)
		o.next()
		return
	}
	st.asked |= 1 << partition
}

// opened makes the stream one of the session's.
func (st *liveStream) opened() {
	s, o := st.s, st.opening
	st.opening = nil
	s.streams = append(s.streams, st)
	if st.subscribes && st.name == "" {
		st.name = s.subscriberOf(st.first)
	}
	if st.acknowledged {
		s.chunks.put(s.appendFrame(nil, frame.StreamChunk, st.id, st.first))
	}
	st.first = nil
	o.end(nil)
	if s.phase != connection.Open {
		st.silent = st.silent || s.phase == connection.Ended
		st.end(nil)
	}
}

// subscriberOf returns the name that partition 0 gave a subscriber, from its acknowledgement.
func (s *session) subscriberOf(rest []byte) string {
	body, _ := s.content(rest, chunkRest)
	payload := member(body, "payload").Data
	if !jsonx.Check(payload, wire.MaxJSONDepth).OK() {
		return ""
	}
	var v [1]jsonx.Value
	jsonx.Pick(payload, []string{"subscriber_id"}, v[:])
	name, _ := v[0].Text()
	return string(name)
}

// undo answers that the stream was refused, and ends it where it was opened. With a refusal behind
// partition 0 the streams that gave way to it have ended at some partitions, and end at
// all.
func (st *liveStream) undo(replaced *liveStream) {
	o := st.opening
	st.opening, st.silent = nil, true
	for _, other := range st.s.streams {
		if other == replaced || other.evicted {
			if other.ending = false; st.live != 0 {
				other.end(nil)
			}
		}
	}
	if st.live&^st.over != 0 {
		st.s.streams = append(st.s.streams, st)
		st.end(nil)
	} else {
		delete(st.s.calls, st.number)
	}
	o.end(st.refusal)
}

// end has the partitions end the stream. u, which may be nil, waits for that.
func (st *liveStream) end(u *unsubscription) {
	if u != nil {
		st.waiters = append(st.waiters, u)
	}
	if st.ending {
		return
	}
	st.ending = true
	for left := st.live &^ st.over; left != 0; left &= left - 1 {
		st.s.cancelAt(bits.TrailingZeros64(left), st.number, len(st.id), nil)
	}
}

// frame implements call.
func (st *liveStream) frame(l *leg, t frame.Type, rest []byte) (wait, ok bool) {
	bit := uint64(1) << l.partition
	switch {
	case st.asked&^st.over&bit == 0:
		return false, false
	case st.live&bit == 0:
		return false, st.began(l, t, rest)
	case t == frame.StreamChunk:
		if st.opening != nil {
			return true, true
		}
		if !st.silent {
			st.s.chunks.put(st.s.appendFrame(nil, t, st.id, rest))
		}
		return false, true
	case t == frame.Response, t == frame.StreamEnd && !st.ending:
		return false, false // a partition that ends it alone is about to end the connection
	}
	st.over |= bit
	l.finished()
	if t == frame.Error { // evicted
		if !st.silent {
			st.s.chunks.put(st.s.appendFrame(nil, t, st.id, rest))
		}
		st.silent, st.ending, st.evicted = true, true, true
	}
	if st.live&^st.over == 0 && st.opening == nil {
		st.remove()
	}
	return false, true
}

// began takes the first frame of a partition: its chunk, or its refusal.
func (st *liveStream) began(l *leg, t frame.Type, rest []byte) (ok bool) {
	bit := uint64(1) << l.partition
	switch {
	case st.opening == nil:
		return false
	case t == frame.StreamChunk:
		st.live |= bit
		if l.partition == 0 {
			st.first = bytes.Clone(rest)
		}
	case t == frame.Error:
		st.over |= bit
		l.finished()
		st.refusal = st.s.appendFrame(nil, t, st.id, rest)
	default:
		return false
	}
	st.opening.next()
	return true
}

// remove forgets the stream, which has ended everywhere.
func (st *liveStream) remove() {
	s := st.s
	delete(s.calls, st.number)
	s.streams = slices.DeleteFunc(s.streams, func(other *liveStream) bool { return other == st })
	if !st.silent {
		s.chunks.put(s.appendFrame(nil, frame.StreamEnd, st.id, nil))
	}
	for _, u := range st.waiters {
		u.release(1)
	}
}
