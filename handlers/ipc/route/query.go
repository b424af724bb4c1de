package route

import (
	"bytes"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/cluster/placement"
	"trunkline/handlers/ipc/message"
)

// query is a Query without an answer; it comes at any time.
type query struct {
	s         *session
	id        []byte // the client's
	number    uint32
	partition int
}

var queryFields = mpack.Fields("query_type")

// query sends a Query to the partition of its type.
func (s *session) query(whole []byte) bool {
	s.scan.ParseFields(s.req.Body, 0, queryFields, s.field[:])
	if s.field[0].Kind != mpack.Str {
		return s.pass(0, whole, true)
	}
	if s.waiting > 0 && s.waiting+len(whole) > unsentBytes {
		return false
	}
	q := &query{
		s:         s,
		id:        bytes.Clone(s.req.ID),
		partition: int(s.r.owners.PartitionOf(placement.Topic, s.field[0].Data)),
	}
	q.number = s.add(q)
	if !s.ask(q.partition, q.number, len(q.id), "commbus", "Query", s.req.Body) {
		delete(s.calls, q.number)
		s.refuse(q.id, wire.ResourceExhausted, tooLargeToForward)
		return true
	}
	s.queries++
	return true
}

// frame implements call.
func (q *query) frame(l *leg, t frame.Type, rest []byte) (wait, ok bool) {
	if t != frame.Response && t != frame.Error {
		return false, false
	}
	delete(q.s.calls, q.number)
	q.s.queries--
	l.finished()
	q.s.out = q.s.appendFrame(q.s.out, t, q.id, rest)
	return false, true
}

// cancel has the query cancelled. u, which may be nil, waits for that.
func (q *query) cancel(number uint32, u *unsubscription) {
	q.s.cancelAt(q.partition, number, len(q.id), u)
}

// cancelAt has a partition end a call; size is the length of the client's identifier. u, which may
// be nil, waits for the reply.
func (s *session) cancelAt(partition int, number uint32, size int, u *unsubscription) {
	c := &cancellation{s: s, u: u}
	c.number = s.add(c)
	body := mpack.AppendStr(mpack.AppendMap(nil, 1), "stream_id")
	s.ask(partition, c.number, 0, "commbus", "Unsubscribe", mpack.AppendStr(body, s.appendID(nil, number, size)))
}

// cancellation is the Unsubscribe of a query, or of a stream at one partition.
type cancellation struct {
	s      *session
	number uint32
	u      *unsubscription
}

// frame implements call.
func (c *cancellation) frame(l *leg, t frame.Type, rest []byte) (wait, ok bool) {
	body, ok := c.s.content(rest, okRest)
	if t != frame.Response || !ok {
		return false, false
	}
	delete(c.s.calls, c.number)
	l.finished()
	if c.u != nil {
		c.u.release(int(member(body, "ended").Int))
	}
	return false, true
}

// unsubscription is an Unsubscribe of the client that waits for what it ends.
type unsubscription struct {
	s     *session
	id    []byte // the client's
	left  int    // what it waits for
	ended int
}

// release notes that one of those that the request waits for is over, n of which it has ended.
func (u *unsubscription) release(n int) {
	u.ended += n
	if u.left--; u.left == 0 {
		u.s.chunks.put(u.appendReply(nil)) // behind the ends of streams
	}
}

func (u *unsubscription) appendReply(dst []byte) []byte {
	body, _ := (&message.Ended{Success: true, Ended: int64(u.ended)}).MarshalMsg([]byte(okRest))
	return u.s.appendFrame(dst, frame.Response, u.id, body)
}

var unsubscribeFields = mpack.Fields("stream_id", "subscriber_id")

// unsubscribe ends streams of the session, and cancels its queries. Partition 0 refuses what names
// neither.
func (s *session) unsubscribe(whole []byte) bool {
	var f [2]mpack.Value
	s.scan.ParseFields(s.req.Body, 0, unsubscribeFields, f[:])
	streamID, named := given(&f[0])
	subscriberID, subscribed := given(&f[1])
	if !named || !subscribed || len(subscriberID) > wire.MaxIdentifier || (len(streamID) == 0) == (len(subscriberID) == 0) {
		return s.pass(0, whole, true)
	}
	u := &unsubscription{s: s, id: bytes.Clone(s.req.ID)}
	for _, st := range s.streams {
		if st.ending {
			continue
		}
		if len(streamID) > 0 && bytes.Equal(st.id, streamID) || len(subscriberID) > 0 && st.subscribes && st.name == string(subscriberID) {
			u.left++
			st.end(u)
		}
	}
	if len(streamID) > 0 && s.queries > 0 {
		s.cancelQueries(streamID, u)
	}
	if u.left == 0 {
		s.reply(u.appendReply(nil))
	}
	return true
}

// given reads an optional string; ok is false for another kind.
func given(v *mpack.Value) (text []byte, ok bool) {
	switch v.Kind {
	case mpack.Absent, mpack.Nil:
		return nil, true
	case mpack.Str:
		return v.Data, true
	}
	return nil, false
}

// cancelQueries cancels the queries of that identifier.
func (s *session) cancelQueries(id []byte, u *unsubscription) {
	var found []*query
	for _, c := range s.calls {
		if q, ok := c.(*query); ok && bytes.Equal(q.id, id) {
			found = append(found, q)
		}
	}
	for _, q := range found { // what it adds to calls is no part of the walk
		u.left++
		q.cancel(q.number, u)
	}
}
