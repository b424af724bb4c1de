package supervisor

import (
	"regexp"
	"sync"
)

// Code is how an attempt ended (threads §5.4).
type Code string

// The outcomes of attempts. Success is empty.
const (
	Success            Code = ""
	OperatorBusy       Code = "OPERATOR_BUSY"
	TargetNotFound     Code = "TARGET_NOT_FOUND"
	PaneDead           Code = "PANE_DEAD"
	PaneIsShell        Code = "PANE_IS_SHELL"
	TargetNotAllowed   Code = "TARGET_NOT_ALLOWED"
	UnsupportedRuntime Code = "UNSUPPORTED_RUNTIME"
	SendKeysError      Code = "SEND_KEYS_ERROR"
	RunFailed          Code = "FALLBACK_FAILED"
	// Interrupted is an attempt that the end of the server stopped. It is not reported to Jobs: its
	// job is as one that a crash stopped.
	Interrupted Code = "INTERRUPTED"
)

// Outcome is the end of an attempt.
type Outcome struct {
	Code   Code
	Detail string // for logs: without prompt, at most maxDetail bytes
}

const maxDetail = 256

func outcome(code Code, detail string) Outcome {
	return Outcome{Code: code, Detail: detail[:min(len(detail), maxDetail)]}
}

// Attempt is a prompt for a live runtime.
type Attempt struct {
	TriggerID string
	Runtime   string
	Envelope  []byte
	Forced    bool // a person at the runtime is no reason to wait
}

// Command is a fallback command.
type Command struct {
	TriggerID string
	Argv      []string // with its placeholders replaced
}

// plainID matches trigger identifiers: they name buffers of tmux and log files.
var plainID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$`) })
