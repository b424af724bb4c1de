package orchestration

import (
	"errors"
	"fmt"
	"math"

	"trunkline/codec/mpack"
	"trunkline/engine/connection"
	"trunkline/engine/envelope"
)

// ChangeKind is what a Change does.
type ChangeKind uint8

// The kinds of change.
const (
	// ChangeEnvelope stores Envelope under its identifier ID, over an older one.
	ChangeEnvelope ChangeKind = iota + 1
	// ChangeEnvelopeDrop removes the stored envelope ID.
	ChangeEnvelopeDrop
	// ChangeSession makes PID the session Seq, over an older one: Pipeline, Envelope, at the stage
	// To.
	ChangeSession
	// ChangeReport takes Report into session Seq of PID, moves it to the stage To over the edge
	// Edge, and ends it if Reason is set.
	ChangeReport
	// ChangeEnd ends session Seq of PID for Reason.
	ChangeEnd
	// ChangeAnswer has Waiting go on, with Interrupt in the place of theirs.
	ChangeAnswer
	// ChangeSessionDrop removes session Seq of PID, unless another has taken its place.
	ChangeSessionDrop

	numChangeKinds
)

var changeNames = [numChangeKinds]string{ChangeEnvelope: "envelope", ChangeEnvelopeDrop: "envelope_drop", ChangeSession: "session",
	ChangeReport: "report", ChangeEnd: "end", ChangeAnswer: "answer", ChangeSessionDrop: "session_drop"}

// String names the kind.
func (k ChangeKind) String() string {
	if k > 0 && k < numChangeKinds {
		return changeNames[k]
	}
	return "unknown"
}

// Change is one resolved effect on the state of an Engine; its kind determines which fields count.
// Byte slices are lent: a journal that keeps a Change encodes it before it returns.
type Change struct {
	Kind ChangeKind
	// At is what the request that made the change saw of the clocks.
	At  connection.Instant
	ID  []byte
	PID []byte
	Seq uint64
	// Pipeline is the encoded configuration, Envelope the encoded envelope.
	Pipeline, Envelope []byte
	Report             Report
	To, Edge           int // indexes of a stage and of an edge; Edge is -1 for none
	Reason             envelope.Reason
	Text               []byte
	Waiting            []SessionRef
	// Interrupt is the encoded value, a map or nil; without bytes the member goes.
	Interrupt []byte
}

// SessionRef names one session: a process may have had several.
type SessionRef struct {
	PID []byte
	Seq uint64
}

// changeVersion is the version of the encoding; another one is refused.
const changeVersion = 1

// ErrBadChange means that bytes are no change of a version and kind known here.
var ErrBadChange = errors.New("cannot parse change")

// AppendChange appends the encoding of c: a MessagePack list of the version, the kind, both clocks
// and the fields of the kind in the order of encodeFields.
func AppendChange(dst []byte, c *Change) []byte {
	counts := [numChangeKinds]int{ChangeEnvelope: 2, ChangeEnvelopeDrop: 1, ChangeSession: 5, ChangeReport: 16, ChangeEnd: 4, ChangeAnswer: 2,
		ChangeSessionDrop: 2}
	dst = mpack.AppendArray(dst, 4+counts[c.Kind])
	dst = mpack.AppendInt(mpack.AppendInt(dst, changeVersion), int64(c.Kind))
	dst = mpack.AppendInt(mpack.AppendInt(dst, c.At.Mono), c.At.Wall)
	return c.encodeFields(dst)
}

func (c *Change) encodeFields(dst []byte) []byte {
	switch c.Kind {
	case ChangeEnvelope:
		return append(mpack.AppendStr(dst, c.ID), c.Envelope...)
	case ChangeEnvelopeDrop:
		return mpack.AppendStr(dst, c.ID)
	case ChangeAnswer:
		dst = mpack.AppendArray(dst, 2*len(c.Waiting))
		for _, ref := range c.Waiting {
			dst = mpack.AppendUint(mpack.AppendStr(dst, ref.PID), ref.Seq)
		}
		if c.Interrupt == nil {
			return mpack.AppendBool(dst, false)
		}
		return append(dst, c.Interrupt...)
	}
	dst = mpack.AppendUint(mpack.AppendStr(dst, c.PID), c.Seq)
	switch c.Kind {
	case ChangeSession:
		dst = append(append(dst, c.Pipeline...), c.Envelope...)
		return mpack.AppendInt(dst, int64(c.To))
	case ChangeEnd:
		return mpack.AppendStr(mpack.AppendStr(dst, c.Reason.Wire()), c.Text)
	case ChangeReport:
		return c.encodeReport(dst)
	}
	return dst
}

