package conformance

import (
	"regexp"
	"strings"
)

// row is one code of exacta §3.7.
type row struct {
	category, severity, recovery string
	retryable                    bool
	message                      *regexp.Regexp
}

// registry are all codes.
var registry = parseRegistry(`
IPC-001 | Protocol | fatal | Restart | no | The message is not a valid IPC envelope.
IPC-002 | Protocol | fatal | Restart | no | IPC version {version} is not supported; this server speaks 1.0.
IPC-003 | Protocol | error | Report | no | Unknown command: {command}.
IPC-004 | Protocol | warning | Report | no | Unknown event: {event}.
IPC-005 | Protocol | fatal | Restart | no | The response does not match its request.
IPC-006 | Protocol | error | Retry | yes | This request_id was already used for a different request.
IPC-007 | Protocol | fatal | Restart | no | The event stream cannot be continued without a gap.
IPC-008 | Protocol | error | Retry | yes | The request timed out after {ms} ms.
IPC-009 | Protocol | error | Modify | no | The request payload is invalid: {field}.
IPC-010 | Protocol | error | Retry | yes | The request was cancelled.
VAL-001 | Validation | error | Modify | no | The request could not be turned into a supported intent.
VAL-002 | Validation | error | Modify | no | A constraint is violated: {constraint}.
VAL-003 | Validation | error | Report | yes | The change set is not an acceptable unified diff.
VAL-004 | Validation | error | Modify | yes | The plan is not valid: {reason}.
VAL-005 | Validation | error | Modify | yes | The project changed since the plan was made.
FS-001 | FileSystem | error | Modify | no | Not found: {path}.
FS-002 | FileSystem | error | Configure | no | Access denied: {path}.
FS-003 | FileSystem | fatal | Modify | no | The path is outside the project: {path}.
FS-004 | FileSystem | error | Configure | no | There is not enough disk space.
FS-005 | FileSystem | error | Retry | yes | In use by another process: {path}.
FS-006 | FileSystem | error | Report | no | Rollback could not restore {count} file(s).
AI-001 | AI | error | Configure | no | The planner rejected the credentials.
AI-002 | AI | error | Retry | yes | The planner is rate limited.
AI-003 | AI | error | Retry | yes | The planner is not available.
AI-004 | AI | error | Modify | no | The planner answer is too large.
AI-005 | AI | error | Retry | yes | The planner answer could not be understood.
BLD-001 | Build | error | Install | no | Build tool not found: {tool}.
BLD-002 | Build | error | Modify | no | The build failed with {errors} error(s).
BLD-003 | Build | error | Install | no | A dependency is missing: {package}.
BLD-004 | Build | error | Retry | yes | The build exceeded {seconds} s.
BLD-005 | Build | error | Configure | no | The program could not be started.
ST-001 | State | fatal | Restart | no | Invalid state transition: {from} → {to}
ST-002 | State | fatal | Restart | no | Saved project state is damaged.
ST-003 | State | error | Restart | no | This session is not active any more.
RES-001 | Resource | error | Modify | no | The request needs more context than allowed.
RES-002 | Resource | error | Modify | no | A memory limit was reached.
RES-003 | Resource | error | Retry | yes | An internal step took too long.
RES-004 | Resource | error | Retry | yes | The server is busy.
SEC-001 | Security | fatal | Modify | no | A path that climbs out of its directory was blocked.
SEC-002 | Security | fatal | Modify | no | A protected location was blocked: {path}.
SEC-003 | Security | fatal | Report | no | A credential was found and blocked.
CFG-001 | Configuration | error | Configure | no | The project configuration cannot be read.
CFG-002 | Configuration | error | Configure | no | A required setting is missing: {setting}.
CFG-003 | Configuration | error | Configure | no | A setting has an invalid value: {setting}.
`)

var place = regexp.MustCompile(`\\\{[a-z]+\\\}`)

func parseRegistry(text string) map[string]row {
	out := make(map[string]row)
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.Split(line, " | ")
		form := place.ReplaceAllString(regexp.QuoteMeta(f[5]), `(?s:.*)`)
		out[f[0]] = row{f[1], f[2], f[3], f[4] == "yes", regexp.MustCompile("^" + form + "$")}
	}
	return out
}
