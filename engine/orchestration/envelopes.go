package orchestration

import (
	"bytes"
	"time"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/envelope"
	"trunkline/engine/table"
)

// stored is an envelope of the store: its encoding, which is replaced and never written to.
type stored struct {
	encoded []byte
	history
}

// storedOverhead is about what an entry costs beside its bytes and key.
const storedOverhead = 192

func storedSize(id, encoded []byte) int64 { return int64(len(id)+cap(encoded)) + storedOverhead }

var envelopePolicy = table.Policy{Ended: true, Live: true, LiveIdle: int64(evictableAfter)}

func classOf(ended bool) table.Class {
	if ended {
		return table.Ended
	}
	return table.Live
}

// CreateArgs are the fields of CreateEnvelope; nil and empty ones are missing.
type CreateArgs struct {
	RawInput, RequestID, UserID, SessionID []byte
	// StageOrder is an encoded list of strings, Metadata an encoded map.
	StageOrder, Metadata []byte
}

// CreateEnvelope stores a new nested envelope and appends it to out (envelope §4.5). On a refusal
// out is returned as it came, and so it is for all methods.
func (o *Engine) CreateEnvelope(c *Call, a *CreateArgs, out []byte) ([]byte, wire.Code) {
	it := mpack.OpenList(a.StageOrder)
	for raw, ok := it.Next(); ok; raw, ok = it.Next() {
		if v := mpack.ReadValue(raw); v.Kind != mpack.Str || len(v.Data) == 0 {
			return out, c.invalid("stage_order must be an array of strings")
		}
	}
	c.output = a.appendDraft(c.output[:0])
	if code := c.decode(c.output); code != wire.OK {
		return out, code
	}
	e := &c.env
	if first := mpack.OpenList(a.StageOrder); first.Len() > 0 {
		raw, _ := first.Next()
		e.SetText(envelope.CurrentStage, mpack.ReadValue(raw).Data)
	}
	return o.insertNew(c, out)
}

// appendDraft appends an envelope with the members that were given.
func (a *CreateArgs) appendDraft(dst []byte) []byte {
	dst = mpack.AppendMap(dst, 5)
	dst = mpack.AppendStr(dst, "identity")
	ids := [...]struct {
		name  string
		value []byte
	}{{"request_id", a.RequestID}, {"user_id", a.UserID}, {"session_id", a.SessionID}}
	head := len(dst)
	dst = mpack.AppendStr(mpack.AppendStr(mpack.AppendMap(dst, 1), "envelope_id"), "new")
	for _, id := range ids {
		if len(id.value) > 0 {
			dst[head]++ // the number of members is in its lower half
			dst = mpack.AppendStr(mpack.AppendStr(dst, id.name), id.value)
		}
	}
	dst = mpack.AppendStr(mpack.AppendStr(dst, "raw_input"), a.RawInput)
	dst = appendGroup(mpack.AppendStr(dst, "pipeline"), "stage_order", a.StageOrder)
	dst = mpack.AppendMap(mpack.AppendStr(dst, "bounds"), 0)
	return appendGroup(mpack.AppendStr(dst, "audit"), "metadata", a.Metadata)
}

// appendGroup appends a map of one encoded member, of none if that is nil.
func appendGroup(dst []byte, name string, raw []byte) []byte {
	if raw == nil {
		return mpack.AppendMap(dst, 0)
	}
	return append(mpack.AppendStr(mpack.AppendMap(dst, 1), name), raw...)
}

