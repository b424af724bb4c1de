package route

import (
	"trunkline/codec/frame"
	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/engine/cluster/placement"
	"trunkline/engine/envelope"
)

var envelopeFields = mpack.Fields("envelope")

// openEnvelope reads the envelope of the request at hand into s.env, and returns the partition of
// its identifier. ok is false for what is no envelope.
func (s *session) openEnvelope() (partition int, ok bool) {
	s.scan.ParseFields(s.req.Body, 0, envelopeFields, s.field[:])
	raw := s.field[0].Data
	switch s.field[0].Kind {
	case mpack.Map:
	case mpack.Str:
		raw = jsonx.TrimBOM(raw)
		if !jsonx.Check(raw, jsonx.MaxDepth).OK() {
			return 0, false
		}
		raw = transcode.AppendMsgPack(nil, raw)
	default:
		return 0, false
	}
	if s.env == nil {
		s.env = new(envelope.Env)
	}
	if s.env.Decode(envelope.MsgPack, raw) != nil {
		return 0, false
	}
	return int(s.r.owners.PartitionOf(placement.Process, s.env.Text(envelope.EnvelopeID))), true
}

// envelopeHome returns the partition of the envelope in the request at hand; that of what is none
// is 0, whose service refuses it.
func (s *session) envelopeHome() int {
	partition, _ := s.openEnvelope()
	s.closeEnvelope()
	return partition
}

func (s *session) closeEnvelope() {
	if s.env != nil {
		s.env.Release()
	}
}

// updateEnvelope is UpdateEnvelope. Sessions that wait for the interrupt which it takes back are at
// the partitions of their processes: the others are asked to have them go on, one by one, as there
// is no bound on the answer but that of a frame. After a failure in between a repetition makes that
// good.
func (s *session) updateEnvelope(whole []byte) bool {
	home, ok := s.openEnvelope()
	defer s.closeEnvelope()
	if !ok {
		return s.pass(home, whole, true)
	}
	if s.env.Bool(envelope.InterruptPending) {
		return s.pass(home, whole, true)
	}
	answer := s.appendAnswer(nil, s.idempotencyKey())
	o, at := s.begin(), home
	o.next = func() {
		if o.parts[at].typ == frame.Error {
			o.relay(at)
			return
		}
		if at = (at + 1) % len(o.parts); at == home {
			o.relay(home)
			return
		}
		o.ask(at, answer)
	}
	o.ask(home, s.req.Body)
	return true
}

// appendAnswer appends the body by which partitions are asked for the sessions: of the envelope
// only what those look at, in the flat shape. A late repetition must not answer a later interrupt,
// so it has the idempotency key, too.
func (s *session) appendAnswer(dst, key []byte) []byte {
	v := s.env.Value(envelope.Interrupt)
	dst = mpack.AppendStr(appendKey(dst, key, 2), "envelope")
	members := 1
	if v.Kind == envelope.Map || v.Kind == envelope.Null {
		members = 2
	}
	dst = mpack.AppendStr(mpack.AppendStr(mpack.AppendMap(dst, members), "envelope_id"), s.env.Text(envelope.EnvelopeID))
	switch v.Kind {
	case envelope.Map:
		dst = append(mpack.AppendStr(dst, "interrupt"), v.Raw...)
	case envelope.Null:
		dst = mpack.AppendNil(mpack.AppendStr(dst, "interrupt"))
	}
	return mpack.AppendBool(mpack.AppendStr(dst, "resume"), true)
}
