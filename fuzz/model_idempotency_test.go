package fuzz

import (
	"fmt"
	"slices"
	"strings"
)

// keptAnswer is what the first request with an idempotency key got, and which request that was.
type keptAnswer struct {
	request string
	body    object     // of a RESPONSE
	frames  []expected // of methods that make their frames themselves
	bad     *refusal
	at      int64 // ms
}

// day is how long a key is kept, in milliseconds.
const day = 24 * 3600 * 1000

// fields lists the fields of each method that changes something (is durable or lazy, in
// handlers/ipc/methods.txt); such a method ignores all others.
var fields = map[string][]string{
	"CreateProcess":   {"pid", "request_id", "user_id", "session_id", "priority", "quota", "schedule"},
	"ScheduleProcess": {"pid"}, "GetNextRunnable": {"start"}, "TransitionState": {"pid", "new_state", "reason"},
	"TerminateProcess": {"pid", "reason"},
	"RecordUsage": {"pid", "llm_calls", "tool_calls", "tokens_in", "tokens_out", "agent_hops", "iterations",
		"inference_requests",
		"inference_input_chars"},
	"CheckRateLimit": {"user_id", "record"}, "SetQuotaDefaults": {"quota"},
	"CreateEnvelope": {"raw_input", "request_id", "user_id", "session_id", "stage_order", "metadata"},
	"UpdateEnvelope": {"envelope", "resume"}, "ExecutePipeline": {"envelope", "pipeline_config"},
	"CloneEnvelope":      {"envelope"},
	"InitializeSession":  {"process_id", "pipeline_config", "envelope", "force"},
	"GetNextInstruction": {"process_id"}, "ReportAgentResult": {"process_id", "agent_name", "success", "error", "output",
		"metrics"},
}

// once executes the first request with an idempotency key, and gives the others its answer.
func (k *call) once(service, method string, run func(*call) object) object {
	v, _ := k.body.get("idempotency_key")
	names := fields[method]
	if service == "commbus" || names == nil || v == nil {
		return run(k)
	}
	key, ok := v.(string)
	switch {
	case !ok:
		k.invalid("idempotency_key must be a string")
		return nil
	case len(key) < 32 || len(key) > 200:
		k.invalid("idempotency_key must have 32 to 200 bytes, got %d", len(key))
		return nil
	}
	print, user := method, ""
	for _, name := range names {
		if v, _ := k.body.get(name); v != nil {
			print += fmt.Sprintf(" %s=%#v", name, v)
		}
	}
	if u, _ := k.body.get("user_id"); slices.Contains(names, "user_id") && isText(u) {
		user = u.(string)
	}
	name := [2]string{user, key}
	if a := k.model.answers[name]; a != nil && k.model.ms < a.at+day {
		if a.request != print {
			k.refuse("FAILED_PRECONDITION", "idempotency_key was used for another request")
			return nil
		}
		k.bad = a.bad
		for _, f := range a.frames {
			k.out = append(k.out, f.under(k.id))
		}
		return a.body
	}
	before := len(k.out)
	body := run(k)
	if keeps(k.bad, body) {
		k.model.answers[name] = &keptAnswer{print, body, slices.Clone(k.out[before:]), k.bad, k.model.ms}
	}
	return body
}

// keeps reports whether an answer is kept.
func keeps(bad *refusal, body object) bool {
	if bad != nil {
		return !strings.Contains("INVALID_ARGUMENT RESOURCE_EXHAUSTED UNAVAILABLE", bad.code)
	}
	allowed, ok := body.get("allowed")
	return !ok || allowed != false
}

// under returns a reply with another id.
func (f expected) under(id string) expected {
	payload := slices.Clone(f.payload)
	for i := range payload {
		if payload[i].key == "id" {
			payload[i].val = id
		}
	}
	return expected{f.typ, payload}
}