// insertNew stores c.env under a new identifier and appends it to out.
func (o *Engine) insertNew(c *Call, out []byte) ([]byte, wire.Code) {
	e := &c.env
	for range maxIDTries {
		e.NewID(envelope.EnvelopeID, envelope.EnvelopePrefix, o.cfg.NewID)
		for !o.cfg.Owns(e.Text(envelope.EnvelopeID)) {
			e.NewID(envelope.EnvelopeID, envelope.EnvelopePrefix, o.cfg.NewID)
		}
		o.encode(c)
		if len(c.buf) > o.cfg.MaxReply {
			return out, c.tooLarge()
		}
		if code := c.shallow(); code != wire.OK {
			return out, code
		}
		id, encoded := e.Text(envelope.EnvelopeID), bytes.Clone(c.buf)
		v := &stored{encoded: encoded}
		switch o.envelopes.Insert(id, v, storedSize(id, encoded), classOf(e.Bool(envelope.Terminated)), c.Now.Mono, envelopePolicy) {
		case table.Inserted:
			if o.journals() {
				c.change = Change{Kind: ChangeEnvelope, ID: id, Envelope: encoded}
				o.bear(c, &v.history, &c.change, &Change{Kind: ChangeEnvelopeDrop, ID: id})
			}
			return append(out, encoded...), wire.OK
		case table.Full:
			return out, c.full(storeFull)
		}
	}
	return out, c.refuse(wire.Internal, "Cannot find a free identifier", nil, "")
}

// maxIDTries is how often an identifier that is taken is drawn again: only a broken source gets
// there.
const maxIDTries = 16

// CloneEnvelope stores a copy of an envelope under a new identifier and appends it to out (envelope
// §4.9).
func (o *Engine) CloneEnvelope(c *Call, v mpack.Value, out []byte) ([]byte, wire.Code) {
	if code := c.envelopeField(v); code != wire.OK {
		return out, code
	}
	return o.insertNew(c, out)
}

// CheckBounds appends whether the envelope that the request's body is, or holds under the key
// envelope, may go on (envelope §4.6).
func (o *Engine) CheckBounds(c *Call, body, out []byte) ([]byte, wire.Code) {
	code := wire.OK
	if inner, wrapped := unwrap(body); wrapped {
		code = c.envelopeField(inner)
	} else {
		code = c.decode(body)
	}
	if code != wire.OK {
		return out, code
	}
	e := &c.env
	r := e.Exhausted()
	out = mpack.AppendBool(mpack.AppendStr(mpack.AppendMap(out, 5), "can_continue"), r == envelope.NoReason)
	out = mpack.AppendStr(mpack.AppendStr(out, "terminal_reason"), r.Wire())
	out = appendLeft(mpack.AppendStr(out, "llm_calls_remaining"), e, envelope.MaxLLMCalls, envelope.LLMCallCount)
	out = appendLeft(mpack.AppendStr(out, "agent_hops_remaining"), e, envelope.MaxAgentHops, envelope.AgentHopCount)
	return appendLeft(mpack.AppendStr(out, "iterations_remaining"), e, envelope.MaxIterations, envelope.Iteration), wire.OK
}

func appendLeft(dst []byte, e *envelope.Env, limit, n envelope.Key) []byte {
	return mpack.AppendInt(dst, max(e.Int(limit)-e.Int(n), 0))
}

// unwrap looks for an envelope under the key envelope of a body that has no member of an envelope
// itself.
func unwrap(body []byte) (v mpack.Value, ok bool) {
	it := mpack.OpenMap(body)
	for {
		_, key, raw, more := it.Next()
		switch {
		case !more:
			return v, ok
		case envelope.Known(key):
			return v, false
		case string(key) == "envelope":
			v = mpack.ReadValue(raw)
			ok = v.Kind == mpack.Map || v.Kind == mpack.Str
		}
	}
}

// UpdateEnvelope replaces a stored envelope and appends it to out. If it takes back an interrupt,
// sessions that hold an envelope of its identifier and wait go on (envelope §4.7).
func (o *Engine) UpdateEnvelope(c *Call, v mpack.Value, out []byte) ([]byte, wire.Code) {
	if code := c.envelopeField(v); code != wire.OK {
		return out, code
	}
	e := &c.env
	id := e.Text(envelope.EnvelopeID)
	defer o.lockID(id).Unlock()
	if _, ok := o.envelopes.Get(id); !ok {
		return out, c.refuse(wire.NotFound, "Envelope ", id, " not found")
	}
	o.encode(c)
	if len(c.buf) > o.cfg.MaxReply {
		return out, c.tooLarge()
	}
	if code := c.shallow(); code != wire.OK {
		return out, code
	}
	list, a, code := o.answered(c)
	if code != wire.OK {
		return out, code
	}
	encoded := bytes.Clone(c.buf)
	if code := o.replace(c, id, encoded, classOf(e.Bool(envelope.Terminated)), false); code != wire.OK {
		o.release(c, list, a)
		return out, code
	}
	if len(list) > 0 {
		o.resolve(c, list, a)
	}
	return append(out, encoded...), wire.OK
}

