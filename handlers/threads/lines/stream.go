package lines

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/connection"
	"trunkline/engine/threadstore"
	"trunkline/handlers/threads/follow"
	"trunkline/handlers/threads/method"
)

// maxSubscriptions is how many subscriptions a connection has at most (threads §4.12).
const maxSubscriptions = 1024

// coldBytes is about how much a subscription reads at a time from what is not in memory.
const coldBytes = 64 << 10

// streams are the subscriptions and the waiting call of a session. All but what mu guards belongs
// to the owner of the session.
type streams struct {
	subs    map[uint32]*subscription
	all     *subscription // the last one to all threads
	last    uint32        // number of the last subscription
	lease   *follow.Lease
	call    *waitingCall
	over    atomic.Bool // the wait of call is over
	expired atomic.Bool // the token may be void

	mu    sync.Mutex
	ready []*subscription // that may have messages
	done  bool            // the session is closed
}

// waitingCall is a call of read_messages that waits for a message.
type waitingCall struct {
	away
	waiter follow.Waiter
	timer  *time.Timer
}

// subscription is one stream of a session.
type subscription struct {
	follow.Follower
	s *session
	n uint32

	queued bool      // is in ready; guarded by mu
	away   bool      // reads off the loop; guarded by mu
	ended  bool      // guarded by mu
	read   *coldPage // what was read off the loop; guarded by mu
}

type coldPage struct {
	out []byte
	st  follow.Step
}

// Ready implements follow.Reader.
func (b *subscription) Ready() {
	st := &b.s.streams
	st.mu.Lock()
	if !b.queued && !b.away && !b.ended {
		b.queued = true
		st.ready = append(st.ready, b)
	}
	st.mu.Unlock()
	b.s.port.Wake()
}

// Frame implements follow.Reader.
func (b *subscription) Frame(thread string, _ bool) threadstore.Frame {
	return threadstore.Frame{
		Before: func(dst []byte, _ uint64) []byte {
			dst = strconv.AppendUint(append(dst, `{"subscription":`...), uint64(b.n), 10)
			return append(dst, `,"message":`...)
		},
		After: append(jsonx.AppendString([]byte(`,"thread_id":`), thread), "}\n"...),
	}
}

// subscribe answers a subscribe line.
func (s *session) subscribe(out, params []byte) []byte {
	in := s.srv.inputs.Get().(*method.Input)
	defer s.srv.inputs.Put(in)
	f := method.Subscribe.Parse(in, params, true)
	if f == nil {
		f = in.CheckClaims(s.claims)
	}
	if f == nil && len(s.subs) >= maxSubscriptions {
		f = method.Limited(time.Second, "the connection has too many subscriptions")
	}
	if f != nil {
		return s.reject(out, &s.caller, "mcp."+method.Read, f)
	}
	thread := in.Thread()
	if string(thread) == allThreads {
		if thread = nil; s.all != nil && s.subs[s.all.n] == s.all {
			return s.refuse(out, &method.Fault{Condition: method.Conflict, Message: "the connection has a subscription to all threads already"})
		}
	}
	s.last++
	b := &subscription{s: s, n: s.last}
	if f := b.Begin(s.srv.cfg.Follow, s.claims, thread, uint64(in.Since()), b); f != nil {
		b.Close()
		return s.reject(out, &s.caller, "mcp."+method.Read, f)
	}
	if s.subs == nil {
		s.subs = map[uint32]*subscription{}
	}
	if s.subs[b.n] = b; thread == nil {
		s.all = b
	}
	s.holdLease()
	out = strconv.AppendUint(append(appendHead(out, &s.req, "true"), `,"result":{"subscription":`...), uint64(b.n), 10)
	return append(out, "}}\n"...)
}

// allThreads in place of a thread_id names all threads that the caller may read.
const allThreads = "*"

// unsubscribe answers an unsubscribe line.
func (s *session) unsubscribe(out, params []byte) []byte {
	in := s.srv.inputs.Get().(*method.Input)
	defer s.srv.inputs.Put(in)
	if f := method.Unsubscribe.Parse(in, params, true); f != nil {
		return s.refuse(out, f)
	}
	b := s.subs[uint32(in.Subscription())]
	if b == nil {
		return s.refuse(out, &method.Fault{Condition: method.NotFound, Message: "subscription names none of this connection"})
	}
	s.end(b)
	return append(appendHead(out, &s.req, "true"), ",\"result\":{}}\n"...)
}

// end ends a subscription. One that reads is closed when it is back.
func (s *session) end(b *subscription) {
	delete(s.subs, b.n)
	s.mu.Lock()
	away := b.away
	b.ended = true
	s.mu.Unlock()
	if !away {
		b.Close()
	}
}

// endAll ends the subscriptions. A fault is the last line of each; nil: there is none.
func (s *session) endAll(out []byte, f *method.Fault) []byte {
	for _, b := range s.subs {
		s.end(b)
		if f != nil {
			out = s.appendEnd(out, b, f)
		}
	}
	return out
}

func (s *session) appendEnd(out []byte, b *subscription, f *method.Fault) []byte {
	out = strconv.AppendUint(append(out, `{"subscription":`...), uint64(b.n), 10)
	out = method.AppendError(append(out, `,"error":`...), f, method.Spec, s.srv.cfg.NewRequestID(nil))
	return append(out, "}\n"...)
}

