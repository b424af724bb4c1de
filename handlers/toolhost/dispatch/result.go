package dispatch

import (
	"bytes"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// ToolResult is the answer of a tool whose status is not OK (toolhost §3.5).
type ToolResult struct {
	// AID is the tool that was called.
	AID string
	// Status is never tool.OK.
	Status tool.Status
	// Output is output_json: the text of a JSON object, "{}" where there is none.
	Output string
	// Text is the reply's error member.
	Text string
	// Dispatch says why a worker of the server could not be run to its end; nil if it answered.
	Dispatch *tool.DispatchError
}

// Error returns the sentence for a log. It allocates.
func (r *ToolResult) Error() string {
	return "cannot use the result of " + r.AID + ": " + r.Status.String() + ": " + r.Text
}

// maxDepth is how deep a reply may nest (toolhost §2.4).
const maxDepth = 32

// The members of replies, by their place in replyNames.
const (
	memberStatus = iota
	memberOutput
	memberError
	memberHit
	memberState
	memberDispatch
	members
)

var (
	replyNames    = jsonx.NewNames("status", "output_json", "error", "idempotent_hit", "ds_state", "dispatch_error")
	dispatchNames = jsonx.NewNames("aid", "type", "detail")
)

type replyMembers [members]jsonx.Member

// judge turns the stdout of a process that exited with 0 into what Run returns.
func judge(aid string, stdout []byte) (output string, err error) {
	var m replyMembers
	text := bytes.TrimSpace(stdout)
	if !m.read(text) || !m.wellTyped() {
		detail := "output is not a reply: " + tool.Detail(string(text[:min(len(text), 256)]))
		if len(text) == 0 {
			detail = "output is empty"
		}
		return "", broken(aid, tool.ParseError, detail)
	}
	r := m.result(aid)
	if r.Status == tool.OK {
		return r.Output, nil
	}
	return "", r
}

// read finds the members of a reply; false says that it is no JSON object.
func (m *replyMembers) read(line []byte) bool {
	r, _ := replyNames.Scan(line, maxDepth, m[:])
	return r == jsonx.ScanOK
}

// wellTyped reports whether the members can be used: a reply has a status or an error, all of them texts (toolhost §3.5).
func (m *replyMembers) wellTyped() bool {
	for _, i := range [...]int{memberStatus, memberOutput, memberError} {
		if k := m[i].Kind; k != jsonx.Absent && k != jsonx.String {
			return false
		}
	}
	return m[memberStatus].Kind == jsonx.String || m[memberError].Kind == jsonx.String
}

// result reads the members. An unknown status, and none, is TOOL_ERROR (toolhost §3.5).
func (m *replyMembers) result(aid string) *ToolResult {
	r := &ToolResult{AID: aid, Status: tool.ParseStatus([]byte(m.text(memberStatus))), Output: m.text(memberOutput), Text: m.text(memberError)}
	if r.Output == "" {
		r.Output = "{}"
	}
	if m[memberDispatch].Kind == jsonx.ObjectStart {
		r.Dispatch = dispatchError(m[memberDispatch].Raw)
	}
	return r
}

func dispatchError(raw []byte) *tool.DispatchError {
	var m [3]jsonx.Member
	if r, _ := dispatchNames.Scan(raw, maxDepth, m[:]); r != jsonx.ScanOK {
		return nil
	}
	return &tool.DispatchError{AID: text(m[0]), Type: tool.DispatchType(text(m[1])), Detail: text(m[2])}
}

func (m *replyMembers) text(i int) string { return text(m[i]) }

func text(m jsonx.Member) string {
	if m.Kind != jsonx.String {
		return ""
	}
	return string(jsonx.AppendUnescaped(nil, m.Raw))
}
