// Package workers runs the tools that are not built in: programs that speak newline-delimited JSON
// over their standard streams, and WebAssembly modules (toolhost §4.9).
//
//	Process   a program: a pool of workers that serve many calls, or one process for each call
//	Module    a WASI command module: children of this binary, with a fresh instance for each call
//	Spawner   the thread that processes are started from
//	Wrapper   a command of the operator's that programs are started through
//
// A worker is a state machine:
//
//	starting ──► idle ──► busy ──► idle
//	                │       ├──► dead   killed: deadline, a bad reply, unsolicited output
//	                │       └──► dead   it exited, or has served max_requests
//	                └──► dead           idle for too long, unsolicited output, Close
//
// One request goes to a worker at a time, with a full snapshot of the caller's state, so that what
// a worker remembers of one caller never answers another. A line is an answer only if the worker
// wrote it, and nothing else, after it took the request, which the kernel shows on Linux. Any other
// worker is killed with its process group. A stray line of a worker that reads ahead cannot be
// detected: a pause now and then keeps it from answering every later call with the one before.
//
// A place in the pool is free when its process has ended, or after a while if the kernel does not
// end it, which holds for at most Max processes.
//
// A worker belongs to the pool while it is idle and to the caller of Run while it is busy. Two
// goroutines live with each process: one reads its stderr, one waits for its end and reaps it,
// under the lock that signals are sent under, so that no signal hits a process that reused its
// number.
//
// On Linux workerexec sets the limits of a process and no_new_privs before its program begins. A
// limit of processes is none of those: they are counted now and then, and a worker with too many is
// ended.
//
// A module cannot be interrupted everywhere, so it has a process to be killed with. Its compiled
// code is kept, as long as the tool is open, in a directory where only this user may write.
//
// What a worker started ends with its group. If SIGKILL ends the server, the kernel ends the
// workers, but what they started outlives both.
//
// Out of scope: finding processes that left their group and session, confinement
// beyond limits and a clean environment, and files, network or environment for modules.
package workers

import (
	"bytes"
	"cmp"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

const (
	// maxReply is the longest reply line of a worker, in bytes without its end (toolhost §4.9, §6).
	maxReply = 1 << 20
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

// appendRequest appends the line that a worker gets, and nothing that is not its business: no key,
// no token, no id of the caller's (toolhost §4.9). It allocates only if dst has no room.
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

// parseReply reads a worker's reply and stores its state into c. bad is why it is no reply
// (parse_error), or ""; c has not changed otherwise. It keeps nothing of line.
func parseReply(line []byte, c *tool.Call, stateless bool) (r tool.Result, bad string) {
	var m [replyMembers]jsonx.Member
	line = jsonx.TrimBOM(line)
	if s, which := replyNames.Scan(line, maxDepth, m[:]); s == jsonx.ScanDuplicate {
		return tool.Result{}, "duplicate key: " + replyNames.Name(which)
	} else if s != jsonx.ScanOK {
		return tool.Result{}, notObject(line)
	}
	for i := range m[:replyState] {
		if m[i].Kind == jsonx.Null {
			m[i] = jsonx.Member{}
		}
	}
	output, failure := &m[replyOutput], &m[replyError]
	switch {
	case m[replyStatus].Kind == jsonx.Absent && failure.Kind == jsonx.Absent:
		return tool.Result{}, "neither status nor error in it"
	case !textOrAbsent(output):
		return tool.Result{}, "output_json: must be a string"
	case !textOrAbsent(failure):
		return tool.Result{}, "error: must be a string"
	}
	if why := applyState(&m[replyState], c, stateless); why != "" {
		return tool.Result{}, "ds_state: " + why
	}
	st := status(&m[replyStatus])
	if st == tool.OK {
		if len(output.Raw) > 0 {
			r.Output = jsonx.AppendUnescaped(make([]byte, 0, len(output.Raw)), output.Raw)
		}
		return r, ""
	}
	// Never empty (toolhost §3.2).
	r.Failure = &tool.Failure{Status: st, Error: cmp.Or(string(failure.Text()), st.String())}
	return r, ""
}

func notObject(text []byte) string {
	if len(bytes.TrimSpace(text)) == 0 {
		return "empty reply"
	}
	if p := jsonx.Check(text, maxDepth); !p.OK() {
		return "invalid JSON: " + p.String()
	}
	return "not a JSON object"
}

// maxShown is how many bytes of a worker's output an error shows.
const maxShown = 256

// explain returns an error's detail: the reason, the text's begin, and what fits of the stderr.
func explain(why string, text []byte, stderr string) string {
	if shown := text[:min(len(text), maxShown)]; len(shown) > 0 {
		why += ": " + string(shown)
	}
	if len(text) > maxShown {
		why += "…"
	}
	if stderr == "" {
		return why
	}
	const between = "; stderr: "
	return why + between + stderr[max(len(stderr)-(tool.MaxDetail-len(why)-len(between)), 0):]
}

func textOrAbsent(m *jsonx.Member) bool { return m.Kind == jsonx.Absent || m.Kind == jsonx.String }

// status reads the status as toolhost §3.5 does: what is unknown is a failure.
func status(m *jsonx.Member) tool.Status {
	if m.Kind != jsonx.String {
		return tool.ToolError
	}
	var room [64]byte
	return tool.ParseStatus(jsonx.AppendUnescaped(room[:0], m.Raw))
}

// applyState stores a reply's state. A worker that was not shown it cannot remove anything.
func applyState(m *jsonx.Member, c *tool.Call, stateless bool) (bad string) {
	switch m.Kind {
	case jsonx.Absent, jsonx.Null:
		return ""
	case jsonx.ObjectStart:
	default:
		return "must be an object"
	}
	var none sessionstate.State
	state := c.State
	if state == nil {
		state = &none
	}
	apply := state.Apply
	if stateless {
		apply = state.ApplySetting
	}
	next, bad := apply(m.Raw)
	if bad == "" {
		*state = next
	}
	return bad
}
