package envelope

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"trunkline/codec/transcode"

	"github.com/tinylib/msgp/msgp"
)

type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// parse reads an envelope in either form as a tree; numbers keep their spelling.
func parse(t tb, form Form, src []byte) (m map[string]any) {
	t.Helper()
	if form == MsgPack {
		var b bytes.Buffer
		if rest, err := msgp.UnmarshalAsJSON(&b, src); err != nil || len(rest) > 0 {
			t.Fatalf("no MessagePack: %v, %d bytes left: %x", err, len(rest), src)
		}
		src = b.Bytes()
	}
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatalf("no JSON: %v: %s", err, src)
	}
	return m
}

func decoded(t tb, form Form, src []byte) *Env {
	t.Helper()
	e := &Env{}
	if p := e.Decode(form, src); p != nil {
		t.Fatalf("%s\n%s", p.Message(), src)
	}
	return e
}

// fullNested is fullFlat in the nested shape.
func fullNested(t tb) []byte {
	m := parse(t, JSON, fullFlat())
	nested := make(map[string]any)
	for k, i := range infos {
		v, ok := m[i.flat]
		switch {
		case !ok || i.group == noGroup:
		case i.group == top:
			nested[i.flat] = v
		default:
			g, _ := nested[groupNames[i.group]].(map[string]any)
			if g == nil {
				g = make(map[string]any)
				nested[groupNames[i.group]] = g
			}
			g[Key(k).name(Nested)] = v
		}
	}
	src, err := json.Marshal(nested)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return src
}

// clock is the moment of every test, as in the worked examples (envelope §9).
var clockNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func fixedID(dst []byte) []byte { return append(dst, "0123456789abcdef"...) }

func testEngine() *Engine {
	return NewEngine(Options{Now: func() time.Time { return clockNow }, NewID: fixedID})
}

// fullFlat is a flat envelope of about 4 KiB in the middle of its way, in the separators of
// Python's json.dumps: every key of envelope §3.2, and outputs as agents write them.
func fullFlat() []byte {
	const plan = `{"plan_id": "plan_7f3a91c2", "approval": "approved", "summary": "Read the handler, find where the session cookie ` +
		`is set, compare with the documented flow, then report.", "steps": [` +
		`{"step_id": "s1", "tool": "read_file", "parameters": {"path": "auth/login.py", "start_line": 1, "end_line": 120}, "risk": "low", "confidence": 0.92},` +
		` {"step_id": "s2", "tool": "grep", "parameters": {"pattern": "set_cookie\\(", "paths": ["auth", "middleware", "tests"]}, "risk": "low", "confidence": 0.88},` +
		` {"step_id": "s3", "tool": "find_symbols", "parameters": {"name": "SessionMiddleware", "kinds": ["class", "function"]}, "risk": "medium", "confidence": 0.75}],` +
		` "estimated_tokens": 5400, "requires_network": false}`
	const execution = `{"status": "success", "results": [` +
		`{"step_id": "s1", "status": "ok", "duration_ms": 18.52, "lines": 120, "excerpt": "def login(request):\n    user = authenticate(request)\n    if user is None:\n        return redirect(\"/login\")\n    session = create_session(user)\n    return set_cookie(redirect(\"/\"), session)"},` +
		` {"step_id": "s2", "status": "ok", "duration_ms": 44.01, "matches": [{"file": "auth/login.py", "line": 42}, {"file": "middleware/session.py", "line": 17}, {"file": "tests/test_login.py", "line": 88}]},` +
		` {"step_id": "s3", "status": "ok", "duration_ms": 9.75, "symbols": [{"name": "SessionMiddleware", "kind": "class", "file": "middleware/session.py", "line": 9}]}],` +
		` "tokens": {"input": 3120, "output": 845}, "attempts": 1, "warnings": [], "error": null}`
	return []byte(`{"envelope_id": "env_00000000000000a1", "request_id": "req_00000000000000b2", "user_id": "user-42", "session_id": "sess_00000000000000c3", ` +
		`"raw_input": "Trace how a user logs in and tell me where the session cookie is set, please.", "received_at": "2025-12-10T10:00:00.123456", ` +
		`"outputs": {"perception": {"normalized_input": "trace how a user logs in and tell me where the session cookie is set", "language": "en", ` +
		`"entities": ["login", "session", "cookie"], "scores": [0.91, 0.87, 0.66], "context": {"repository": "web-app", "branch": "main", "files_indexed": 1841}}, ` +
		`"intent": {"intent": "trace_flow", "confidence": 0.94, "goals": ["find login handler", "find cookie creation"], "constraints": ["read only"], ` +
		`"ambiguities": [], "clarification_needed": false}, "plan": ` + plan + `, "execution": ` + execution + `}, ` +
		`"current_stage": "execution", "stage_order": ["perception", "intent", "plan", "execution", "critic", "integration"], ` +
		`"iteration": 1, "max_iterations": 3, "llm_call_count": 4, "max_llm_calls": 10, "agent_hop_count": 4, "max_agent_hops": 21, ` +
		`"terminal_reason": null, "terminated": false, "termination_reason": null, ` +
		`"clarification_pending": false, "clarification_question": null, "clarification_response": null, ` +
		`"confirmation_pending": false, "confirmation_id": null, "confirmation_message": null, "confirmation_response": null, ` +
		`"completed_stages": [], "current_stage_number": 1, "max_stages": 5, "all_goals": ["find login handler", "find cookie creation"], ` +
		`"remaining_goals": ["find login handler", "find cookie creation"], ` +
		`"goal_completion_status": {"find login handler": "pending", "find cookie creation": "pending"}, "prior_plans": [], ` +
		`"critic_feedback": ["look at the middleware too"], "processing_history": [` +
		`{"agent": "perception", "stage_order": 0, "started_at": "2025-12-10T10:00:00.200000Z", "completed_at": "2025-12-10T10:00:01.100000Z", "duration_ms": 900, "status": "success", "error": null, "llm_calls": 1}, ` +
		`{"agent": "intent", "stage_order": 1, "started_at": "2025-12-10T10:00:01.200000Z", "completed_at": "2025-12-10T10:00:02.300000Z", "duration_ms": 1100, "status": "success", "error": null, "llm_calls": 1}], ` +
		`"errors": [], "completed_at": null, "metadata": {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "client": "python", "priority": 3, "tags": ["web", "auth"]}, ` +
		`"request_context": {"request_id": "req_00000000000000b2", "user_id": "user-42", "roles": ["developer", "reviewer"]}}`)
}

