package workers

import (
	"cmp"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/dsstate"
	"trunkline/handlers/toolhost/tool"
)

const (
	// MaxReply is the longest reply line of a worker, in bytes without its end (toolhost §4.9, §6).
	MaxReply = 1 << 20
	// maxDepth is how deep a reply may nest, as a request line (toolhost §2.4).
	maxDepth = 32
)

var replyNames = jsonx.NewNames("status", "output_json", "error", "ds_state")

// The members of a reply by their place in replyNames.
const (
	replyStatus = iota
	replyOutput
	replyError
	replyState
	replyMembers
)

// appendRequest appends the line that a worker gets, and nothing that is not its business: no key, no token, no id of the caller's
// (toolhost §4.9). It allocates only if dst has no room.
func appendRequest(dst []byte, c *tool.Call, stateless bool) []byte {
	dst = jsonx.AppendString(append(dst, `{"aid":`...), c.AID)
	dst = jsonx.AppendString(append(dst, `,"input_json":`...), c.Input)
	dst = append(dst, `,"ds_state":`...)
	if stateless || c.State == nil {
		dst = append(dst, `{"slots":{}}`...)
	} else {
		dst = c.State.AppendSnapshot(dst)
	}
	return append(dst, '}', '\n')
}

// parseReply reads a worker's reply and stores what it says about the state into c. ok is false for what is no reply
// (parse_error); c has not changed then. Nothing of line is kept. It allocates the output, an error's text, and changed slots.
func parseReply(line []byte, c *tool.Call, stateless bool) (r tool.Result, ok bool) {
	var m [replyMembers]jsonx.Member
	if s, _ := replyNames.Scan(line, maxDepth, m[:]); s != jsonx.ScanOK {
		return tool.Result{}, false
	}
	for i := range m[:replyState] {
		if m[i].Kind == jsonx.Null {
			m[i] = jsonx.Member{}
		}
	}
	output, failure := &m[replyOutput], &m[replyError]
	if m[replyStatus].Kind == jsonx.Absent && failure.Kind == jsonx.Absent || !textOrAbsent(output) || !textOrAbsent(failure) {
		return tool.Result{}, false
	}
	if !applyState(&m[replyState], c, stateless) {
		return tool.Result{}, false
	}
	st := status(&m[replyStatus])
	if st == tool.OK {
		if len(output.Raw) > 0 {
			r.Output = jsonx.AppendUnescaped(make([]byte, 0, len(output.Raw)), output.Raw)
		}
		return r, true
	}
	// Never empty (toolhost §3.2).
	r.Failure = &tool.Failure{Status: st, Error: cmp.Or(string(jsonx.AppendUnescaped(nil, failure.Raw)), st.String())}
	return r, true
}

func textOrAbsent(m *jsonx.Member) bool { return m.Kind == jsonx.Absent || m.Kind == jsonx.String }

// status reads the status as toolhost §3.5 does: what is unknown is a failure.
func status(m *jsonx.Member) tool.Status {
	if m.Kind != jsonx.String {
		return tool.ToolError
	}
	if m.Escaped {
		var room [64]byte
		return tool.ParseStatus(jsonx.AppendUnescaped(room[:0], m.Raw))
	}
	return tool.ParseStatus(m.Raw)
}

// applyState stores what a reply says about the state. A worker that was not shown the state cannot mean to remove anything by not
// naming it.
func applyState(m *jsonx.Member, c *tool.Call, stateless bool) bool {
	switch m.Kind {
	case jsonx.Absent, jsonx.Null:
		return true
	case jsonx.ObjectStart:
	default:
		return false
	}
	var none dsstate.State
	state := c.State
	if state == nil {
		state = &none
	}
	var next dsstate.State
	var why string
	if stateless {
		next, why = state.ApplySetting(m.Raw)
	} else {
		next, why = state.Apply(m.Raw)
	}
	if why != "" {
		return false
	}
	*state = next
	return true
}
