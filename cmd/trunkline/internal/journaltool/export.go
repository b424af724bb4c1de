package journaltool

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/engine/envelope"
	"trunkline/engine/idem"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
	"trunkline/engine/threadstore"
)

// Range is which indexes to export, both included; To 0 means to the end.
type Range struct {
	From, To journal.Index
}

// Exported is what an export has written.
type Exported struct {
	Lines      uint64
	First      journal.Index // 0 if nothing was in the range
	Last       journal.Index
	State      uint64 // lines without an index, before those
	Unreadable uint64 // lines with a record that is no change known here
	Damages    int    // places of which there is no line
	Damage     error  // the first of them
}

// errPast ends an export at the end of its range.
var errPast = errors.New("past the range")

// Export writes one JSON object per index and line to w, in order: index, time, epoch, kind, the
// fields of the change (or error where it is none), and base64, which is the record as it is
// stored. A claim has a line too, so that a missing index is a missing record.
//
// Where the range is everything and the log does not begin at its first index, what older records
// left comes first. Where nothing is damaged, a last line counts those before it: without it an
// export that was cut between two lines is like one of a shorter log.
func Export(ctx context.Context, dir string, in Range, w io.Writer, m Meter) (done Exported, err error) {
	j, err := open(dir)
	if err != nil {
		return done, err
	}
	x := export{out: bufio.NewWriterSize(w, 64<<10), in: in, m: m}
	if in.From <= 1 && in.To == 0 {
		if err := x.state(ctx, j); err != nil {
			return x.done, errors.Join(err, j.Close())
		}
	}
	err = j.in.Blocks(max(in.From, 1), func(b *journal.BlockView) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return x.block(b, j.last)
	}, x.lost)
	if damage := j.view.Damage(); damage != nil && err == nil && (in.To == 0 || in.To > x.done.Last) {
		damage.Index = max(damage.Index, j.last+1)
		x.note(damage)
	}
	if err == errPast {
		err = nil
	}
	if err == nil && x.done.Damages == 0 && x.done.Lines > 0 {
		err = x.write(appendEnd(jsonx.Build(x.line[:0]), x.done.State+x.done.Lines))
	}
	if also := x.out.Flush(); err == nil && also != nil {
		err = fmt.Errorf("cannot write output: %w", also)
	}
	return x.done, errors.Join(err, j.Close())
}

type export struct {
	out    *bufio.Writer
	in     Range
	m      Meter
	base   journal.Index
	record record
	line   []byte
	done   Exported
}

// keepLine is how much of a buffer for lines is kept: more is for the rare record that is larger.
const keepLine = 1 << 20

func (x *export) block(b *journal.BlockView, last journal.Index) error {
	if x.in.To != 0 && b.First > x.in.To {
		return errPast
	}
	if x.base == 0 {
		x.base = max(b.First, x.in.From)
		if x.in.To != 0 {
			last = min(last, x.in.To)
		}
		x.m.Begin("export", "records", max(last, x.base)-x.base+1)
	}
	defer func() { x.m.Set(x.done.Last - min(x.base, x.done.Last) + 1) }()
	if b.Claim {
		return x.show(b, b.First, nil)
	}
	return b.Records(max(x.in.From, 1)-1, func(i journal.Index, rec []byte) error { return x.show(b, i, rec) })
}

func (x *export) show(b *journal.BlockView, i journal.Index, rec []byte) error {
	if i < x.in.From {
		return nil
	}
	if x.in.To != 0 && i > x.in.To {
		return errPast
	}
	e := journal.Entry{Index: i, Time: b.Time, Epoch: b.Epoch, Claim: b.Claim, Record: rec}
	o, known := appendEntry(jsonx.Build(x.line[:0]), &x.record, &e)
	if !known {
		x.done.Unreadable++
	}
	if err := x.write(o); err != nil {
		return err
	}
	if x.done.Lines++; x.done.First == 0 {
		x.done.First = i
	}
	x.done.Last = i
	return nil
}

func (x *export) lost(d journal.Damage) error {
	if x.in.To == 0 || d.Index <= x.in.To {
		x.note(&d.DamageError)
	}
	return nil
}

func (x *export) note(err error) {
	if x.done.Damages++; x.done.Damage == nil {
		x.done.Damage = err
	}
}

// write writes a line.
func (x *export) write(o jsonx.Builder) error {
	x.line = append(o.End(), '\n')
	if _, err := x.out.Write(x.line); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	if cap(x.line) > keepLine {
		x.line = nil
	}
	return nil
}

// claimKind is the kind of an index that holds no record.
const claimKind = "claim"

