package schemacheck

import (
	"encoding/json"
	"strings"
	"testing"

	"trunkline/engine/projects/schema"
)

const id = `"00000000-0000-4000-8000-00000000000A"`

// examples has for each payload, result and envelope a value with all of its members.
var examples = map[string]string{
	"error":              `{"code":"ST-001","category":"State","severity":"fatal","message":"m","technical_detail":"","recovery_path":"Restart","retryable":false}`,
	"envelope:request":   `{"ipc_version":"1.7","type":"request","request_id":ID,"sent_at":"2026-01-15T00:00Z","command":"Build","payload":{}}`,
	"envelope:response":  `{"ipc_version":"1.0","type":"response","request_id":null,"correlation_id":ID,"sent_at":"2026-01-15T00:00:00.000Z","ok":true,"result":{},"error":null}`,
	"envelope:event":     `{"ipc_version":"1.0","type":"event","event":"Progress","event_id":ID,"sent_at":"2026-01-15T00:00:00.000Z","request_id":null,"correlation_id":ID,"seq":1,"project_id":ID,"stream_seq":1,"payload":{}}`,
	"envelope:subscribe": `{"ipc_version":"1.0","type":"subscribe","request_id":ID,"sent_at":"2026-01-15T00:00:00.5+0100","project_id":ID}`,
	"envelope:ack":       `{"ipc_version":"1.0","type":"ack","project_id":ID,"stream_seq":7}`,

	"command:OpenProject:payload":       `{"path":"/p"}`,
	"command:OpenProject:result":        `{"project_id":ID,"project_root":"/p","detected_markers":["go.mod"],"state":"Idle","session_id":ID,"stream_seq":1,"active_plan_id":null,"active_execution_id":ID}`,
	"command:CloseProject:payload":      `{"project_id":ID}`,
	"command:CloseProject:result":       `{"closed":true}`,
	"command:ExtractIntent:payload":     `{"project_id":ID,"user_input":"x"}`,
	"command:ExtractIntent:result":      `{"intent":{"id":ID,"type":"FixBug","confidence":0.95,"raw_input":"x","target":{"files":["a"],"symbols":[],"description":"x"},"constraints":[{"type":"MUST","description":"d","scope":"s"}],"timestamp":"2026-01-15T00:00:00.000Z"}}`,
	"command:GeneratePlan:payload":      `{"project_id":ID,"intent_id":ID}`,
	"command:GeneratePlan:result":       `{"plan_id":ID,"version":1,"status":"pending"}`,
	"command:ValidatePlan:payload":      `{"project_id":ID,"plan_id":ID}`,
	"command:ValidatePlan:result":       `{"valid":false,"violations":[{"code":"PV-10","message":"m","step_id":null}]}`,
	"command:ApprovePlan:payload":       `{"project_id":ID,"plan_id":ID}`,
	"command:ApprovePlan:result":        `{"plan_id":ID,"status":"approved"}`,
	"command:RejectPlan:payload":        `{"project_id":ID,"plan_id":ID}`,
	"command:RejectPlan:result":         `{"plan_id":ID,"status":"rejected"}`,
	"command:ExecutePlan:payload":       `{"project_id":ID,"plan_id":ID}`,
	"command:ExecutePlan:result":        `{"execution_id":ID}`,
	"command:Pause:payload":             `{"project_id":ID,"execution_id":ID}`,
	"command:Pause:result":              `{"execution_id":ID,"status":"paused"}`,
	"command:Resume:payload":            `{"project_id":ID,"execution_id":ID}`,
	"command:Resume:result":             `{"execution_id":ID,"status":"executing"}`,
	"command:Cancel:payload":            `{"project_id":ID,"execution_id":ID}`,
	"command:Cancel:result":             `{"execution_id":ID,"status":"cancelling"}`,
	"command:ApplyDiffSet:payload":      `{"project_id":ID,"diffs":["x"]}`,
	"command:ApplyDiffSet:result":       `{"applied":true,"rollback_point_id":ID}`,
	"command:Build:payload":             `{"project_id":ID}`,
	"command:Build:result":              `{"exit_code":0,"duration_ms":1,"warnings":2,"errors":3}`,
	"command:Preview:payload":           `{"project_id":ID}`,
	"command:Preview:result":            `{"started":true}`,
	"command:ExportDiagnostics:payload": `{"project_id":ID,"output_path":"b.zip"}`,
	"command:ExportDiagnostics:result":  `{"bundle_path":"/b.zip"}`,

	"event:StateChanged:payload":  `{"from":"Idle","to":"Planning","trigger":"GeneratePlan"}`,
	"event:PlanProposed:payload":  `{"plan":{"id":ID,"version":1,"status":"pending","estimated_tokens":0,"constraints":[],"steps":[{"id":ID,"order":1,"type":"build","target":".","description":"d","dependencies":[ID]}]}}`,
	"event:DiffProposed:payload":  `{"step_id":ID,"diff":"d"}`,
	"event:StepStarted:payload":   `{"step_id":ID,"order":1,"description":"d"}`,
	"event:StepCompleted:payload": `{"step_id":ID,"ok":true,"duration_ms":0}`,
	"event:Progress:payload":      `{"phase":"preview","current":0,"total":1}`,
	"event:LogEntry:payload":      `{"level":"INFO","component":"Orchestrator","message":"m","correlation_id":ID}`,
	"event:ErrorRaised:payload":   `{"error":{"code":"ST-001","category":"State","severity":"fatal","message":"m","technical_detail":"","recovery_path":"Restart","retryable":false}}`,
}

