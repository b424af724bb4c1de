package envelopetest_test

import (
	"strings"
	"testing"
)

// Interrupts raised by rows b and c, and questions in the nested shape, where the interrupt is all
// there is (envelope §3.1, §5.1).

// derivedOf are the digits of envelope §3.7 for Base's envelope before any iteration.
func derivedOf(stage, kind string) string {
	d := document{root: object{"envelope_id": "env_00000000000000a1", "current_stage_number": number(1)}, model: spec()}
	return d.derived(stage, kind)
}

// raised is what interrupt becomes; the server's clock in it.
func raised(kind, id, asks string) string {
	return `"interrupt_pending":true,"interrupt":{"kind":"` + kind + `","id":"` + id + `",` + asks + `"created_at":"` + clock + `"}`
}

func TestDerivedID(t *testing.T) { // the example of envelope §9.8
	if id := derivedOf("plan", "confirmation"); id != "9084cc48154543a5" {
		t.Fatalf("derived id = %s", id)
	}
}

func TestRaisedInterruptFlat(t *testing.T) { // only where interrupt_pending came in
	clarify := `"outputs":{"perception":{"clarification_needed":true,"clarification_question":"Q?"}}`
	confirm := `"outputs":{"perception":{"confirmation_needed":true,"confirmation_message":"M"}}`
	interruptID := "int_" + derivedOf("perception", "clarification")
	confirmID := "conf_" + derivedOf("perception", "confirmation")
	asksQ := `"current_stage":"perception","clarification_question":"Q?",` + needsClarification
	asksM := `"current_stage":"perception","confirmation_message":"M","confirmation_id":"` + confirmID + `",` + needsConfirmation
	flat(t, `{`+clarify+`}`, `{`+asksQ+`}`)
	flat(t, `{`+confirm+`}`, `{`+asksM+`}`)
	flat(t, `{"interrupt_pending":false,`+clarify+`}`, `{`+asksQ+`,`+raised("clarification", interruptID, `"question":"Q?",`)+`}`)
	flat(t, `{"interrupt_pending":false,`+confirm+`}`, `{`+asksM+`,`+raised("confirmation", confirmID, `"message":"M",`)+`}`)
	flat(t, `{"interrupt":{"kind":"checkpoint","old":1},`+clarify+`}`, `{`+asksQ+`}`)
	flat(t, `{"interrupt_pending":false,"interrupt":{"kind":"checkpoint","old":1},`+clarify+`}`,
		`{`+asksQ+`,`+raised("clarification", interruptID, `"question":"Q?",`)+`}`)
	flat(t, `{"interrupt_pending":true,"interrupt":{"kind":"checkpoint","response":{}},`+clarify+`}`,
		`{`+asksQ+`,`+raised("clarification", interruptID, `"question":"Q?",`)+`}`)
	flat(t, `{"interrupt_pending":false,"outputs":{"perception":{"clarification_needed":true}}}`,
		`{"current_stage":"perception",`+needsClarification+`,`+raised("clarification", interruptID, ``)+`}`)
	flat(t, `{"interrupt_pending":false,"outputs":{"perception":{"confirmation_needed":true,"confirmation_id":"mine"}}}`,
		`{"current_stage":"perception",`+needsConfirmation+`,"confirmation_id":"mine",`+raised("confirmation", "mine", ``)+`}`)
}

// nested lays over (flat keys) on Base, and groups on its nested form, and wants changed (flat
// keys) and then the groups of expect.
func nested(t *testing.T, over, interrupts, changed, expect string) {
	t.Helper()
	text := strings.Replace(print(t, nest(t, with(t, base(t), over))), `"interrupts":{}`, `"interrupts":{`+interrupts+`}`, 1)
	_, got := process(t, text)
	reply := nestComplete(t, with(t, complete(t), over, changed))
	reply["interrupts"] = parse(t, `{`+expect+`}`)
	want(t, text, reply, got)
}

func TestRaisedInterruptNested(t *testing.T) {
	id := "int_" + derivedOf("intent", "clarification")
	nested(t, asking, ``, `{"current_stage":"intent","agent_hop_count":1,"all_goals":["g1"],"remaining_goals":["g1"],
		"goal_completion_status":{"g1":"pending"}}`, raised("clarification", id, `"question":"Which login?",`))
	nested(t, confirming, ``, `{"current_stage":"plan","agent_hop_count":2}`,
		raised("confirmation", "conf_9084cc48154543a5", `"message":"Delete 3 files?",`))
	nested(t, `{"outputs":{"perception":{"confirmation_needed":true,"confirmation_id":"mine"}}}`, ``, `{"current_stage":"perception"}`,
		raised("confirmation", "mine", ``))
	nested(t, `{"outputs":{"perception":{"clarification_needed":true}}}`, `"interrupt_pending":false,"interrupt":{"kind":"timeout","x":1}`,
		`{"current_stage":"perception"}`, raised("clarification", "int_"+derivedOf("perception", "clarification"), ``))
}

func TestNestedQuestionWaits(t *testing.T) {
	f := func(interrupt string) {
		t.Helper()
		interrupts := `"interrupt_pending":true,"interrupt":` + interrupt
		nested(t, `{"current_stage":"plan","outputs":{"plan":{}},"llm_call_count":99,"terminal_reason":"confirmation_required"}`, interrupts,
			`{"terminal_reason":null}`, interrupts)
	}
	f(`{"kind":"clarification","id":"i","question":"Q?"}`)
	f(`{"kind":"CLARIFICATION","response":{"approved":true}}`)
	f(`{"kind":"confirmation","response":{"text":"yes"}}`)
	f(`{"kind":"Confirmation","response":null}`)
	f(`{"kind":"checkpoint"}`)
	f(`{}`)
}

func TestNestedQuestionAnswered(t *testing.T) {
	answer := func(kind, response string) (string, string) {
		rest := `,"interrupt":{"kind":"` + kind + `","id":"i","extra":1.50,"response":` + response + `}`
		return `"interrupt_pending":true` + rest, `"interrupt_pending":false` + rest
	}
	in, out := answer("clarification", `{"text":"yes","received_at":"then"}`)
	nested(t, `{"current_stage":"plan","outputs":{"intent":{"i":1},"plan":{"p":1}}}`, in, `{"current_stage":"intent","agent_hop_count":1,
		"outputs":{},"metadata":{"user_clarification":"yes","prior_outputs":{"intent":{"i":1},"plan":{"p":1}}}}`, out)
	in, out = answer("CONFIRMATION", `{"approved":true}`)
	nested(t, `{"current_stage":"plan","outputs":{"plan":{"confirmation_needed":true}}}`, in,
		`{"current_stage":"execution","agent_hop_count":1}`, out)
	in, out = answer("confirmation", `{"approved":false,"text":"no way"}`)
	nested(t, `{"current_stage":"plan","outputs":{"plan":{}}}`, in, `{`+ended("denied_by_policy", "User denied confirmation")+`}`, out)
}

// TestNestedFlatKeysAreOpaque: the flag keys of the flat shape mean nothing beside `identity`.
func TestNestedFlatKeysAreOpaque(t *testing.T) {
	text := `{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{},"clarification_pending":true,"current_stage":7,"terminated":"x",
		"metadata":[1],"llm_call_count":99}`
	_, got := process(t, text)
	d := document{root: got, nested: true}
	if d.text("current_stage") != "perception" || d.flag("terminated") {
		t.Errorf("flat keys were acted on: %v", got)
	}
	for key, v := range parse(t, text) {
		if group(key) != "" || flagOnly(key) {
			want(t, text, object{key: v}, object{key: got[key]})
		}
	}
}
