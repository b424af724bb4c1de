package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestBadInput has the rows of threads §8 about methods, on both paths: the code and the status of
// each, and that nothing has changed.
func TestBadInput(t *testing.T) {
	s := start(t)
	id, other := s.create(), s.create()
	foreign := s.post("create_thread", foreigner, `{"workspace_id":"wk_other","title":"x","type":"workflow","participants":["a"]}`).body["thread_id"].(string)
	message := s.post("post_message", reviewer, `{"thread_id":"`+other+`","schema_version":1,"kind":"chat","body":"x"}`).body["message_id"].(string)
	for i := range 3 {
		s.post("post_message", reviewer, fmt.Sprintf(`{"thread_id":"%s","schema_version":1,"kind":"chat","body":"%d","idempotency_key":"k%d"}`, id, i, i))
	}
	if a := s.post("ack_read", reviewer, `{"thread_id":"`+id+`","last_read_seq":2}`); a.status != 200 {
		t.Fatal(a.text)
	}
	before := s.post("read_messages", reviewer, `{"thread_id":"`+id+`"}`).text
	th := `"thread_id":"` + id + `"`
	post := th + `,"schema_version":1,"kind":"chat","body":"x"`
	for _, c := range []struct {
		method, token, body, spec, legacy string
		status, legacyStatus              int
	}{
		{"get_thread", reviewer, ``, "VALIDATION_ERROR", "INVALID_ARGUMENT", 415, 415},
		{"get_thread", reviewer, `[]`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `"x"`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `null`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `{"a":1}{}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `{"thread_id":`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, "{\"thread_id\":\"\xff\"}", "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `{"thread_id":"\ud800"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `{` + th + `,"x":1,"x":1}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `{` + th + `,"__proto__":{}}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `{` + th + `,"x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `{"Thread_ID":"th_x"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `{"thread_id":""}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `{"thread_id":"  "}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `{"thread_id":"` + strings.Repeat("x", 257) + `"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `{"thread_id":7}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `{"thread_id":null}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"get_thread", reviewer, `{"thread_id":"th_none"}`, "NOT_FOUND", "NOT_FOUND", 404, 404},
		{"get_thread", reviewer, `{"thread_id":"` + foreign + `"}`, "OUT_OF_SCOPE_WORKSPACE", "WORKSPACE_MISMATCH", 403, 403},
		{"get_thread", reviewer, `{` + th + `,"agent_id":"x"}`, "CLAIM_MISMATCH", "FORBIDDEN", 403, 403},
		{"get_thread", reviewer, `{` + th + `,"role":"coordinator"}`, "CLAIM_MISMATCH", "FORBIDDEN", 403, 403},
		{"get_thread", reviewer, `{` + th + `,"workspace_id":"x","agent_id":"x"}`, "OUT_OF_SCOPE_WORKSPACE", "WORKSPACE_MISMATCH", 403, 403},
		{"create_thread", coordinator, `{"workspace_id":"wk_mobile_core","title":"x","type":"workflow","participants":[]}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"create_thread", coordinator, `{"workspace_id":"wk_mobile_core","title":"x","type":"workflow","participants":["a"," a "]}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"create_thread", coordinator, `{"workspace_id":"wk_mobile_core","title":"x","type":"workflow","participants":[` + strings.Repeat(`"x",`, 256) + `"x"]}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"create_thread", coordinator, `{"workspace_id":"wk_mobile_core","title":"x","type":"chat","participants":["a"]}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"create_thread", coordinator, `{"workspace_id":"wk_mobile_core","title":" ","type":"workflow","participants":["a"]}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"create_thread", coordinator, `{"workspace_id":"x","title":"x","type":"workflow","participants":["a"]}`, "OUT_OF_SCOPE_WORKSPACE", "WORKSPACE_MISMATCH", 403, 403},
		{"create_thread", coordinator, `{"workspace_id":"wk_mobile_core","title":"x","type":"workflow","participants":["a"],"created_by":"x"}`, "CLAIM_MISMATCH", "FORBIDDEN", 403, 403},
		{"create_thread", reviewer, `{"workspace_id":"wk_mobile_core","title":"x","type":"workflow","participants":["a"]}`, "FORBIDDEN", "FORBIDDEN", 403, 403},
		{"create_thread", auditor, `{"workspace_id":"wk_mobile_core","title":"x","type":"workflow","participants":["a"]}`, "FORBIDDEN", "FORBIDDEN", 403, 403},
		{"post_message", reviewer, `{` + th + `,"kind":"chat","body":"x"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"post_message", reviewer, `{` + th + `,"schema_version":2,"kind":"chat","body":"x"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"post_message", reviewer, `{` + th + `,"schema_version":"1","kind":"chat","body":"x"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"post_message", reviewer, `{` + th + `,"schema_version":true,"kind":"chat","body":"x"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"post_message", reviewer, `{` + th + `,"schema_version":1.5,"kind":"chat","body":"x"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"post_message", reviewer, `{` + th + `,"schema_version":1,"kind":"chat","body":""}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"post_message", reviewer, `{` + th + `,"schema_version":1,"kind":"chat","body":" \n"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"post_message", reviewer, `{` + th + `,"schema_version":1,"kind":"note","body":"x"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"post_message", reviewer, `{` + post + `,"metadata":[]}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"post_message", reviewer, `{` + post + `,"metadata":"x"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"post_message", reviewer, `{` + post + `,"metadata":{"a":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"post_message", reviewer, `{` + post + `,"metadata":{"a":"` + strings.Repeat("x", 262144) + `"}}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"post_message", stranger, `{` + post + `}`, "FORBIDDEN", "FORBIDDEN", 403, 403},
		{"post_message", auditor, `{` + post + `}`, "FORBIDDEN", "FORBIDDEN", 403, 403},
		{"post_message", reviewer, `{` + th + `,"schema_version":1,"kind":"system","body":"x"}`, "FORBIDDEN", "FORBIDDEN", 403, 403},
		{"post_message", reviewer, `{` + post + `,"sender_session_id":"x"}`, "CLAIM_MISMATCH", "FORBIDDEN", 403, 403},
		{"post_message", reviewer, `{` + post + `,"in_reply_to":"` + message + `"}`, "NOT_FOUND", "INVALID_ARGUMENT", 404, 400},
		{"post_message", reviewer, `{` + post + `,"idempotency_key":"k1"}`, "IDEMPOTENCY_CONFLICT", "IDEMPOTENCY_CONFLICT", 409, 409},
		{"read_messages", reviewer, `{` + th + `,"limit":0}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"read_messages", reviewer, `{` + th + `,"limit":201}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"read_messages", reviewer, `{` + th + `,"limit":1.5}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"read_messages", reviewer, `{` + th + `,"limit":"5"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"read_messages", reviewer, `{` + th + `,"since_seq":-1}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"read_messages", reviewer, `{` + th + `,"since_seq":9007199254740992}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"read_messages", reviewer, `{` + th + `,"since_seq":1e300}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"read_messages", stranger, `{` + th + `}`, "FORBIDDEN", "FORBIDDEN", 403, 403},
		{"ack_read", reviewer, `{` + th + `,"last_read_seq":4}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"ack_read", reviewer, `{` + th + `,"last_read_seq":1}`, "CONFLICT", "CONFLICT", 409, 409},
		{"ack_read", auditor, `{` + th + `,"last_read_seq":1}`, "FORBIDDEN", "FORBIDDEN", 403, 403},
		{"update_thread_status", reviewer, `{"thread_id":"th_none","status":"closed","reason":"x"}`, "INSUFFICIENT_AUTHORITY", "FORBIDDEN", 403, 403},
		{"update_thread_status", auditor, `{` + th + `,"status":"blocked","reason":"x"}`, "FORBIDDEN", "FORBIDDEN", 403, 403},
		{"update_thread_status", coordinator, `{` + th + `,"status":"archived","reason":"x"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"update_thread_status", coordinator, `{` + th + `,"status":"blocked","reason":" "}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"summarize_thread", reviewer, `{` + th + `,"max_messages":0}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"summarize_thread", reviewer, `{` + th + `,"max_messages":1001}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"heartbeat_session", reviewer, `{"session_id":"x","runtime":"r","resumable":true,"status":"idle"}`, "CLAIM_MISMATCH", "FORBIDDEN", 403, 403},
		{"heartbeat_session", reviewer, `{"session_id":"sess_rv_12","workspace_id":"x","runtime":"r","resumable":true,"status":"idle"}`, "OUT_OF_SCOPE_WORKSPACE", "WORKSPACE_MISMATCH", 403, 403},
		{"heartbeat_session", reviewer, `{"session_id":"sess_rv_12","runtime":"r","resumable":"yes","status":"idle"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"heartbeat_session", reviewer, `{"session_id":"sess_rv_12","runtime":"r","resumable":true,"status":"dead"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"heartbeat_session", reviewer, `{"session_id":"sess_rv_12","runtime":"r","resumable":true,"status":"idle","management_mode":"auto"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"trigger_participant", reviewer, `{` + th + `,"target_agent_id":"reviewer_agent","reason":"r","trigger_prompt":"x"}`, "FORBIDDEN", "FORBIDDEN", 403, 403},
		{"trigger_participant", coordinator, `{` + th + `,"target_agent_id":"x","reason":"r","trigger_prompt":"x"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"trigger_participant", coordinator, `{` + th + `,"target_agent_id":"reviewer_agent","reason":"r","trigger_prompt":"\u0001\u001b"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"trigger_participant", coordinator, `{` + th + `,"target_agent_id":"reviewer_agent","reason":"r","trigger_prompt":"` + strings.Repeat("x", 8193) + `"}`, "VALIDATION_ERROR", "INVALID_ARGUMENT", 400, 400},
		{"nope", reviewer, `{}`, "NOT_FOUND", "NOT_FOUND", 404, 404},
		{"constructor", reviewer, `{}`, "NOT_FOUND", "NOT_FOUND", 404, 404},
		{"__proto__", reviewer, `{}`, "NOT_FOUND", "NOT_FOUND", 404, 404},
		{"get_thread/", reviewer, `{}`, "NOT_FOUND", "NOT_FOUND", 404, 404},
		{"get_thread", "", `{}`, "UNAUTHORIZED", "UNAUTHORIZED", 401, 401},
		{"get_thread", tokenOf(claims{"role": "worker"}), `{}`, "UNAUTHORIZED", "UNAUTHORIZED", 401, 401},
		{"get_thread", tokenOf(claims{"jti": nil}), `{}`, "UNAUTHORIZED", "UNAUTHORIZED", 401, 401},
		{"get_thread", tokenOf(claims{"exp": 1771329601}), `{}`, "UNAUTHORIZED", "UNAUTHORIZED", 401, 401},
	} {
		for _, d := range []struct {
			path, code string
			status     int
		}{{"/v1/", c.spec, c.status}, {"/v1/mcp/", c.legacy, c.legacyStatus}} {
			a := s.request(http.MethodPost, d.path+c.method, c.token, c.body)
			e, _ := a.body["error"].(map[string]any)
			if a.status != d.status || a.code() != d.code || e["spec_code"] != c.spec || e["legacy_code"] != c.legacy || e["message"] == "" || e["retryable"] != false || a.body["request_id"] != e["request_id"] ||
				a.header.Get("X-Request-Id") != e["request_id"] || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s%s %.120s: %d %s, want %d %s", d.path, c.method, c.body, a.status, a.text, d.status, d.code)
			}
		}
	}
	if after := s.post("read_messages", reviewer, `{"thread_id":"`+id+`"}`).text; after != before {
		t.Errorf("%s became %s", before, after)
	}
}
