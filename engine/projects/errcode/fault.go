// Package errcode is the closed set of errors of projects (exacta §3.7): codes, what they mean to a
// client, and the templates of their messages.
package errcode

import (
	"strings"
)

// Fault is one error. Its code decides everything but the values in its message and the detail.
type Fault struct {
	Code   string
	Values []string // of the places in the template, in their order
	Detail string   // for people who look closer: redacted, at most maxDetail bytes
}

// New returns a fault with a detail.
func New(code, detail string, values ...string) *Fault {
	return &Fault{Code: code, Values: values, Detail: detail}
}

// Hidden returns the fault with what redact leaves of its values and its detail.
func (f *Fault) Hidden(redact func(text string) string) *Fault {
	hidden := &Fault{Code: f.Code, Detail: redact(f.Detail)}
	for _, v := range f.Values {
		hidden.Values = append(hidden.Values, redact(v))
	}
	return hidden
}

// Error implements error.
func (f *Fault) Error() string { return f.Code + ": " + f.Message() + " " + f.Detail }

// Row is what a code means.
type Row struct {
	Code, Category, Severity, Recovery string
	Retryable                          bool
	Template                           string
}

// Row returns the row of the fault's code.
func (f *Fault) Row() *Row { return Lookup(f.Code) }

// Lookup returns the row of a code, nil if there is none.
func Lookup(code string) *Row {
	for i := range rows {
		if rows[i].Code == code {
			return &rows[i]
		}
	}
	return nil
}

// Index returns the place of a code in Codes, 0 where it is not there. It does not allocate.
func Index(code string) int {
	for i := range rows {
		if rows[i].Code == code {
			return i + 1
		}
	}
	return 0
}

// Codes returns "", which stands for no error, and all codes.
func Codes() []string {
	codes := []string{""}
	for i := range rows {
		codes = append(codes, rows[i].Code)
	}
	return codes
}

// Message fills the template.
func (f *Fault) Message() string {
	row := f.Row()
	if row == nil {
		return ""
	}
	var b strings.Builder
	rest := row.Template
	for _, v := range f.Values {
		before, behind, ok := strings.Cut(rest, "{")
		if !ok {
			break
		}
		_, rest, _ = strings.Cut(behind, "}")
		b.WriteString(before)
		b.WriteString(v)
	}
	b.WriteString(rest)
	return b.String()
}

// rows are the codes of exacta §3.7, in its order. They are not written.
var rows = []Row{
	{"IPC-001", "Protocol", "fatal", "Restart", false, "The message is not a valid IPC envelope."},
	{"IPC-002", "Protocol", "fatal", "Restart", false, "IPC version {version} is not supported; this server speaks 1.0."},
	{"IPC-003", "Protocol", "error", "Report", false, "Unknown command: {command}."},
	{"IPC-004", "Protocol", "warning", "Report", false, "Unknown event: {event}."},
	{"IPC-005", "Protocol", "fatal", "Restart", false, "The response does not match its request."},
	{"IPC-006", "Protocol", "error", "Retry", true, "This request_id was already used for a different request."},
	{"IPC-007", "Protocol", "fatal", "Restart", false, "The event stream cannot be continued without a gap."},
	{"IPC-008", "Protocol", "error", "Retry", true, "The request timed out after {ms} ms."},
	{"IPC-009", "Protocol", "error", "Modify", false, "The request payload is invalid: {field}."},
	{"IPC-010", "Protocol", "error", "Retry", true, "The request was cancelled."},
	{"VAL-001", "Validation", "error", "Modify", false, "The request could not be turned into a supported intent."},
	{"VAL-002", "Validation", "error", "Modify", false, "A constraint is violated: {constraint}."},
	{"VAL-003", "Validation", "error", "Report", true, "The change set is not an acceptable unified diff."},
	{"VAL-004", "Validation", "error", "Modify", true, "The plan is not valid: {reason}."},
	{"VAL-005", "Validation", "error", "Modify", true, "The project changed since the plan was made."},
	{"FS-001", "FileSystem", "error", "Modify", false, "Not found: {path}."},
	{"FS-002", "FileSystem", "error", "Configure", false, "Access denied: {path}."},
	{"FS-003", "FileSystem", "fatal", "Modify", false, "The path is outside the project: {path}."},
	{"FS-004", "FileSystem", "error", "Configure", false, "There is not enough disk space."},
	{"FS-005", "FileSystem", "error", "Retry", true, "In use by another process: {path}."},
	{"FS-006", "FileSystem", "error", "Report", false, "Rollback could not restore {count} file(s)."},
	{"AI-001", "AI", "error", "Configure", false, "The planner rejected the credentials."},
	{"AI-002", "AI", "error", "Retry", true, "The planner is rate limited."},
	{"AI-003", "AI", "error", "Retry", true, "The planner is not available."},
	{"AI-004", "AI", "error", "Modify", false, "The planner answer is too large."},
	{"AI-005", "AI", "error", "Retry", true, "The planner answer could not be understood."},
	{"BLD-001", "Build", "error", "Install", false, "Build tool not found: {tool}."},
	{"BLD-002", "Build", "error", "Modify", false, "The build failed with {errors} error(s)."},
	{"BLD-003", "Build", "error", "Install", false, "A dependency is missing: {package}."},
	{"BLD-004", "Build", "error", "Retry", true, "The build exceeded {seconds} s."},
	{"BLD-005", "Build", "error", "Configure", false, "The program could not be started."},
	{"ST-001", "State", "fatal", "Restart", false, "Invalid state transition: {from} → {to}"},
	{"ST-002", "State", "fatal", "Restart", false, "Saved project state is damaged."},
	{"ST-003", "State", "error", "Restart", false, "This session is not active any more."},
	{"RES-001", "Resource", "error", "Modify", false, "The request needs more context than allowed."},
	{"RES-002", "Resource", "error", "Modify", false, "A memory limit was reached."},
	{"RES-003", "Resource", "error", "Retry", true, "An internal step took too long."},
	{"RES-004", "Resource", "error", "Retry", true, "The server is busy."},
	{"SEC-001", "Security", "fatal", "Modify", false, "A path that climbs out of its directory was blocked."},
	{"SEC-002", "Security", "fatal", "Modify", false, "A protected location was blocked: {path}."},
	{"SEC-003", "Security", "fatal", "Report", false, "A credential was found and blocked."},
	{"CFG-001", "Configuration", "error", "Configure", false, "The project configuration cannot be read."},
	{"CFG-002", "Configuration", "error", "Configure", false, "A required setting is missing: {setting}."},
	{"CFG-003", "Configuration", "error", "Configure", false, "A setting has an invalid value: {setting}."},
}
