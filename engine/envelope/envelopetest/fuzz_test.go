package envelopetest_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzStep feeds texts to `process`: it never crashes, answers JSON or an error, and a second step
// changes no byte.
func FuzzStep(f *testing.F) {
	for _, over := range []string{`{}`, asking, confirming, applyCritic(`{"verdict":"reintent","satisfied_goals":["g1"],"feedback":"need more"}`),
		applyCritic(`{"verdict":"next_stage","goal_updates":{"satisfied":["g1"]}}`), applyCritic(`{"verdict":"odd"},"integration":{"final_response":"done"}`),
		`{"llm_call_count":10}`, `{"terminal_reason":"Completed"}`, `{"clarification_pending":true,"clarification_response":"the web one"}`,
		`{"confirmation_pending":true,"confirmation_response":false,"stage_order":[]}`,
		`{"interrupt_pending":true,"interrupt":{"kind":"confirmation","response":{"approved":true}},"current_stage":"execution"}`,
		`{"interrupt_pending":false,"outputs":{"perception":{"clarification_needed":true,"clarification_question":"Q?"}}}`,
		`{"current_stage":"execution","outputs":{"execution":{"status":"error"}},"errors":[{"agent":"execution","recoverable":true}]}`,
		`{"outputs":{"perception":{"n":12345678901234567890,"f":0.10},"plan":null},"trace":{"a":[1]},"error":true,"code":"c","message":"m"}`,
		`{"loop_feedback":["l"],"active_stages":{"a":true},"failed_stages":{},"tokens_in":9007199254740993,"created_at":"2025-01-01 00:00"}`} {
		m := with(f, base(f), over)
		f.Add(print(f, m))
		f.Add(print(f, nest(f, m)))
	}
	f.Add(`{"iteration":1,"\u0069teration":2.0,"raw_input":"\ud800"}`)
	f.Add(`{"identity":{"envelope_id":"e"},"pipeline":null,"bounds":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		src := []byte(text)
		out, _, err := newEngine().Process(nil, src)
		if string(src) != text {
			t.Fatal("the input was written to")
		}
		if err != nil {
			refusal(t, string(err.Append(nil)))
			return
		}
		if !json.Valid(src) || !json.Valid(out) {
			t.Fatalf("no JSON: %q", out)
		}
		again, _, err := laterEngine().Process(nil, out)
		if err != nil {
			t.Fatalf("refused its own reply: %s %s\nreply: %s", err.Message, err.Field, out)
		}
		if string(again) != string(out) {
			t.Fatalf("the second step changes the reply\nfirst:  %s\nsecond: %s", out, again)
		}
		properties(t, parse(t, text), parse(t, string(out)))
		for _, c := range []command{newEngine().Create, newEngine().CanContinue, newEngine().Result} {
			if reply, err := c(nil, src); err == nil && !json.Valid(reply) {
				t.Fatalf("no JSON: %q", reply)
			}
		}
		if reply := newEngine().Validate(nil, src); !strings.Contains(string(reply), `"valid":true`) || !json.Valid(reply) {
			t.Fatalf("processed, but not valid: %s", reply)
		}
	})
}

// refusal is what an error object must be (envelope §2.4).
func refusal(t *testing.T, text string) {
	m := parse(t, text)
	code := m["code"]
	if m["error"] != true || code != "parse_error" && code != "invalid_envelope" || m["message"] == "" {
		t.Fatalf("error object %s", text)
	}
	message, _ := m["message"].(string)
	if code == "parse_error" && !strings.HasPrefix(message, "Invalid JSON: ") {
		t.Fatalf("message %q", message)
	}
}
