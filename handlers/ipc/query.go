package ipc

import (
	"bytes"
	"strconv"
	"time"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/codec/wire"
	"trunkline/engine/bus"
)

// pendingQuery is one unanswered Query call of a session; it is the bus.Caller of its query.
type pendingQuery struct {
	s   *session
	bus *bus.Query // set by the session's owner, read by no one else
	id  []byte     // of the request
	typ string
	asked
}

// query is kernel-ipc §4.17. The answer comes through the session's mailbox.
func query(t *turn) wire.Code {
	m, ok := t.busMessage("query_type")
	if !ok {
		return wire.InvalidArgument
	}
	timeout, ok := t.queryTimeout(&t.fields[3])
	if !ok {
		return wire.InvalidArgument
	}
	q := &pendingQuery{s: t.s, id: bytes.Clone(t.id), typ: string(m.typ), asked: t.asked()}
	asked, outcome := t.svc.bus.Query(m.typ, timeout, q, func(msg *bus.Message, id []byte) {
		msg.Body = mpack.AppendQuery(msg.Body, id, m.typ, m.payload, m.source, timeout.Milliseconds())
	})
	if code := t.outcome(outcome, "query", m.typ); code != wire.OK {
		return code
	}
	q.bus = asked
	if t.s.queries == nil {
		t.s.queries = map[*pendingQuery]struct{}{}
	}
	t.s.queries[q] = struct{}{}
	return t.answerLater()
}

func (t *turn) queryTimeout(v *mpack.Value) (time.Duration, bool) {
	ms, ok := t.i64(v, "timeout_ms")
	if !ok {
		return 0, false
	}
	if ms == 0 {
		return t.svc.limits.Load().DefaultQueryTimeout, true
	}
	return time.Duration(min(ms, t.svc.limits.Load().MaxQueryTimeout.Milliseconds())) * time.Millisecond, true
}

// QueryDone implements bus.Caller: it makes the caller's frame and leaves it in the mailbox.
func (q *pendingQuery) QueryDone(_ *bus.Query, a bus.Answer) {
	answer := q.appendAnswer(nil, a)
	if !q.s.mail.room(len(answer), q.s.svc.cfg.AnswerBufferBytes) {
		answer = appendErrorFrame(nil, q.id, wire.ResourceExhausted, "Answer dropped: too much is unsent", mpack.Extras{Retryable: true})
	}
	q.s.post(letter{frame: answer, query: q, asked: q.asked})
}

func (q *pendingQuery) appendAnswer(out []byte, a bus.Answer) []byte {
	switch a.Status {
	case bus.TimedOut:
		text := "Query timeout after " + strconv.FormatInt(a.TimeoutMS, 10) + "ms: " + q.typ
		return appendErrorFrame(out, q.id, wire.Timeout, text, mpack.Extras{})
	case bus.Cancelled:
		return appendErrorFrame(out, q.id, wire.Cancelled, "Query cancelled: "+q.typ, mpack.Extras{})
	}
	start := len(out)
	out = mpack.AppendResponseHead(frame.Begin(out, frame.Response), q.id)
	out = mpack.AppendBool(append(out, "\x83\xa7success"...), a.Success)
	out = transcode.AppendMsgPack(append(out, "\xa6result"...), a.Result)
	out = mpack.AppendStr(append(out, "\xa5error"...), a.Error)
	return sealFrame(out, start, q.id, q.s.svc.maxFrame)
}

var nullText = []byte("null")

// reply is kernel-ipc §4.21.
func reply(t *turn) wire.Code {
	f := t.fields
	id, ok := t.required(&f[0], "query_id")
	if !ok {
		return wire.InvalidArgument
	}
	success, ok := t.flag(&f[1], "success", true)
	if !ok {
		return wire.InvalidArgument
	}
	result, ok := t.jsonText(&f[2], "result", nullText)
	if !ok {
		return wire.InvalidArgument
	}
	text, ok := t.text(&f[3], "error")
	if !ok {
		return wire.InvalidArgument
	}
	delivered := t.svc.bus.Reply(t.s.port, id, success, result, text)
	t.out = mpack.AppendBool(append(t.out, "\x82\xa7success\xc3\xa9delivered"...), delivered)
	return wire.OK
}
