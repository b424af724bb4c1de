package fuzz

import (
	"fmt"
	"slices"
)

// query is one pending Query (kernel-ipc §5.5).
type query struct {
	caller            *conn
	handler           *stream
	id, typ           string // id: of the request
	name              *made  // query_id
	timeout, deadline int64
}

// ask is kernel-ipc §4.17.
func ask(k *call) object {
	m := k.model
	typ, payload, source := k.message("query_type")
	timeout := k.i64("timeout_ms")
	if k.bad != nil {
		return nil
	}
	if timeout == 0 {
		timeout = m.set.queryDefault
	}
	timeout = min(timeout, m.set.queryMax)
	h := m.handler("Query", typ)
	if h == nil {
		k.refuse("NOT_FOUND", "No handler registered for query type: %s", typ)
		return nil
	}
	if len(m.pending) >= 1+m.set.queueCapacity {
		full := &refusal{code: "RESOURCE_EXHAUSTED", message: containing("queue is full")}
		k.bad = full.with("retryable", true).with("kernel_queue_capacity", m.set.queueCapacity)
		return nil
	}
	q := &query{caller: k.conn, handler: h, id: k.id, typ: typ, timeout: timeout, deadline: m.ms + timeout,
		name: &made{form: queryForm, size: 19}}
	body := object{{"query_id", q.name}, {"query_type", typ}, {"payload", payload}, {"source", source}, {"timeout_ms", timeout}}
	if !k.refusedBy(h, body, "query", typ) {
		m.pending = append(m.pending, q)
	}
	return nil
}

// end takes q off the pending ones and answers its caller.
func (m *model) end(q *query, f expected) {
	m.pending = slices.DeleteFunc(m.pending, func(o *query) bool { return o == q })
	q.caller.mail = append(q.caller.mail, letter{frame: m.bounded(q.id, f), query: true})
}

func (m *model) cancel(q *query) {
	m.end(q, (&refusal{code: "CANCELLED", message: anyOf{""}}).frame(q.id))
}

// reply is kernel-ipc §4.21.
func reply(k *call) object {
	id, success, result, text := k.required("query_id"), k.flag("success", true), k.json("result", "null"), k.text("error")
	if k.bad != nil {
		return nil
	}
	for _, q := range k.model.pending {
		if q.name.now == id && q.handler.conn == k.conn {
			k.model.executed++
			body := object{{"success", success}, {"result", lastOf{jsonValue(result)}}, {"error", text}}
			k.model.end(q, k.model.answer(q.id, body))
			return object{{"success", true}, {"delivered", true}}
		}
	}
	return object{{"success", true}, {"delivered", false}}
}

// waiter is an Unsubscribe that waits for its streams to be flushed.
type waiter struct {
	id          string
	open, ended int
}

// release counts a stream that has ended; with the last one comes the reply.
func (w *waiter) release(m *model) (f expected, last bool) {
	w.open--
	return m.answer(w.id, object{{"success", true}, {"ended", w.ended}}), w.open == 0
}

// unsubscribe is kernel-ipc §4.19.
func unsubscribe(k *call) object {
	streamID, subscriberID := k.text("stream_id"), k.optionalID("subscriber_id")
	if (streamID == "") == (subscriberID == "") {
		k.invalid("exactly one of stream_id, subscriber_id is required")
	}
	if k.bad != nil {
		return nil
	}
	w := &waiter{id: k.id}
	for _, s := range k.conn.streams {
		if s.named(streamID, subscriberID) {
			s.end()
			s.waiters = append(s.waiters, w)
			w.open++
		}
	}
	w.ended = w.open
	for _, q := range slices.Clone(k.model.pending) {
		if streamID != "" && q.caller == k.conn && q.id == streamID {
			k.model.cancel(q)
			w.ended++
		}
	}
	if w.open > 0 {
		return nil
	}
	return object{{"success", true}, {"ended", w.ended}}
}

// sent checks what the server sent on its own account: answers that were waited for first, then
// chunks and ends of streams. more reports whether it has reported that chunks remain.
func (c *conn) sent(frames []received, more bool) error {
	for len(frames) > 0 && (frames[0].typ == response || frames[0].typ == errorFrame) {
		if err := c.letter(frames[0]); err != nil {
			return err
		}
		frames = frames[1:]
	}
	if len(c.mail) > 0 {
		return fmt.Errorf("did not send the answer %v", c.mail[0].frame)
	}
	for _, f := range frames {
		if err := c.streamFrame(f); err != nil {
			return fmt.Errorf("frame %v: %w", f, err)
		}
	}
	if len(c.due) > 0 {
		return fmt.Errorf("did not send the answer %v after the end of its streams", c.due[0])
	}
	if c.waiting() && !more {
		return fmt.Errorf("has stopped sending with streams not empty or not ended")
	}
	return nil
}

// letter takes one answer; those that came up together have no order.
func (c *conn) letter(f received) error {
	for i, l := range c.mail {
		if l.frame.typ == f.typ && match(l.frame.payload, f.payload) == nil {
			c.mail = slices.Delete(c.mail, i, i+1)
			return nil
		}
	}
	return fmt.Errorf("the answer %v is none of %v", f, c.mail)
}

func (c *conn) streamFrame(f received) error {
	if f.typ == response || f.typ == errorFrame {
		if len(c.due) == 0 {
			return fmt.Errorf("an answer behind chunks")
		}
		want := c.due[0]
		c.due = c.due[1:]
		return compare(want, f)
	}
	at := slices.IndexFunc(c.streams, func(s *stream) bool { return s.id == f.id() })
	if at < 0 {
		return fmt.Errorf("no stream of that id")
	}
	s := c.streams[at]
	if len(s.queue) > 0 {
		it := s.queue[0]
		s.queue = s.queue[1:]
		return compare(it.frame(s.id), f)
	}
	if !s.ending {
		return fmt.Errorf("the stream has nothing to say")
	}
	c.streams = slices.Delete(c.streams, at, at+1)
	for _, w := range s.waiters {
		if reply, last := w.release(c.model); last {
			c.due = append(c.due, reply)
		}
	}
	return compare(expected{streamEnd, object{{"id", s.id}}}, f)
}

// compare holds a frame against the expected one.
func compare(want expected, got received) error {
	if want.typ != got.typ {
		return fmt.Errorf("got the frame %v, want %v", got, want)
	}
	if err := match(want.payload, got.payload); err != nil {
		return fmt.Errorf("got the frame %v, want %v: %w", got, want, err)
	}
	return nil
}
