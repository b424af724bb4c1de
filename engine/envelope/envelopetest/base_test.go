package envelopetest_test

import (
	"maps"
	"slices"
	"strings"
)

// baseText is Base of envelope §9.
const baseText = `{"envelope_id":"env_00000000000000a1","request_id":"req_00000000000000b2","user_id":"u1",` +
	`"session_id":"sess_00000000000000c3","raw_input":"trace login","received_at":"2025-12-10T10:00:00Z",` +
	`"stage_order":["perception","intent","plan","execution","critic","integration"],"outputs":{},` +
	`"current_stage":"start","terminated":false}`

// restText is what envelope §3.2 gives for the keys that Base has not.
const restText = `{"iteration":0,"max_iterations":3,"llm_call_count":0,"max_llm_calls":10,"agent_hop_count":0,` +
	`"max_agent_hops":21,"terminal_reason":null,"termination_reason":null,"clarification_pending":false,` +
	`"clarification_question":null,"clarification_response":null,"confirmation_pending":false,"confirmation_id":null,` +
	`"confirmation_message":null,"confirmation_response":null,"completed_stages":[],"current_stage_number":1,"max_stages":5,` +
	`"all_goals":[],"remaining_goals":[],"goal_completion_status":{},"prior_plans":[],"critic_feedback":[],` +
	`"processing_history":[],"errors":[],"completed_at":null,"metadata":{}}`

// emptyText is what envelope §3.2 and §3.7 give for the keys of Base.
const emptyText = `{"envelope_id":"env_00000000000000ff","request_id":"req_00000000000000ff","user_id":"anonymous",` +
	`"session_id":"sess_00000000000000ff","raw_input":"","received_at":"2026-01-02T03:04:05.000000Z",` +
	`"stage_order":[],"outputs":{},"current_stage":"start","terminated":false}`

func base(t reporter) object { return parse(t, baseText) }

// complete is the whole reply for Base before any step.
func complete(t reporter) object { return with(t, base(t), restText) }

// nest is a flat envelope in the nested shape: the table of envelope §3.1, what it adds and what it
// omits.
func nest(t reporter, flat object) object {
	t.Helper()
	d := document{root: object{}, nested: true, model: spec()}
	for name := range groups {
		d.root[name] = object{}
	}
	for key, v := range clone(flat).(object) {
		if key == "terminal_reason" && v != nil {
			v = wireReason(v.(string))
		}
		if !flagOnly(key) && (v != nil || !slices.Contains([]string{"terminal_reason", "termination_reason", "completed_at"}, key)) {
			d.set(key, v)
		}
	}
	return d.root
}

// nestComplete also has the members only the nested shape is completed with.
func nestComplete(t reporter, flat object) object {
	t.Helper()
	nested := nest(t, flat)
	d := document{root: nested, nested: true, model: spec()}
	for _, row := range rows {
		if row.dialect && !row.omitted && !d.has(row.key) {
			d.set(row.key, row.fill(d))
		}
	}
	return nested
}

// steps runs the flat and the nested form of Base with over laid on it and compares both with the
// completed Base under changed. The flat reply is returned.
func steps(t reporter, over, changed string) object {
	t.Helper()
	in, expect := with(t, base(t), over), with(t, complete(t), over, changed)
	text := print(t, in)
	_, flat := process(t, text)
	want(t, text, expect, flat)
	for key := range maps.Keys(with(t, in, changed)) {
		if flagOnly(key) || strings.HasPrefix(key, "interrupt") {
			return flat // Questions look different in the nested shape; they have their own tests.
		}
	}
	text = print(t, nest(t, in))
	_, nested := process(t, text)
	want(t, text, nestComplete(t, expect), nested)
	return flat
}