func compacted(src []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, src); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// sessionFlat is a flat envelope of about 900 bytes as an orchestration session keeps it.
func sessionFlat() []byte {
	return transcode.AppendMsgPack(nil, []byte(`{"envelope_id":"env_00000000000000a1","request_id":"req_00000000000000b2","user_id":"user-42","session_id":"sess_00000000000000c3",`+
		`"raw_input":"Trace how a user logs in.","received_at":"2025-12-10T10:00:00.123456Z","request_context":{"request_id":"r","roles":["developer"]},`+
		`"current_stage":"s2","outputs":{"a1":{"text":"the handler is in auth/login.py","n":3,"files":["auth/login.py","middleware/session.py"],`+
		`"summary":"set_cookie is called once, in the middleware, after the session was written to the store; nothing else touches it","cost":0.0123,`+
		`"notes":["no test covers the expiry","the flag http_only is set"]}},"stage_order":["s1","s2","s3"],`+
		`"iteration":1,"max_iterations":5,"llm_call_count":1,"max_llm_calls":10,"agent_hop_count":1,"max_agent_hops":10,"terminated":false,`+
		`"interrupt_pending":false,"tool_call_count":0,"tokens_in":120,"tokens_out":45,"terminal_reason":null,"termination_reason":null,`+
		`"completed_stage_set":{"s1":true},"metadata":{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","client":"python"}}`))
}

func TestSamples(t *testing.T) {
	if n := len(fullFlat()); n < 3800 || n > 4700 {
		t.Errorf("fullFlat has %d bytes, want about 4 KiB", n)
	}
	if !json.Valid(fullFlat()) {
		t.Error("fullFlat is no JSON")
	}
	out, _, err := testEngine().Process(nil, fullFlat())
	if err != nil || !strings.Contains(string(out), `"current_stage":"critic"`) {
		t.Errorf("fullFlat: %v\n%s", err, out)
	}
	if n := len(sessionFlat()); n < 650 || n > 950 {
		t.Errorf("sessionFlat has %d bytes", n)
	}
}
