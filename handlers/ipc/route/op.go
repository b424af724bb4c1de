package route

import (
	"bytes"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/handlers/ipc"
)

// begin starts a method that several partitions serve; the request is in s.req and whole. false: it
// has to wait.
type begin func(s *session, whole []byte) bool

// several returns how a method with several partitions begins, nil for others.
func several(method string) begin {
	switch method {
	case "GetNextRunnable":
		return (*session).nextRunnable
	case "ListProcesses":
		return (*session).listProcesses
	case "GetProcessCounts":
		return (*session).processCounts
	case "SetQuotaDefaults":
		return (*session).setQuotaDefaults
	case "GetSystemStatus":
		return (*session).systemStatus
	case "UpdateEnvelope":
		return (*session).updateEnvelope
	case "Query":
		return (*session).query
	case "Subscribe":
		return (*session).subscribe
	case "RegisterCommandHandler", "RegisterQueryHandler":
		return (*session).register
	case "Unsubscribe":
		return (*session).unsubscribe
	}
	return nil
}

// op is a request that several partitions answer. A session has one at a time.
type op struct {
	s               *session
	number, slot    uint32
	id              []byte // the client's
	service, method string
	parts           []part // by partition
	left            int    // parts that are asked for
	next            func() // is called when none is left
}

// part is what a partition answered. rest is the payload behind the identifier.
type part struct {
	typ  frame.Type
	rest []byte
}

// partBytes is what the parts of an op may have together, if two frames are less.
const partBytes = 8 << 20

// begin starts an op for the request at hand.
func (s *session) begin() *op {
	o := &op{s: s, id: bytes.Clone(s.req.ID), service: string(s.req.Service), method: string(s.req.Method),
		parts: make([]part, len(s.legs)), slot: s.window.push(own, true)}
	o.number = s.add(o)
	s.op = o
	return o
}

// ask asks a partition. A request that is too large for that ends the op.
func (o *op) ask(partition int, body []byte) {
	if o.s.op != o {
		return // it has ended
	}
	if !o.s.ask(partition, o.number, len(o.id), o.service, o.method, body) {
		o.end(appendError(nil, o.id, wire.ResourceExhausted, tooLargeToForward))
		return
	}
	o.left++
}

// frame implements call.
func (o *op) frame(l *leg, t frame.Type, rest []byte) (wait, ok bool) {
	if o.left == 0 || o.parts[l.partition].rest != nil || t != frame.Response && t != frame.Error {
		return false, false
	}
	prefix := okRest
	if t == frame.Error {
		prefix = errorRest
	}
	if _, ok = o.s.content(rest, prefix); !ok {
		return false, false
	}
	size := len(rest)
	for i := range o.parts {
		size += len(o.parts[i].rest)
	}
	if size > max(2*o.s.r.cfg.MaxFrameBytes, partBytes) {
		return false, false
	}
	o.parts[l.partition] = part{t, bytes.Clone(rest)}
	l.finished()
	if o.left--; o.left == 0 {
		o.next()
	}
	return false, true
}

// body returns the body that a partition answered with.
func (o *op) body(partition int) []byte { return o.parts[partition].rest[len(okRest):] }

// refusal returns the first partition that answered with an error.
func (o *op) refusal() (partition int, refused bool) {
	for i := range o.parts {
		if o.parts[i].typ == frame.Error {
			return i, true
		}
	}
	return 0, false
}

// refusedWith reports whether a partition answered with an error of that code.
func (o *op) refusedWith(partition int, code wire.Code) bool {
	p := o.parts[partition]
	return p.typ == frame.Error && string(member(p.rest[len(errorRest):], "code").Data) == code.String()
}

// relay ends the op with what a partition answered.
func (o *op) relay(partition int) {
	p := o.parts[partition]
	o.end(o.s.appendFrame(nil, p.typ, o.id, p.rest))
}

// answer ends the op with a body.
func (o *op) answer(body []byte) {
	o.end(o.s.appendFrame(nil, frame.Response, o.id, append([]byte(okRest), body...)))
}

// end ends the op; later requests are read again. text is its frame, nil for none.
func (o *op) end(text []byte) {
	o.s.op = nil
	delete(o.s.calls, o.number)
	o.s.fill(o.slot, text)
	o.s.port.Wake()
}

// emptyMap is the body of requests without fields.
const emptyMap = "\x80"

// nextRunnable is GetNextRunnable: it asks a partition after the other, beginning with another one
// each time, or with that of the idempotency key: a repetition gets from each what it answered. A
// part that never arrives ends the connection, so no partition is asked again.
func (s *session) nextRunnable(whole []byte) bool {
	start := member(s.req.Body, "start")
	key := member(s.req.Body, ipc.IdempotencyKey)
	if start.Kind > mpack.Nil && start.Kind != mpack.Bool || key.Kind > mpack.Nil && key.Kind != mpack.Str {
		return s.pass(0, whole, true) // its service refuses it
	}
	body := mpack.AppendStr(appendKey(nil, s.idempotencyKey(), 1), "start")
	body = mpack.AppendBool(body, start.Kind == mpack.Bool && start.Int != 0)
	at, tried := s.anyHome(), 1
	o := s.begin()
	o.next = func() {
		if tried == len(o.parts) || !o.refusedWith(at, wire.NotFound) {
			s.turn = (at + 1) % len(o.parts)
			o.relay(at)
			return
		}
		at = (at + 1) % len(o.parts)
		tried++
		o.ask(at, body)
	}
	o.ask(at, body)
	return true
}

// setQuotaDefaults has partition 0 decide. The others take all that is in force there, so that a
// repetition makes good what a failure in between has left. A request with an idempotency key may
// get what was in force earlier: an empty one asks again.
func (s *session) setQuotaDefaults([]byte) bool {
	o, keyed := s.begin(), s.idempotencyKey() != nil
	var first part
	o.next = func() {
		if _, refused := o.refusal(); refused {
			o.relay(0)
			return
		}
		if keyed {
			keyed, first, o.parts[0] = false, o.parts[0], part{}
			o.ask(0, []byte(emptyMap))
			return
		}
		body := append(mpack.AppendStr(mpack.AppendMap(nil, 1), "quota"), o.body(0)...)
		at := 0
		o.next = func() {
			if at++; at < len(o.parts) && o.parts[at-1].typ != frame.Error {
				o.ask(at, body)
				return
			}
			if i, refused := o.refusal(); refused {
				o.relay(i)
				return
			}
			if first.rest != nil {
				o.parts[0] = first
			}
			o.relay(0)
		}
		o.next()
	}
	o.ask(0, s.req.Body)
	return true
}