// appendEntry appends the fields of an index; known is false where its record is no change that is
// known here.
func appendEntry(o jsonx.Builder, r *record, e *journal.Entry) (_ jsonx.Builder, known bool) {
	o = appendUint(o, "index", e.Index)
	o = appendUint(appendTime(o, "time", moment(e.Time)), "epoch", e.Epoch)
	if e.Claim {
		return o.Text("kind", claimKind), true
	}
	o, known = appendChange(o, r, e.Record)
	return appendBase64(o, "base64", e.Record), known
}

// appendChange appends the kind and the fields of a record; ok is false where it is none that is
// known here.
func appendChange(b jsonx.Builder, r *record, rec []byte) (_ jsonx.Builder, ok bool) {
	if err := parseRecord(rec, r); err != nil {
		return b.Text("kind", unreadable).Text("error", err.Error()), false
	}
	b = b.Text("kind", r.Kind())
	switch {
	case r.OfKernel:
		return appendKernel(b, &r.Kernel), true
	case r.OfKeys:
		return appendKeys(b, &r.Keys), true
	case r.OfThreads:
		return r.Threads.Append(b), true
	}
	return appendOrchestration(b, &r.Orchestration), true
}

func appendKeys(b jsonx.Builder, c *idem.Change) jsonx.Builder {
	b = b.Text("key", hex.EncodeToString(c.Key.Hash[:])).Int("at_mono_ns", c.At)
	if c.Kind == idem.ChangeStarted || c.Kind == idem.ChangeFinished {
		b = appendUint(b, "attempt", uint64(c.Attempt))
	}
	if c.Kind == idem.ChangeFinished {
		b = appendUint(b, "status", uint64(c.Result.Status)).Text("error", c.Result.Error)
		b = appendSome(b, "output", c.Result.Output)
	}
	return b
}

func appendKernel(b jsonx.Builder, c *kernel.Change) jsonx.Builder {
	b = appendSome(b, "pid", c.PID)
	switch c.Kind {
	case kernel.ChangeCreate:
		b = appendSome(b, "request_id", c.RequestID)
		b = appendSome(b, "user_id", c.UserID)
		b = appendSome(b, "session_id", c.SessionID)
		b = b.Text("state", c.State.String()).Text("priority", c.Priority.String())
		b = appendUint(appendUint(b, "seq", c.Seq), "ready_seq", c.ReadySeq)
		b = appendQuota(b, &c.Quota)
	case kernel.ChangeTransition:
		b = b.Text("state", c.State.String()).Int("at_mono_ns", c.At)
		b = appendSome(appendUint(b, "ready_seq", c.ReadySeq), "reason", c.Reason)
	case kernel.ChangeLease:
		if c.Expiry == math.MaxInt64 { // it does not end
			return b.Raw("expiry_mono_ns", []byte("null"))
		}
		b = b.Int("expiry_mono_ns", c.Expiry)
	case kernel.ChangeUsage:
		in := jsonx.Build(b.Name("usage"))
		for i, v := range c.Usage {
			in = in.Int(kernel.UsageField(i).String(), v)
		}
		b = in.End()
	case kernel.ChangeQuotaDefaults:
		b = appendQuota(b, &c.Quota)
	case kernel.ChangeRateStamp:
		b = appendSome(b, "user_id", c.UserID).Int("at_mono_ns", c.At)
	case kernel.ChangeRateDrop:
		b = appendSome(b, "user_id", c.UserID)
	}
	return b
}

func appendQuota(b jsonx.Builder, q *kernel.Quota) jsonx.Builder {
	in := jsonx.Build(b.Name("quota"))
	for i, v := range q {
		in = in.Int(kernel.QuotaField(i).String(), int64(v))
	}
	return in.End()
}

func appendOrchestration(b jsonx.Builder, c *orchestration.Change) jsonx.Builder {
	b = appendTime(b, "at", time.UnixMilli(c.At.Wall).UTC()).Int("at_mono_ns", c.At.Mono)
	switch c.Kind {
	case orchestration.ChangeEnvelope, orchestration.ChangeEnvelopeDrop:
		return appendValue(appendSome(b, "envelope_id", c.ID), "envelope", c.Envelope)
	case orchestration.ChangeAnswer:
		b = append(b.Name("waiting"), '[')
		for _, ref := range c.Waiting {
			in := appendSome(jsonx.Build(jsonx.AppendComma(b)), "process_id", ref.PID)
			b = appendUint(in, "session", ref.Seq).End()
		}
		return appendValue(append(b, ']'), "interrupt", c.Interrupt)
	}
	b = appendUint(appendSome(b, "process_id", c.PID), "session", c.Seq)
	switch c.Kind {
	case orchestration.ChangeSession:
		b = b.Int("to_stage", int64(c.To))
		b = appendValue(appendValue(b, "pipeline", c.Pipeline), "envelope", c.Envelope)
	case orchestration.ChangeReport:
		b = appendEnding(appendReport(b, &c.Report).Int("to_stage", int64(c.To)).Int("edge", int64(c.Edge)), c)
	case orchestration.ChangeEnd:
		b = appendEnding(b, c)
	}
	return b
}

