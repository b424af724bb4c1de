package ipc

import (
	"fmt"
	"runtime/debug"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
	"trunkline/engine/store"
)

// turn is the state of one Feed: the output so far, the request at hand and the scratch values of
// handlers. Turns are pooled: an idle connection has none, and a request allocates nothing.
type turn struct {
	svc *Service
	s   *session
	now connection.Instant

	out    []byte
	used   int           // bytes of the input taken
	start  int           // where the frame being answered begins in out
	upTo   journal.Index // what the journal must have made durable before the replies leave
	seen   journal.Index // what it must have for the reply of the reader at hand
	row    int           // which method is being answered, for counting
	silent bool
	whole  bool // the changes of the request at hand go into one block
	// transient: a retry may get another answer, and nothing was changed; no key keeps the answer.
	transient bool

	opened  *liveStream // by the request at hand
	reading reading
	scan    mpack.Scanner
	req     *mpack.Request          // of the slot at hand
	fields  *[maxFields]mpack.Value // of the slot at hand
	ahead   *kernel.Ahead           // of the slot at hand, if it was begun
	id      []byte                  // echoed: empty unless the request has a valid one
	nested  [kernel.NumQuotaFields]mpack.Value
	msg     []byte // text of the error to send
	extras  mpack.Extras

	create kernel.CreateArgs
	pcb    kernel.PCB
	check  kernel.QuotaCheck
	delta  kernel.Usage
	total  kernel.Usage
	proc   mpack.Process
	ids    [2][uuidLen]byte
	tally  tally

	orch     orchestration.Call
	orchUsed bool
	created  orchestration.CreateArgs
	init     orchestration.InitArgs
	report   orchestration.Report

	came  int64 // when the turn's input was read, by the owner's clock
	later bool  // the answer of the request at hand comes by the mailbox
}

func newTurn(svc *Service) *turn { return &turn{svc: svc, tally: newTally()} }

func (t *turn) begin(s *session, out []byte, came connection.Instant) {
	t.s, t.out, t.now, t.came = s, out, s.svc.now(came), came.Mono
	t.used, t.orch.Work, t.upTo = 0, 0, 0
	t.reading.begin()
}

// end hands back what the turn took and made, and lets go of everything lent.
func (t *turn) end() (used int, out []byte) {
	used, out = t.used, t.out
	t.s, t.out, t.id, t.opened = nil, nil, nil, nil
	if t.reading.at > keepLent {
		t.reading.slots = [readAhead]slot{}
	}
	if t.orchUsed {
		t.orchUsed = false
		t.orch.Release()
		t.created, t.init, t.report = orchestration.CreateArgs{}, orchestration.InitArgs{}, orchestration.Report{}
	}
	if cap(t.msg) > keepText {
		t.msg = nil
	}
	return used, out
}

// A pooled turn keeps alive what its slots still point to, and the text of its last error. Up to
// these sizes, in bytes, that is a loop's own read buffer and ordinary texts.
const (
	keepLent = 64 << 10
	keepText = 4 << 10
)

// run executes the frames of in until they are used up or the connection has had its share. A crash
// inside a request is answered INTERNAL and ends the turn; the next turn goes on behind the request
// (kernel-ipc D11).
func (t *turn) run(in []byte) (v connection.Verdict) {
	defer t.recoverPanic(&v)
	for {
		sl := t.nextFrame(in)
		if sl == nil {
			return t.reading.stop
		}
		if len(t.out) > t.svc.cfg.UnsentBytes || t.orch.Work > t.svc.cfg.TurnBytes {
			return connection.Yield
		}
		t.reading.next++
		t.used += sl.size
		t.serve(sl)
		if t.s.blocked {
			return connection.Blocked
		}
	}
}

