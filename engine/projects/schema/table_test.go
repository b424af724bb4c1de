package schema

//go:generate go test -run ^TestFiles$ . -update

import (
	"fmt"
	"strings"
)

// row is one schema.
type row struct{ name, title, body string }

// Parts of schemas.
const (
	str      = `{"type":"string"}`
	uuid     = `{"type":"string","pattern":"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"}`
	time     = `{"type":"string","pattern":"^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$"}`
	asked    = `{"type":"string","pattern":"^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,9})?)?(Z|[+-]\\d\\d(:?\\d\\d)?)?$"}`
	version  = `{"type":"string","pattern":"^1\\.(0|[1-9]\\d{0,3})$"}`
	boolean  = `{"type":"boolean"}`
	isTrue   = `{"const":true}`
	count    = `{"type":"integer","minimum":0}`
	ordinal  = `{"type":"integer","minimum":1}`
	any      = `{"type":"object"}`
	failure  = `{"$ref":"` + base + `error"}`
	path     = `{"type":"string","minLength":1,"maxLength":1024,"pattern":"^[^/\\\\]"}`
	seconds  = `{"type":"integer","minimum":1,"maximum":3600}`
	timeout  = `{"type":"integer","minimum":1,"maximum":3600000}`
	location = `{"type":"string","minLength":1,"maxLength":4096}`
)

const (
	commands = "OpenProject CloseProject ExtractIntent GeneratePlan ValidatePlan ApprovePlan RejectPlan ExecutePlan Pause Resume Cancel ApplyDiffSet Build Preview ExportDiagnostics"
	events   = "StateChanged PlanProposed DiffProposed StepStarted StepCompleted Progress LogEntry ErrorRaised"
	states   = "Idle ExtractingIntent Planning AwaitingApproval Executing Paused Failed Completed Cancelling"
	triggers = "ExtractIntent IntentExtracted IntentRejected Cancel PlannerError Timeout GeneratePlan PlanReady PlanInvalid ExecutePlan RejectPlan PlanExpired " +
		"ExecutionComplete StepFailed Pause Resume ResumeFailed RollbackComplete RollbackFailed Acknowledge SessionRestored"
)

// is returns the schema of one of several words.
func is(words string) string {
	return `{"enum":["` + strings.ReplaceAll(words, " ", `","`) + `"]}`
}

func orNull(s string) string { return `{"anyOf":[` + s + `,{"type":"null"}]}` }

func list(s string) string { return `{"type":"array","items":` + s + `}` }

// object returns the schema of an object: the names of its members, each with a schema behind it. A
// name that ends in ? may be absent.
func object(members ...string) string {
	var required, properties []string
	for i := 0; i < len(members); i += 2 {
		name, optional := strings.CutSuffix(members[i], "?")
		if !optional {
			required = append(required, `"`+name+`"`)
		}
		properties = append(properties, fmt.Sprintf(`"%s":%s`, name, members[i+1]))
	}
	return `{"type":"object","required":[` + strings.Join(required, ",") + `],"properties":{` + strings.Join(properties, ",") + `}}`
}

// inside returns the members of a schema without its braces.
func inside(s string) string { return s[1 : len(s)-1] }

// answers are what holds for ok, result and error together (exacta §3.3).
const answers = `,"oneOf":[{"properties":{"ok":{"const":true},"result":{"type":"object"},"error":{"type":"null"}}},{"properties":{"ok":{"const":false},"result":{"type":"null"},"error":{"type":"object"}}}]`

// table returns all schemas.
func table() []row {
	constraint := object("type", is("MUST MUST_NOT PREFER"), "description", str, "scope", str)
	return append(append(envelopes(), commandRows(constraint)...), eventRows(constraint)...)
}

func envelopes() []row {
	const ipc, id = `{"const":"1.0"}`, "request_id"
	zero := `{"allOf":[` + uuid + `,{"not":{"const":"00000000-0000-0000-0000-000000000000"}}]}`
	sent := object("ipc_version", ipc, "type", is("ack"), id, uuid, "sent_at", time, "ok", boolean,
		"result", orNull(object("stream", is("exacta:event"), "project_id", uuid, "session_id", uuid, "state", is(states),
			"oldest_stream_seq", ordinal, "last_stream_seq", count, "replayed", count)), "error", orNull(failure))
	sent = sent[:len(sent)-1] + answers + "}"
	admitted := object("ipc_version", ipc, "type", is("ack"), id, `{"type":"null"}`, "sent_at", time, "ok", isTrue, "result", any, "error", `{"type":"null"}`)
	receipt := object("ipc_version", version, "type", is("ack"), "project_id", uuid, "stream_seq", count)
	return []row{
		{"envelope:request", "A request (§3.2)", inside(object("ipc_version", version, "type", is("request"), id, zero, "sent_at", asked,
			"command", is(commands), "payload", any, "timeout_ms?", timeout))},
		{"envelope:response", "A response (§3.3)", inside(object("ipc_version", ipc, "type", is("response"), id, orNull(uuid), "correlation_id", uuid,
			"sent_at", time, "ok", boolean, "result", orNull(any), "error", orNull(failure))) + answers},
		{"envelope:event", "An event (§3.4)", inside(object("ipc_version", ipc, "type", is("event"), "event", is(events), "event_id", uuid, "sent_at", time,
			id, orNull(uuid), "correlation_id", uuid, "seq", ordinal, "project_id", uuid, "stream_seq", ordinal, "payload", any))},
		{"envelope:subscribe", "A subscribe (§3.5)", inside(object("ipc_version", version, "type", is("subscribe"), id, zero, "sent_at", asked, "project_id", uuid,
			"mode?", is("project none"), "after_stream_seq?", orNull(count), "session_id?", uuid, "correlation_id?", uuid, "after_seq?", orNull(count),
			"window?", `{"type":"integer","minimum":0,"maximum":4096}`))},
		{"envelope:ack", "An ack: the answer of a subscribe, of a token (§2.1), or the receipt of a client (§3.5)", `"anyOf":[` + sent + `,` + admitted + `,` + receipt + `]`},
		{"error", "An error object (§3.7)", inside(object("code", `{"type":"string","pattern":"^[A-Z]{2,3}-\\d{3}$"}`,
			"category", is("Protocol Validation FileSystem AI Build State Resource Security Configuration"), "severity", is("fatal error warning"),
			"message", str, "technical_detail", `{"type":"string","maxLength":4096}`,
			"recovery_path", is("Retry Modify Configure Install Report Restart"), "retryable", boolean))},
	}
}