func appendReport(b jsonx.Builder, r *orchestration.Report) jsonx.Builder {
	b = appendSome(b, "agent_name", r.AgentName).Bool("success", !r.Failed)
	b = appendValue(appendSome(b, "error", r.Error), "output", r.Output)
	b = b.Int("llm_calls", r.LLMCalls).Int("tool_calls", r.ToolCalls)
	if r.HasTokensIn {
		b = b.Int("tokens_in", r.TokensIn)
	}
	if r.HasTokensOut {
		b = b.Int("tokens_out", r.TokensOut)
	}
	return b
}

func appendEnding(b jsonx.Builder, c *orchestration.Change) jsonx.Builder {
	if c.Reason != envelope.NoReason {
		b = b.Text("terminal_reason", c.Reason.Wire())
	}
	return appendSome(b, "text", c.Text)
}

// record is a record of the journal, decoded: Kernel counts if OfKernel is set, Keys if OfKeys is,
// Threads if OfThreads is, else Orchestration. Its slices point into what was parsed.
type record struct {
	OfKernel      bool
	OfKeys        bool // Keys counts
	OfThreads     bool // Threads counts
	Threads       threadstore.Record
	Keys          idem.Change
	Kernel        kernel.Change
	Orchestration orchestration.Change
}

// parseRecord reads a record, which is all of rec. It checks version, kind and parts; only a replay
// shows whether the change fits the state. An error wraps the ErrBadChange of a machine.
func parseRecord(rec []byte, r *record) error {
	r.OfKernel, r.OfKeys, r.OfThreads = false, false, false
	if len(rec) == 0 {
		return fmt.Errorf("%w: it is empty", kernel.ErrBadChange)
	}
	switch tag, body := rec[0], rec[1:]; tag {
	case kernel.Tag:
		c, rest, err := kernel.ParseChange(body)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%w: %s", kernel.ErrBadChange, mpack.TrailingBytes.Text())
		}
		if err == kernel.ErrShortChange {
			err = fmt.Errorf("%w: it is cut off", kernel.ErrBadChange)
		}
		r.OfKernel, r.Kernel = true, c
		return err
	case orchestration.Tag:
		return orchestration.ParseChange(body, &r.Orchestration)
	case idem.Tag, idem.RequestTag:
		r.OfKeys = true
		return idem.ParseChange(body, &r.Keys)
	case threadstore.Tag:
		r.OfThreads = true
		var err error
		r.Threads, err = threadstore.ParseRecord(body)
		return err
	}
	return fmt.Errorf("%w: tag %q", kernel.ErrBadChange, rec[0])
}

// Kind names what the record does, with whose change it is in front: kernel.create.
func (r *record) Kind() string {
	switch {
	case r.OfKernel:
		return "kernel." + r.Kernel.Kind.String()
	case r.OfKeys:
		return "idempotency." + r.Keys.Kind.String()
	case r.OfThreads:
		return "threads." + r.Threads.Kind()
	}
	return "orchestration." + r.Orchestration.Kind.String()
}

// machineTags are the tags of the machines of a server's store.
var machineTags = string([]byte{kernel.Tag, orchestration.Tag, idem.Tag, idem.RequestTag, threadstore.Tag})

func appendUint(b jsonx.Builder, name string, v uint64) jsonx.Builder {
	return strconv.AppendUint(b.Name(name), v, 10)
}

// appendSome appends text that is left out where there is none.
func appendSome(b jsonx.Builder, name string, v []byte) jsonx.Builder {
	if len(v) == 0 {
		return b
	}
	return b.Bytes(name, v)
}

func appendTime(b jsonx.Builder, name string, t time.Time) jsonx.Builder {
	return append(t.AppendFormat(append(b.Name(name), '"'), time.RFC3339Nano), '"')
}

func appendBase64(b jsonx.Builder, name string, v []byte) jsonx.Builder {
	return append(base64.StdEncoding.AppendEncode(append(b.Name(name), '"'), v), '"')
}

// appendValue appends a MessagePack value as JSON; nothing where there is none, and base64 under
// another name where it has no form in JSON.
func appendValue(b jsonx.Builder, name string, raw []byte) jsonx.Builder {
	if raw == nil {
		return b
	}
	if text, err := transcode.AppendJSON(b.Name(name), raw); err == nil {
		return text
	}
	return appendBase64(b, name+"_base64", raw)
}