// holdLease has the session notified when its token is void.
func (s *session) holdLease() {
	if s.lease == nil {
		s.lease = s.srv.cfg.Follow.Hold(s.claims, s.bearer, func(f *method.Fault) {
			if f == nil {
				s.over.Store(true) // the server drains
			} else {
				s.expired.Store(true)
			}
			s.port.Wake()
		})
	}
}

// renewed takes over another token of the same agent.
func (s *session) renewed() {
	if s.lease == nil {
		return
	}
	s.lease.Release()
	s.lease = nil
	s.holdLease()
	for _, b := range s.subs {
		b.SetClaims(s.claims)
	}
}

// stream appends messages of subscriptions, about room bytes.
func (s *session) stream(out []byte, room int, now connection.Instant) (_ []byte, more bool) {
	start := len(out)
	switch {
	case len(s.subs) == 0:
		return out, false
	case s.phase == connection.Draining:
		out = s.endAll(out, &method.Fault{Condition: method.Unavailable, Message: "the server is stopping"})
	case s.expired.Load() && !s.authorized(now):
		out = s.endAll(out, s.void)
	}
	s.expired.Store(false)
	for len(out)-start < room && s.held.Len() <= unsentBytes {
		b := s.nextReady()
		if b == nil {
			break
		}
		var st follow.Step
		if page := b.read; page != nil {
			out, st = append(out, page.out...), page.st
			b.read, st.More = nil, true // it was not notified meanwhile
		} else {
			out, st = b.Next(out, min(room, coldBytes), false)
		}
		switch {
		case st.Fault != nil:
			s.end(b)
			out = s.appendEnd(out, b, st.Fault)
		case st.Cold:
			s.readCold(b)
		case st.More:
			b.Ready()
		}
	}
	s.seen = max(s.seen, s.srv.cfg.Follow.Confirm())
	out = s.hold(out, start)
	s.mu.Lock()
	defer s.mu.Unlock()
	return out, len(s.ready) > 0 && s.held.Len() <= unsentBytes
}

// nextReady takes the next subscription that may have messages, nil if there is none.
func (s *session) nextReady() *subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ready) > 0 {
		b := s.ready[0]
		s.ready, b.queued = s.ready[1:], false
		if !b.ended && !b.away {
			return b
		}
	}
	s.ready = nil
	return nil
}

// readCold has a subscription read off the loop.
func (s *session) readCold(b *subscription) {
	s.mu.Lock()
	b.away = true
	s.mu.Unlock()
	var page coldPage
	page.st.Fault = &method.Fault{Condition: method.Defect, Message: "the messages could not be read"}
	s.srv.run(func() { page.out, page.st = b.Next(nil, coldBytes, true) }, func() {
		s.mu.Lock()
		b.away, b.read = false, &page
		ended := b.ended || s.streams.done
		s.mu.Unlock()
		if ended {
			b.Close()
			return
		}
		b.Ready()
	})
}

// wait has a call wait for a message.
func (s *session) wait(out, line []byte, row *method.Row, caller *method.Caller, w *method.Wait) []byte {
	c := &waitingCall{away: away{line: append([]byte(nil), line...), caller: *caller, row: row}}
	s.streams.over.Store(false)
	wake := func() {
		s.streams.over.Store(true)
		s.port.Wake()
	}
	if f := c.waiter.Begin(s.srv.cfg.Follow, s.claims, w, wake); f != nil {
		return s.reject(out, caller, "mcp."+row.Name, f)
	}
	s.keep(&c.away)
	c.timer = time.AfterFunc(w.For, wake)
	s.streams.call, s.awaits = c, aMessage
	s.holdLease()
	return out
}

// waited answers the waiting call, if its wait is over.
func (s *session) waited(out []byte, now connection.Instant) []byte {
	c := s.streams.call
	void := s.expired.Load() && !s.authorized(now)
	if c == nil || !void && !s.streams.over.Load() && s.phase == connection.Open {
		return out
	}
	s.endWait()
	s.awaits = nothing
	start := len(out)
	s.req, s.requestID, s.row, s.failed = c.req, c.caller.RequestID, c.row.Number(), 0
	if void {
		out = s.reject(out, &c.caller, authOperation, s.void)
	} else {
		c.caller.Waited, c.caller.Seen, c.caller.Checked = true, s.seen, true
		c.caller.Now = now.Wall
		if out = s.call(out, c.line, c.row, c.req.params(), &c.caller); s.awaits != nothing {
			return out
		}
	}
	s.count(s.came)
	out = s.hold(out, start)
	s.left()
	return out
}

// endWait releases what a waiting call has.
func (s *session) endWait() {
	if c := s.streams.call; c != nil {
		c.timer.Stop()
		c.waiter.End()
		s.streams.call = nil
	}
}

// closeStreams ends all streams of a session that is closed.
func (s *session) closeStreams() {
	s.mu.Lock()
	s.streams.done = true
	s.mu.Unlock()
	s.endWait()
	s.endAll(nil, nil)
	s.lease.Release()
}
