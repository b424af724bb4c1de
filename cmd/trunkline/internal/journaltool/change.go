package journaltool

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/engine/envelope"
	"trunkline/engine/idem"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
)

// change appends the kind and the fields of a record; ok is false where it is none that is known
// here.
func (o *object) change(r *record, rec []byte) (ok bool) {
	if err := parseRecord(rec, r); err != nil {
		o.text("kind", unreadable)
		o.text("error", err.Error())
		o.base64("base64", rec)
		return false
	}
	o.text("kind", r.Kind())
	switch {
	case r.OfKernel:
		o.kernel(&r.Kernel)
	case r.OfKeys:
		o.keys(&r.Keys)
	default:
		o.orchestration(&r.Orchestration)
	}
	return true
}

func (o *object) keys(c *idem.Change) {
	o.text("key", hex.EncodeToString(c.Key.Hash[:]))
	o.int("at_mono_ns", c.At)
	if c.Kind == idem.ChangeStarted || c.Kind == idem.ChangeFinished {
		o.uint("attempt", uint64(c.Attempt))
	}
	if c.Kind == idem.ChangeFinished {
		o.uint("status", uint64(c.Result.Status))
		o.text("error", c.Result.Error)
		o.bytes("output", c.Result.Output)
	}
}

func (o *object) kernel(c *kernel.Change) {
	o.bytes("pid", c.PID)
	switch c.Kind {
	case kernel.ChangeCreate:
		o.bytes("request_id", c.RequestID)
		o.bytes("user_id", c.UserID)
		o.bytes("session_id", c.SessionID)
		o.text("state", c.State.String())
		o.text("priority", c.Priority.String())
		o.uint("seq", c.Seq)
		o.uint("ready_seq", c.ReadySeq)
		o.quota(&c.Quota)
	case kernel.ChangeTransition:
		o.text("state", c.State.String())
		o.int("at_mono_ns", c.At)
		o.uint("ready_seq", c.ReadySeq)
		o.bytes("reason", c.Reason)
	case kernel.ChangeLease:
		o.expiry(c.Expiry)
	case kernel.ChangeUsage:
		o.usage(&c.Usage)
	case kernel.ChangeQuotaDefaults:
		o.quota(&c.Quota)
	case kernel.ChangeRateStamp:
		o.bytes("user_id", c.UserID)
		o.int("at_mono_ns", c.At)
	case kernel.ChangeRateDrop:
		o.bytes("user_id", c.UserID)
	}
}

func (o *object) expiry(at int64) {
	if at == math.MaxInt64 { // it does not end
		o.null("expiry_mono_ns")
		return
	}
	o.int("expiry_mono_ns", at)
}

func (o *object) quota(q *kernel.Quota) {
	o.key("quota")
	in := openObject(o.b)
	for i, v := range q {
		in.int(kernel.QuotaField(i).String(), int64(v))
	}
	o.b = in.close()
}

func (o *object) usage(u *kernel.Usage) {
	o.key("usage")
	in := openObject(o.b)
	for i, v := range u {
		in.int(kernel.UsageField(i).String(), v)
	}
	o.b = in.close()
}

func (o *object) orchestration(c *orchestration.Change) {
	o.time("at", time.UnixMilli(c.At.Wall).UTC())
	o.int("at_mono_ns", c.At.Mono)
	switch c.Kind {
	case orchestration.ChangeEnvelope, orchestration.ChangeEnvelopeDrop:
		o.bytes("envelope_id", c.ID)
		o.value("envelope", c.Envelope)
		return
	case orchestration.ChangeAnswer:
		o.waiting(c.Waiting)
		o.value("interrupt", c.Interrupt)
		return
	}
	o.bytes("process_id", c.PID)
	o.uint("session", c.Seq)
	switch c.Kind {
	case orchestration.ChangeSession:
		o.int("to_stage", int64(c.To))
		o.value("pipeline", c.Pipeline)
		o.value("envelope", c.Envelope)
	case orchestration.ChangeReport:
		o.report(c)
	case orchestration.ChangeEnd:
		o.ending(c)
	}
}