// TestEveryMember of every schema is needed and has a type; unknown ones are allowed.
func TestEveryMember(t *testing.T) {
	s, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	v := s.Watch()
	if len(examples) != len(schema.Names()) {
		t.Errorf("%d examples of %d schemas", len(examples), len(schema.Names()))
	}
	for name, text := range examples {
		text = strings.ReplaceAll(text, "ID", id)
		f := func(edit func(m map[string]any), want bool) {
			t.Helper()
			var m map[string]any
			if err := json.Unmarshal([]byte(text), &m); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			edit(m)
			value, _ := json.Marshal(m)
			if err := v.Check(name, value); (err == nil) != want {
				t.Errorf("%s takes %s: %v", name, value, err)
			}
		}
		f(func(m map[string]any) { m["other"] = []int{1} }, true)
		var members map[string]any
		_ = json.Unmarshal([]byte(text), &members)
		for key := range members {
			f(func(m map[string]any) { delete(m, key) }, false)
			f(func(m map[string]any) { m[key] = []any{map[string]any{}} }, false)
			f(func(m map[string]any) { m[key] = "\n" }, isText(key))
		}
	}
}

// isText reports whether a member is any text.
func isText(key string) bool {
	switch key {
	case "message", "technical_detail", "user_input", "bundle_path", "project_root", "diff", "description":
		return true
	case "path", "output_path": // the server decides what is a path
		return true
	}
	return false
}

// TestOptions has optional members, at their limits, and what is out of them.
func TestOptions(t *testing.T) {
	s, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	v := s.Watch()
	f := func(name, members string, want bool) {
		t.Helper()
		text := strings.ReplaceAll(examples[name], "ID", id)
		text = strings.TrimSuffix(text, "}") + "," + members + "}"
		if err := v.Check(name, []byte(text)); (err == nil) != want {
			t.Errorf("%s takes %s: %v", name, members, err)
		}
	}
	f("command:Build:payload", `"configuration":"Release","timeout_seconds":3600,"timeout_ms":1`, true)
	f("command:Build:payload", `"configuration":"debug"`, false)
	f("command:Build:payload", `"timeout_seconds":3601`, false)
	f("command:Preview:payload", `"timeout_seconds":0`, false)
	f("command:ExportDiagnostics:payload", `"include_debug":true,"include_project_tree":false`, true)
	f("command:ExportDiagnostics:payload", `"include_debug":1`, false)
	f("envelope:request", `"timeout_ms":3600000`, true)
	f("envelope:request", `"timeout_ms":3600001`, false)
	f("envelope:request", `"request_id":"00000000-0000-0000-0000-000000000000"`, false)
	f("envelope:request", `"ipc_version":"2.0"`, false)
	f("envelope:request", `"command":"Rollback"`, false)
	f("envelope:subscribe", `"mode":"none","after_stream_seq":0,"window":4096,"session_id":`+id, true)
	f("envelope:subscribe", `"window":4097`, false)
	f("envelope:response", `"error":`+examples["error"], false)
	f("envelope:response", `"ok":false,"result":null`, false)
	f("envelope:response", `"ok":false,"result":null,"error":`+examples["error"], true)
	ack := `"request_id":` + id + `,"sent_at":"2026-01-15T00:00:00.000Z","ok":true,"error":null,"result":`
	f("envelope:ack", ack+`{"stream":"exacta:event","project_id":`+id+`,"session_id":`+id+`,"state":"Idle","oldest_stream_seq":1,"last_stream_seq":0,"replayed":0}`, true)
	if err := v.Check("envelope:ack", []byte(`{"ipc_version":"1.0","type":"ack","request_id":null,"sent_at":"2026-01-15T00:00:00.000Z","ok":true,"result":{},"error":null}`)); err != nil {
		t.Error(err)
	}
	if err := v.Check("none", []byte("{}")); err == nil {
		t.Error("a schema that is none")
	}
}

// TestValidator finds what is wrong with a conversation.
func TestValidator(t *testing.T) {
	s, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	v := s.Watch()
	line := func(name, from, to string) []byte {
		return []byte(strings.Replace(strings.ReplaceAll(examples[name], "ID", id), from, to, 1))
	}
	f := func(sent []byte, want bool) {
		t.Helper()
		if err := v.Sent(sent); (err == nil) != want {
			t.Errorf("%s: %v", sent, err)
		}
	}
	f(line("envelope:event", "{}", examples["event:Progress:payload"]), true)
	f(line("envelope:event", "{}", `{"phase":"other","current":0,"total":1}`), false)
	f(line("envelope:request", "", ""), false)
	f([]byte("{"), false)
	v.Asked(line("envelope:request", "{}", `{"project_id":`+id+`}`))
	f(line("envelope:response", `:null`, ":"+strings.ToLower(id)), false)
	answer := strings.Replace(string(line("envelope:response", `:null`, ":"+id)), "{}", examples["command:Build:result"], 1)
	f([]byte(answer), true)
	v.Asked(line("envelope:request", "{}", `{"project_id":1}`)) // of the same id: it is not known which was answered
	f([]byte(answer), true)
	delete(v.asked, strings.ToLower(strings.Trim(id, `"`)))
	v.Asked(line("envelope:request", "{}", `{"project_id":1}`))
	f([]byte(answer), false)
}