// recoverPanic answers the request that crashed and undoes the stream it may have opened.
func (t *turn) recoverPanic(v *connection.Verdict) {
	r := recover()
	if r == nil {
		return
	}
	t.svc.log.Error("recovered from a crash in a request", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	*v = connection.Yield
	if t.reading.busy { // a second reading of the same frames would crash too
		*v = connection.Close
		t.start, t.row, t.id, t.opened = len(t.out), len(methods), nil, nil
	}
	if t.opened != nil {
		t.opened.bus.Discard()
		t.s.drop(t.opened)
	}
	t.extras = mpack.Extras{}
	t.answer(t.refuse(wire.Internal, "Internal error"))
}

// serve answers one frame.
func (t *turn) serve(sl *slot) {
	t.start, t.row = len(t.out), len(methods)
	t.id, t.msg, t.extras = nil, t.msg[:0], mpack.Extras{}
	t.req, t.fields, t.ahead, t.opened = &sl.req, &sl.fields, nil, nil
	switch {
	case sl.method == nil || t.s.phase == connection.Draining:
		t.answer(t.validate(sl.typ, sl.payload))
	case sl.problem != mpack.NoProblem:
		t.id = sl.req.ID
		t.answer(t.refuse(wire.InvalidArgument, sl.problem.Text()))
	default:
		t.id = sl.req.ID
		if sl.keyed {
			t.ahead = &sl.ahead
		}
		t.answer(t.call(sl.method))
	}
}

// answer counts the request and completes its frame.
func (t *turn) answer(code wire.Code) {
	switch {
	case code != wire.OK:
		t.fail(code)
	case t.silent:
		t.countSilent()
		return
	}
	t.tally.add(t.row, code)
	t.out = sealFrame(t.out, t.start, t.id, t.svc.maxFrame)
}

// validate takes a frame through the checks of kernel-ipc §3.2, in their order, to its handler.
func (t *turn) validate(typ frame.Type, payload []byte) wire.Code {
	if typ != frame.Request {
		t.msg = fmt.Appendf(t.msg, "Unexpected message type: 0x%02X", byte(typ))
		return wire.InvalidArgument
	}
	if code := t.parse(payload); code != wire.OK {
		return code
	}
	if t.s.phase == connection.Draining {
		return t.refuse(wire.Unavailable, "Server is shutting down")
	}
	m := t.svc.routes.find(t.req.Service, t.req.Method)
	if m == nil {
		return t.unknown()
	}
	t.scan.ParseFields(t.req.Body, 0, m.want, t.fields[:])
	return t.call(m)
}

// call runs the method's handler. Where changes are written, the reply of a durable method waits
// for its change, that of a reader for whatever it may have seen.
func (t *turn) call(m *method) (code wire.Code) {
	t.row = m.index
	t.out = mpack.AppendResponseHead(frame.Begin(t.out, frame.Response), t.id)
	st, keyed := t.svc.store, t.isKeyed(m)
	if st.Log() == nil && !keyed {
		return m.handle(t)
	}
	if m.durability != None {
		if r := st.Refuses(); r != store.Accepts {
			return t.refuseChange(r)
		}
	}
	t.seen = everything
	if m.several || keyed {
		code = t.handleWhole(m, keyed)
	} else {
		code = m.handle(t)
	}
	if m.durability == Durable || m.reads || keyed {
		if code != wire.OK || keyed {
			t.seen = everything // it may report that something is missing, whose record knows no row
		}
		t.upTo = max(t.upTo, min(t.seen, st.Appended()))
	}
	t.upTo = max(t.upTo, st.Confirm())
	return code
}

// handleWhole runs a handler that makes several changes, or one and its idempotency key: they go
// into one block.
func (t *turn) handleWhole(m *method, keyed bool) wire.Code {
	t.svc.store.Begin()
	t.whole = true
	defer func() {
		t.whole = false
		t.svc.store.End()
	}()
	if keyed {
		return t.handleKeyed(m)
	}
	return m.handle(t)
}

// everything stands for all records there are: a reader waits for them unless it knows better.
const everything = ^journal.Index(0)

func (t *turn) unknown() wire.Code {
	if t.svc.routes.has(t.req.Service) {
		t.msg = append(append(append(t.msg, "Unknown "...), t.req.Service...), " method: "...)
		t.msg = append(t.msg, t.req.Method...)
		return wire.NotFound
	}
	t.msg = append(append(t.msg, "Unknown service: "...), t.req.Service...)
	return wire.NotFound
}

// parse fills t.req and t.id and judges the four members every request has (kernel-ipc §3.1).
func (t *turn) parse(payload []byte) wire.Code {
	problem := t.scan.ParseRequest(payload, t.req)
	if len(t.req.ID) <= wire.MaxIdentifier {
		t.id = t.req.ID
	}
	r := t.req
	switch {
	case problem != mpack.NoProblem:
		return t.refuse(wire.InvalidArgument, problem.Text())
	case r.IDIsOther:
		return t.refuse(wire.InvalidArgument, "Invalid request field: id must be a string")
	case len(r.ID) == 0:
		return t.refuse(wire.InvalidArgument, "Missing required request field: id")
	case len(r.ID) > wire.MaxIdentifier:
		return t.refuse(wire.InvalidArgument, "Invalid request field: id exceeds 1024 bytes")
	case r.ServiceIsOther:
		return t.refuse(wire.InvalidArgument, "Invalid request field: service must be a string")
	case len(r.Service) == 0:
		return t.refuse(wire.InvalidArgument, "Missing required request field: service")
	case r.MethodIsOther:
		return t.refuse(wire.InvalidArgument, "Invalid request field: method must be a string")
	case len(r.Method) == 0:
		return t.refuse(wire.InvalidArgument, "Missing required request field: method")
	case r.BodyIsOther:
		return t.refuse(wire.InvalidArgument, "Invalid request field: body must be an object")
	case r.Body == nil:
		return t.refuse(wire.InvalidArgument, "Missing required request field: body")
	}
	return wire.OK
}
