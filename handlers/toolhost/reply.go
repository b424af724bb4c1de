package toolhost

import (
	"cmp"
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/engine/connection"
	"trunkline/engine/idem"
	"trunkline/engine/obs"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

const (
	errTooLarge = "output exceeds 1MB limit"
	emptyObject = "{}"
)

// appendFault appends a protocol error (toolhost §3.3) without own members. It does not allocate.
func appendFault(dst []byte, text string, id requestID) []byte {
	return id.end(jsonx.AppendString(append(dst, `{"ok":false,"error":`...), text))
}

// appendFaultAbout is appendFault for a text that ends in a part of the request.
func appendFaultAbout(dst []byte, text string, about []byte, id requestID) []byte {
	dst = append(append(dst, `{"ok":false,"error":"`...), text...)
	start := len(dst)
	dst = jsonx.AppendString(dst, about)
	return id.end(append(dst[:start], dst[start+1:]...)) // without the quote in between
}

// requestID is what the request gave to be echoed: the raw text of a member.
type requestID struct {
	raw    []byte
	quoted bool
}

// clone returns an id that shares no memory with the line; room is used if it is large enough.
func (id requestID) clone(room []byte) requestID {
	if id.raw != nil {
		id.raw = append(room[:0], id.raw...)
	}
	return id
}

func (id requestID) append(dst []byte) []byte {
	if !id.quoted {
		return append(dst, id.raw...)
	}
	return append(append(append(dst, '"'), id.raw...), '"')
}

func (id requestID) end(dst []byte) []byte {
	if id.raw != nil || id.quoted {
		dst = id.append(append(dst, `,"request_id":`...))
	}
	return append(dst, "}\n"...)
}

// outcome is what a reply at the level of tools contains (toolhost §3.2).
type outcome struct {
	status   tool.Status
	output   []byte // JSON text; empty for {}
	err      string
	dispatch []byte // JSON text; empty for none
	hit      bool
	after    *sessionstate.State // nil: the reply has an empty delta
	before   *sessionstate.State // of the delta; nil: the reply has the snapshot of after
	silent   bool                // the reply has no ds_state at all
}

// The members of a reply that went well between its error and its state.
const (
	noMember  = ""
	hitMember = `,"idempotent_hit":true`
)

const (
	okBegin = `{"ok":true,"status":"OK","output_json":`
	okState = `,"ds_state":`
	okEmpty = okBegin + `"{}","error":""` + okState + sessionstate.EmptyDelta + "}\n"
)

// appendOK appends the reply of a call that went well and left the state as it was; more is one of
// the constants above.
func appendOK(dst, output []byte, more string, id requestID) []byte {
	if len(output) == 0 && more == noMember && id.raw == nil && !id.quoted { // the commonest reply: one copy
		return append(dst, okEmpty...)
	}
	return id.end(append(appendOutput(dst, output, more), sessionstate.EmptyDelta...))
}

// appendOutput appends the reply of a call that went well up to the value of its state.
func appendOutput(dst, output []byte, more string) []byte {
	if len(output) == 0 {
		dst = append(dst, okBegin+`"{}","error":""`...)
	} else {
		dst = append(jsonx.AppendString(append(dst, okBegin...), output), `,"error":""`...)
	}
	return append(append(dst, more...), okState...)
}

// appendReply appends a tool reply. It allocates only if dst has no room.
func (o *outcome) appendReply(dst []byte, id requestID) []byte {
	dst = strconv.AppendBool(append(dst, `{"ok":`...), o.status == tool.OK)
	dst = append(append(append(dst, `,"status":"`...), o.status.String()...), `","output_json":`...)
	if len(o.output) == 0 {
		dst = append(dst, `"{}"`...)
	} else {
		dst = jsonx.AppendString(dst, o.output)
	}
	dst = jsonx.AppendString(append(dst, `,"error":`...), o.err)
	if o.hit {
		dst = append(dst, `,"idempotent_hit":true`...)
	}
	switch {
	case o.silent:
	case o.after == nil:
		dst = append(dst, `,"ds_state":`+sessionstate.EmptyDelta...)
	case o.before == nil:
		dst = o.after.AppendSnapshot(append(dst, `,"ds_state":`...))
	default:
		dst = sessionstate.AppendDelta(append(dst, `,"ds_state":`...), o.before, o.after)
	}
	if len(o.dispatch) > 0 {
		dst = append(append(dst, `,"dispatch_error":`...), o.dispatch...)
	}
	return id.end(dst)
}

// appendWithin is appendReply under the limit of a line (toolhost §3.4): a longer reply is
// replaced, and o with it. single: the caller takes its state from the reply, and must keep it.
func (o *outcome) appendWithin(dst []byte, id requestID, single bool) []byte {
	start := len(dst)
	dst = o.appendReply(dst, id)
	if len(dst)-start <= maxReply && (o.after == nil || o.after.Bytes() <= sessionstate.MaxBytes) {
		return dst
	}
	*o = outcome{status: tool.ToolError, err: errTooLarge, hit: o.hit, silent: single}
	return o.appendReply(dst[:start], id)
}

// outcomeOf returns the content of a tool's result, made to obey the rules of toolhost §3.2: an
// error is empty if and only if it went well, and a tool that failed has no output.
func outcomeOf(r tool.Result) outcome {
	f := r.Failure
	if f == nil {
		return outcome{status: tool.OK, output: r.Output}
	}
	o := outcome{status: r.Status()}
	o.err = cmp.Or(f.Error, o.status.String())
	if f.Dispatch != nil {
		o.dispatch = f.Dispatch.AppendJSON(nil)
	}
	return o
}

func (o *outcome) stored(c *call) idem.Stored {
	return idem.Stored{Status: uint8(o.status), Output: o.output, Error: o.err, Dispatch: o.dispatch, Token: c.token, HasToken: c.holds}
}

func hitOf(r *idem.Stored) outcome {
	return outcome{status: tool.Status(r.Status), output: r.Output, err: r.Error, dispatch: r.Dispatch, hit: true}
}

// The rows of Server.steps.
const (
	stepQueueWait = iota
	stepToolRun
)

// meters makes those of the requests, by Entry.index, operation.row and one row for what is none,
// and those of what is done for them.
func (s *Server) meters(rec *obs.Recorder) {
	tools := s.cfg.Registry.sorted
	names := make([]string, len(tools)+len(operations)+1)
	for i, e := range tools {
		names[i] = e.AID
	}
	for name, op := range operations {
		names[len(tools)+op.row] = name
	}
	names[len(names)-1] = obs.InvalidMethod
	s.invalid = len(names) - 1
	s.meter = rec.Meter("toolhost", names)
	s.steps = rec.Meter(obs.StepProtocol, []string{stepQueueWait: "tool_queue_wait", stepToolRun: "tool_run"})
}

// okAt is where a reply shows whether it went well: the first letter of true or false.
const okAt = len(`{"ok":`)

// failed returns how many of one reply are no success.
func failed(reply []byte) int64 {
	if len(reply) > okAt && reply[okAt] == 't' {
		return 0
	}
	return 1
}

// left takes the time of the replies that have left.
func (s *session) left() {
	if !s.answered.Empty() {
		s.answered.Record(s.srv.meter, connection.Mono(), s.port)
	}
}

// lose takes the time of a call whose reply has no connection any more.
func (s *session) lose(c *call) { s.srv.meter.Record(c.row, connection.Mono()-c.came, 1, 1, s.port) }

// Report implements connection.Reporter.
func (s *session) Report() (inFlight, streams int64) {
	if s.awaits != nothing {
		inFlight = 1
	}
	return inFlight, 0
}