func (o *object) report(c *orchestration.Change) {
	r := &c.Report
	o.bytes("agent_name", r.AgentName)
	o.bool("success", !r.Failed)
	o.bytes("error", r.Error)
	o.value("output", r.Output)
	o.int("llm_calls", r.LLMCalls)
	o.int("tool_calls", r.ToolCalls)
	if r.HasTokensIn {
		o.int("tokens_in", r.TokensIn)
	}
	if r.HasTokensOut {
		o.int("tokens_out", r.TokensOut)
	}
	o.int("to_stage", int64(c.To))
	o.int("edge", int64(c.Edge))
	o.ending(c)
}

func (o *object) ending(c *orchestration.Change) {
	if c.Reason != envelope.NoReason {
		o.text("terminal_reason", c.Reason.Wire())
	}
	o.bytes("text", c.Text)
}

func (o *object) waiting(refs []orchestration.SessionRef) {
	o.key("waiting")
	o.b = append(o.b, '[')
	for i, ref := range refs {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		in := openObject(o.b)
		in.bytes("process_id", ref.PID)
		in.uint("session", ref.Seq)
		o.b = in.close()
	}
	o.b = append(o.b, ']')
}

// record is a record of the journal, decoded: Kernel counts if OfKernel is set, Keys if OfKeys is,
// else Orchestration. Its slices point into what was parsed.
type record struct {
	OfKernel      bool
	OfKeys        bool // Keys counts
	Keys          idem.Change
	Kernel        kernel.Change
	Orchestration orchestration.Change
}

// parseRecord reads a record, which is all of rec. What it accepts is a change of a known version and kind whose parts are sound;
// whether it fits the state it meets is only known by a replay. An error wraps kernel.ErrBadChange or orchestration.ErrBadChange.
func parseRecord(rec []byte, r *record) error {
	r.OfKernel, r.OfKeys = false, false
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
	case idem.Tag:
		r.OfKeys = true
		return idem.ParseChange(body, &r.Keys)
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
	}
	return "orchestration." + r.Orchestration.Kind.String()
}

// machineTags are the tags of the machines of a server's store.
var machineTags = string([]byte{kernel.Tag, orchestration.Tag, idem.Tag})

// object appends the members of a JSON object.
type object struct{ b []byte }

func openObject(dst []byte) object { return object{append(dst, '{')} }

func (o *object) key(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(jsonx.AppendString(o.b, name), ':')
}

func (o *object) close() []byte { return append(o.b, '}') }

func (o *object) uint(name string, v uint64) {
	o.key(name)
	o.b = strconv.AppendUint(o.b, v, 10)
}

func (o *object) int(name string, v int64) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) bool(name string, v bool) {
	o.key(name)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) null(name string) {
	o.key(name)
	o.b = append(o.b, "null"...)
}

func (o *object) text(name, v string) {
	o.key(name)
	o.b = jsonx.AppendString(o.b, v)
}

// bytes is text that is left out where there is none.
func (o *object) bytes(name string, v []byte) {
	if len(v) == 0 {
		return
	}
	o.key(name)
	o.b = jsonx.AppendString(o.b, v)
}

func (o *object) time(name string, t time.Time) {
	o.key(name)
	o.b = append(t.AppendFormat(append(o.b, '"'), time.RFC3339Nano), '"')
}

func (o *object) base64(name string, v []byte) {
	o.key(name)
	o.b = append(base64.StdEncoding.AppendEncode(append(o.b, '"'), v), '"')
}

// value is a MessagePack value as JSON; nothing where there is none, and base64 under another name
// where it has no form in JSON.
func (o *object) value(name string, raw []byte) {
	if raw == nil {
		return
	}
	start := len(o.b)
	o.key(name)
	b, err := transcode.AppendJSON(o.b, raw)
	if err == nil {
		o.b = b
		return
	}
	o.b = o.b[:start]
	o.base64(name+"_base64", raw)
}