func (c *Change) encodeReport(dst []byte) []byte {
	r := &c.Report
	dst = mpack.AppendBool(mpack.AppendStr(dst, r.AgentName), r.Failed)
	dst = appendRaw(mpack.AppendStr(dst, r.Error), r.Output)
	dst = mpack.AppendInt(mpack.AppendInt(dst, r.LLMCalls), r.ToolCalls)
	dst = mpack.AppendBool(mpack.AppendInt(dst, r.TokensIn), r.HasTokensIn)
	dst = mpack.AppendBool(mpack.AppendInt(dst, r.TokensOut), r.HasTokensOut)
	dst = mpack.AppendInt(mpack.AppendInt(dst, int64(c.To)), int64(c.Edge))
	return mpack.AppendStr(mpack.AppendStr(dst, c.Reason.Wire()), c.Text)
}

// appendRaw appends an encoded value, nil for none.
func appendRaw(dst, raw []byte) []byte {
	if raw == nil {
		return mpack.AppendNil(dst)
	}
	return append(dst, raw...)
}

// ParseChange reads a change from b, which is all of it. The slices of c point into b. What a
// record calls a map is sound MessagePack; whether it is an envelope or a pipeline is for Apply to
// find out.
func ParseChange(b []byte, c *Change) error {
	*c = Change{}
	t, p := mpack.OpenTuple(b)
	if p != mpack.NoProblem {
		return fmt.Errorf("%w: %s", ErrBadChange, p.Text())
	}
	d := changeReader{t}
	if v := d.int(); v != changeVersion {
		return fmt.Errorf("%w: version %d", ErrBadChange, v)
	}
	c.Kind = ChangeKind(d.int())
	c.At = connection.Instant{Mono: d.int(), Wall: d.int()}
	d.fields(c)
	if !d.Whole() {
		return fmt.Errorf("%w: %s record", ErrBadChange, c.Kind)
	}
	return nil
}

// changeReader takes the fields off a list.
type changeReader struct{ mpack.Tuple }

func (d *changeReader) int() int64    { return d.Of(mpack.Int).Int }
func (d *changeReader) seq() uint64   { return uint64(d.Int(0, math.MaxInt64)) }
func (d *changeReader) table() []byte { return d.Of(mpack.Map).Data }

func (d *changeReader) fields(c *Change) {
	switch c.Kind {
	case ChangeEnvelope:
		c.ID, c.Envelope = d.Text(), d.table()
	case ChangeEnvelopeDrop:
		c.ID = d.Text()
	case ChangeAnswer:
		d.waiting(c)
	case ChangeSession:
		c.PID, c.Seq, c.Pipeline, c.Envelope, c.To = d.Text(), d.seq(), d.table(), d.table(), int(d.int())
	case ChangeReport:
		c.PID, c.Seq = d.Text(), d.seq()
		d.report(c)
	case ChangeEnd:
		c.PID, c.Seq, c.Reason, c.Text = d.Text(), d.seq(), envelope.ParseReason(d.Text()), d.Text()
	case ChangeSessionDrop:
		c.PID, c.Seq = d.Text(), d.seq()
	default:
		d.Bad = true
	}
}

func (d *changeReader) report(c *Change) {
	r := &c.Report
	r.ProcessID = c.PID
	r.AgentName, r.Failed, r.Error, r.Output = d.Text(), d.Bool(), d.Text(), d.Optional(mpack.Map).Data
	r.LLMCalls, r.ToolCalls = d.int(), d.int()
	r.TokensIn, r.HasTokensIn, r.TokensOut, r.HasTokensOut = d.int(), d.Bool(), d.int(), d.Bool()
	c.To, c.Edge = int(d.int()), int(d.int())
	c.Reason, c.Text = envelope.ParseReason(d.Text()), d.Text()
}

func (d *changeReader) waiting(c *Change) {
	refs := mpack.Tuple{List: mpack.OpenList(d.Of(mpack.Array).Data)}
	for range (refs.Len() + 1) / 2 {
		c.Waiting = append(c.Waiting, SessionRef{refs.Text(), uint64(refs.Int(0, math.MaxInt64))})
	}
	raw := d.Raw()
	switch k := mpack.KindOf(raw); k {
	case mpack.Map, mpack.Nil:
		c.Interrupt = raw
	case mpack.Bool: // false: the member goes
	default:
		d.Bad = true
	}
	d.Bad = d.Bad || refs.Bad
}