// Resume is the part of UpdateEnvelope that is about sessions, for an envelope that another
// partition of a cluster stores. It appends an empty map to out.
func (o *Engine) Resume(c *Call, v mpack.Value, out []byte) ([]byte, wire.Code) {
	if code := c.envelopeField(v); code != wire.OK {
		return out, code
	}
	defer o.lockID(c.env.Text(envelope.EnvelopeID)).Unlock()
	list, a, code := o.answered(c)
	if code != wire.OK {
		return out, code
	}
	if len(list) > 0 {
		o.resolve(c, list, a)
	}
	return mpack.AppendMap(out, 0), wire.OK
}

// answered returns the sessions that wait for an interrupt which c.env takes back, and the answer,
// for which it has reserved room. The caller holds the lock of the envelope's identifier.
func (o *Engine) answered(c *Call) (list []*session, a *answer, code wire.Code) {
	if !c.env.Bool(envelope.InterruptPending) {
		list = o.waiting.find(c.env.Text(envelope.EnvelopeID))
	}
	if !o.answerFits(list, len(c.env.Value(envelope.Interrupt).Raw)) {
		return nil, nil, c.tooLarge()
	}
	a, ok := o.reserve(c, list)
	if !ok {
		return nil, nil, c.full(tableFull)
	}
	return list, a, wire.OK
}

// replace puts another encoding in the place of a stored envelope. force lets it through even when
// the bytes of the table are used up.
func (o *Engine) replace(c *Call, id, encoded []byte, class table.Class, force bool) wire.Code {
	size := storedSize(id, encoded)
	for {
		entry := o.envelopes.Acquire(id)
		if entry == nil {
			return c.refuse(wire.NotFound, "Envelope ", id, " not found")
		}
		missing := size - entry.Size()
		if entry.Resize(size) || force {
			v := &stored{encoded: encoded}
			v.life.Store(alive)
			if o.journals() {
				c.change = Change{Kind: ChangeEnvelope, ID: id, Envelope: encoded}
				v.last.Store(o.recordChange(c, &c.change))
			}
			entry.SetValue(v)
			entry.SetClass(class)
			entry.Touch(c.Now.Mono)
			entry.Release()
			return wire.OK
		}
		entry.Release()
		if !o.envelopes.MakeRoom(id, missing, c.Now.Mono, envelopePolicy) {
			return c.full(storeFull)
		}
	}
}

// endStored ends the stored envelope whose identifier is that of a terminated process (envelope
// §5.2).
func (o *Engine) endStored(c *Call, pid []byte) {
	defer o.lockID(pid).Unlock()
	entry := o.envelopes.Acquire(pid)
	if entry == nil {
		return
	}
	v, ended := entry.Value(), entry.Class() == table.Ended
	entry.Release()
	if ended || c.env.Reopen(envelope.MsgPack, v.encoded) != nil || c.env.Bool(envelope.Terminated) {
		return
	}
	c.env.Terminate(envelope.UserCancelled, processTerminated, c.wall())
	c.env.SetBool(envelope.InterruptPending, false)
	o.encode(c)
	o.replace(c, pid, bytes.Clone(c.buf), table.Ended, true)
}

// sweepEnvelopes drops the envelopes that no request touched for their retention.
func (o *Engine) sweepEnvelopes(now connection.Instant) int {
	return o.envelopes.Sweep(now.Mono-int64(o.cfg.EnvelopeRetention/time.Nanosecond), func(*stored, table.Class, int64) bool { return !o.cfg.Overloaded() })
}