func commandRows(constraint string) (rows []row) {
	add := func(command, section string, payload, result []string) {
		payload = append(payload, "timeout_ms?", timeout)
		rows = append(rows, row{"command:" + command + ":payload", "Payload of " + command + " (" + section + ")", inside(object(payload...))},
			row{"command:" + command + ":result", "Result of " + command + " (" + section + ")", inside(object(result...))})
	}
	with := func(members ...string) []string { return append([]string{"project_id", uuid}, members...) }
	intent := object("id", uuid, "type", is("CreateProject AddFeature FixBug BuildPackage UnknownIntent"), "confidence", `{"type":"number","minimum":0,"maximum":1}`,
		"raw_input", str, "target", object("files", list(path), "symbols", list(str), "description", str), "constraints", list(constraint), "timestamp", time)
	violation := object("code", `{"type":"string","pattern":"^P[VSCD]-\\d{1,2}$"}`, "message", str, "step_id", orNull(uuid))
	plan, execution := with("plan_id", uuid), with("execution_id", uuid)
	add("OpenProject", "§4.1", []string{"path", location}, []string{"project_id", uuid, "project_root", str, "detected_markers", list(str), "state", is(states),
		"session_id", uuid, "stream_seq", count, "active_plan_id", orNull(uuid), "active_execution_id", orNull(uuid)})
	add("CloseProject", "§4.2", with(), []string{"closed", isTrue})
	add("ExtractIntent", "§4.3", with("user_input", `{"type":"string","maxLength":32768}`), []string{"intent", intent})
	add("GeneratePlan", "§4.4", with("intent_id", uuid), []string{"plan_id", uuid, "version", ordinal, "status", is("pending")})
	add("ValidatePlan", "§4.5", plan, []string{"valid", boolean, "violations", list(violation)})
	add("ApprovePlan", "§4.6", plan, []string{"plan_id", uuid, "status", is("approved")})
	add("RejectPlan", "§4.7", plan, []string{"plan_id", uuid, "status", is("rejected")})
	add("ExecutePlan", "§4.8", plan, []string{"execution_id", uuid})
	add("Pause", "§4.9", execution, []string{"execution_id", uuid, "status", is("paused")})
	add("Resume", "§4.10", execution, []string{"execution_id", uuid, "status", is("executing")})
	add("Cancel", "§4.11", execution, []string{"execution_id", uuid, "status", is("cancelling")})
	add("ApplyDiffSet", "§4.12", with("diffs", `{"type":"array","minItems":1,"maxItems":50,"items":{"type":"string"}}`),
		[]string{"applied", boolean, "rollback_point_id", uuid})
	add("Build", "§4.13", with("configuration?", is("Debug Release"), "timeout_seconds?", seconds),
		[]string{"exit_code", count, "duration_ms", count, "warnings", count, "errors", count})
	add("Preview", "§4.14", with("timeout_seconds?", seconds), []string{"started", isTrue})
	add("ExportDiagnostics", "§4.15", with("output_path", location, "include_debug?", boolean, "include_project_tree?", boolean), []string{"bundle_path", str})
	return rows
}

func eventRows(constraint string) (rows []row) {
	add := func(event string, members ...string) {
		rows = append(rows, row{"event:" + event + ":payload", "Payload of " + event + " (§3.4)", inside(object(members...))})
	}
	step := object("id", uuid, "order", ordinal, "type", is("file_create file_modify file_delete build"), "target", path, "description", str, "dependencies", list(uuid))
	plan := object("id", uuid, "version", ordinal, "status", is("pending"), "estimated_tokens", count, "constraints", list(constraint), "steps", list(step))
	add("StateChanged", "from", is(states), "to", is(states), "trigger", is(triggers))
	add("PlanProposed", "plan", plan)
	add("DiffProposed", "step_id", uuid, "diff", str)
	add("StepStarted", "step_id", uuid, "order", ordinal, "description", str)
	add("StepCompleted", "step_id", uuid, "ok", boolean, "duration_ms", count)
	add("Progress", "phase", is("planning diff apply build preview"), "current", count, "total", count)
	add("LogEntry", "level", is("ERROR WARN INFO DEBUG TRACE"), "component", is("Orchestrator DiffParser FileGateway BuildExecutor AIInterface"),
		"message", str, "correlation_id", uuid)
	add("ErrorRaised", "error", failure)
	return rows
}
