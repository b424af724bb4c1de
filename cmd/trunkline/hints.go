package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/codec/wire"
	"trunkline/engine/kernel"
	"trunkline/handlers/ipc"
	"trunkline/handlers/ipc/ipcclient"
)

// The texts of a server are those of its protocol, so that every client can compare them. What a
// person could do about one of them is a hint of the command line.

// exitCodes maps the server's codes to those of the process; all others are 1.
var exitCodes = [wire.NumCodes]int{
	wire.NotFound:           cli.CodeNotFound,
	wire.InvalidArgument:    cli.CodeUsage,
	wire.FailedPrecondition: cli.CodeConflict,
	wire.Unavailable:        cli.CodeUnavailable,
	wire.Timeout:            cli.CodeUnavailable,
}

// request is what is known about a call that failed.
type request struct {
	info  ipc.MethodInfo // empty for an unknown method
	name  string         // of the method as it was written
	body  []byte         // JSON
	mixed string         // a hint of mixedUp
}

// callError gives an answer of the server its exit code and a hint.
func callError(err error, r request) error {
	var said *ipcclient.Error
	if !errors.As(err, &said) {
		return err
	}
	return &cli.Error{
		Code: cmp.Or(exitCodes[said.Code], cli.CodeFailed), Err: err, Hint: r.hint(said),
		ServerCode: said.Code.String(), Retryable: said.Retryable, RetryAfterSeconds: said.RetryAfterSeconds,
	}
}

func (r *request) hint(said *ipcclient.Error) string {
	switch {
	case r.mixed != "":
		return r.mixed
	case said.RetryAfterSeconds > 0:
		return fmt.Sprintf("try again in %g s", said.RetryAfterSeconds)
	case said.Retryable && strings.HasPrefix(said.Message, "Storage "):
		return "the disk of the server's store.dir has no room, or cannot be written; changes are taken again once it can"
	case said.Retryable:
		return "the server is saturated; the same request may succeed a moment later"
	case strings.Contains(said.Message, ipc.IdempotencyKey):
		return "each request has a key of its own, of 32 to 200 bytes; only its repetitions have the same"
	case said.Code == wire.NotFound && strings.HasPrefix(said.Message, "Unknown ") && r.info.Name == "":
		return nearHint(r.name)
	case said.Code == wire.InvalidArgument && choicesFor(said.Message) != "":
		return choicesFor(said.Message)
	case said.Code == wire.InvalidArgument && len(r.info.Fields) > 0:
		return r.fieldsHint()
	case said.Code == wire.FailedPrecondition && r.info.Service == "kernel":
		return transitionHint(said.Message) + "'trunkline call kernel.GetProcess' shows the process as it is"
	case said.Code == wire.Unavailable:
		return "the server is shutting down"
	}
	return ""
}

// nearEdits is how many edits away from a method's name another name still counts as a misspelling.
const nearEdits = 3

// nearHint names the method that name is nearest to, if any is near.
func nearHint(name string) string {
	best, edits := "", nearEdits+1
	_, short, dotted := strings.Cut(name, ".")
	if !dotted {
		short = name
	}
	for _, m := range ipc.Methods() {
		full := m.Service + "." + m.Name
		d := min(cli.Distance(strings.ToLower(name), strings.ToLower(full)), 1+cli.Distance(strings.ToLower(short), strings.ToLower(m.Name)))
		// Of a short name few edits leave another one.
		if d < edits && d <= 1+len(short)/4 {
			best, edits = full, d
		}
	}
	if best == "" {
		return listHint
	}
	return "did you mean " + best + "? " + listHint
}

// choicesFor lists the values of an enumeration of which the server refused another one.
func choicesFor(text string) string {
	var names []string
	switch {
	case strings.HasPrefix(text, "Invalid process state: "):
		for s := range kernel.State(kernel.NumStates) {
			names = append(names, s.String())
		}
	case strings.HasPrefix(text, "Invalid priority: "):
		for p := range kernel.Priority(kernel.NumPriorities) {
			names = append(names, p.String())
		}
	default:
		return ""
	}
	return "it is one of " + strings.Join(names, ", ") + ", in any letter case"
}

// transitionHint lists the states to which a process may go from the one that the server names.
func transitionHint(text string) string {
	pair, ok := strings.CutPrefix(text, "Invalid transition from ")
	from, _, known := strings.Cut(pair, " to ")
	state, valid := kernel.ParseState([]byte(from))
	if !ok || !known || !valid {
		return ""
	}
	var names []string
	for to := range kernel.State(kernel.NumStates) {
		if state.CanBecome(to) {
			names = append(names, to.String())
		}
	}
	if len(names) == 0 {
		return "nothing follows " + from + "; "
	}
	return "after " + from + " comes " + strings.Join(names, " or ") + "; "
}

// fieldsHint lists the fields of the method, after those of the body that it does not have: the
// server ignores them, and one of them may be the misspelt one.
func (r *request) fieldsHint() string {
	takes := r.info.Service + "." + r.info.Name + " takes " + strings.Join(r.info.Fields, ", ")
	var body map[string]json.RawMessage
	if json.Unmarshal(r.body, &body) != nil {
		return takes
	}
	for _, field := range r.info.Fields {
		delete(body, field)
	}
	if _, given := body["pid"]; given && r.info.Service == "orchestration" {
		return "a session is named by process_id, not by pid; " + takes
	}
	if _, given := body["process_id"]; given && r.info.Service == "kernel" {
		return "a process is named by pid, not by process_id; " + takes
	}
	return takes
}

// searched is how many processes are looked through for a session_id.
const searched = 100

// mixedUp looks, after an identifier was not found, whether it is one of the other kind: a session
// is no process, and the session_id of a process names neither.
func mixedUp(ctx context.Context, conn *ipcclient.Conn, info ipc.MethodInfo, err error) string {
	var said *ipcclient.Error
	if !errors.As(err, &said) || said.Code != wire.NotFound || len(info.Fields) == 0 {
		return ""
	}
	var id string
	var ok bool
	switch info.Fields[0] {
	case "pid":
		if id, ok = strings.CutPrefix(said.Message, "Process "); ok {
			id, ok = strings.CutSuffix(id, " not found")
		}
		if !ok {
			return ""
		}
		if _, err := conn.GetSessionState(ctx, id); err == nil {
			return id + " is a session without a process: 'trunkline call orchestration.GetSessionState' shows it"
		}
	case "process_id":
		if id, ok = strings.CutPrefix(said.Message, "Unknown process: "); !ok {
			return ""
		}
		if _, err := conn.GetProcess(ctx, id); err == nil {
			return id + " is a process without a session: 'trunkline call orchestration.InitializeSession' starts one"
		}
	default:
		return ""
	}
	page, err := conn.ListProcesses(ctx, ipcclient.ListProcesses{Limit: searched})
	if err != nil {
		return ""
	}
	for _, p := range page.Processes {
		if p.SessionID == id {
			return id + " is the session_id of process " + p.PID + "; the process is named by its pid"
		}
	}
	return ""
}
