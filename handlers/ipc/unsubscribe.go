package ipc

import (
	"bytes"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/bus"
)

// pendingUnsubscribe is an Unsubscribe that waits for its streams to be flushed (kernel-ipc §4.19).
type pendingUnsubscribe struct {
	id    []byte
	open  int // streams not yet ended
	ended int
	asked
}

// release counts one stream as ended; with the last one it returns the reply.
func (u *pendingUnsubscribe) release(svc *Service) []byte {
	if u.open--; u.open > 0 {
		return nil
	}
	out := mpack.AppendResponseHead(frame.Begin(nil, frame.Response), u.id)
	out = appendEnded(out, u.ended)
	return sealFrame(out, 0, u.id, svc.maxFrame)
}

func appendEnded(out []byte, n int) []byte {
	return mpack.AppendInt(append(out, "\x82\xa7success\xc3\xa5ended"...), int64(n))
}

// unsubscribe is kernel-ipc §4.19.
func unsubscribe(t *turn) wire.Code {
	streamID, ok := t.text(&t.fields[0], "stream_id")
	if !ok {
		return wire.InvalidArgument
	}
	subscriberID, ok := t.optionalID(&t.fields[1], "subscriber_id")
	if !ok {
		return wire.InvalidArgument
	}
	if (streamID == nil) == (subscriberID == nil) {
		return t.refuse(wire.InvalidArgument, "exactly one of stream_id, subscriber_id is required")
	}
	u := &pendingUnsubscribe{id: bytes.Clone(t.id), asked: t.asked()}
	for _, st := range t.s.streams {
		if st.named(streamID, subscriberID) {
			st.end()
			st.waiters = append(st.waiters, u)
			u.open++
		}
	}
	u.ended = u.open + t.cancelQueries(streamID)
	if u.open > 0 {
		t.s.port.Wake()
		return t.answerLater()
	}
	t.out = appendEnded(t.out, u.ended)
	return wire.OK
}

// named reports whether a live stream is meant by one of the two names.
func (st *liveStream) named(streamID, subscriberID []byte) bool {
	if st.ending {
		return false
	}
	if streamID != nil {
		return st.id == string(streamID)
	}
	return st.kind == bus.Subscription && st.subscriberID == string(subscriberID)
}

// cancelQueries cancels the connection's pending Query calls with that request id; their answers
// are in the mailbox then.
func (t *turn) cancelQueries(id []byte) (n int) {
	if id == nil {
		return 0
	}
	for q := range t.s.queries {
		if bytes.Equal(q.id, id) && q.bus.Cancel() {
			n++
		}
	}
	return n
}
