package envelope

import (
	"reflect"
	"strings"
	"testing"
)

// crossed decodes a text and appends it in the other shape, in both forms.
func crossed(t *testing.T, text string, look func(form Form, m map[string]any)) {
	t.Helper()
	for _, form := range [...]Form{JSON, MsgPack} {
		e := decoded(t, form, (parts{form, Flat}).bytes(text))
		look(form, parse(t, form, e.AppendAs(nil, Flat+Nested-e.Shape())))
	}
}

// at follows a path through maps.
func at(m map[string]any, path string) any {
	var v any = m
	for _, name := range strings.Split(path, ".") {
		inner, _ := v.(map[string]any)
		v = inner[name]
	}
	return v
}

// becomes checks members of an envelope in the other shape; want is JSON, "" for absent.
func becomes(t *testing.T, text string, path, atA, atB string) {
	t.Helper()
	crossed(t, text, func(form Form, m map[string]any) {
		t.Helper()
		want := atA
		if form == MsgPack {
			want = atB
		}
		got := at(m, path)
		if want == "" && got == nil {
			return
		}
		if want == "" || !reflect.DeepEqual(got, parse(t, JSON, []byte(`{"v":`+want+`}`))["v"]) {
			t.Errorf("%v %s\n%s is %v, want %s", form, text, path, got, want)
		}
	})
}

func TestFlatBecomesNested(t *testing.T) {
	f := func(members, path, want string) {
		t.Helper()
		becomes(t, `{"envelope_id":"e",`+members+`}`, path, want, want)
	}
	f(`"iteration":2`, "pipeline.iteration", `2`)
	f(`"iteration":2`, "iteration", ``)
	f(`"raw_input":"x"`, "raw_input", `"x"`)
	f(`"critic_feedback":["c"]`, "execution.loop_feedback", `["c"]`)
	f(`"loop_feedback":["c"]`, "execution.loop_feedback", `["c"]`)
	f(`"loop_feedback":["l"],"critic_feedback":["c"]`, "_ext.flat.loop_feedback", `["l"]`)
	f(`"dag_mode":true`, "pipeline.parallel_mode", `true`)
	f(`"completed_stage_set":{"a":true,"b":false}`, "pipeline.completed_stage_set", `["a"]`)
	f(`"active_stages":{"b":false}`, "pipeline.active_stages", ``)
	f(`"trace":{"a":1}`, "trace", `{"a":1}`)
	f(`"bounds":7`, "_ext.flat.bounds", `7`)
	f(`"_ext":{"bounds":{"x":1},"top":{"user_id":"u"}}`, "bounds.x", `1`)
	f(`"_ext":{"bounds":{"x":1},"top":{"user_id":"u"}}`, "user_id", `"u"`)
	f(`"_ext":{"bounds":{"iteration":1},"pipeline":{"iteration":2}}`, "_ext.flat._ext.pipeline.iteration", `2`)
	f(`"_ext":{"bounds":{"iteration":1}}`, "bounds.iteration", `1`) // not a member of that group
	f(`"_ext":5`, "_ext.flat._ext", `5`)
	f(`"user_id":"u"`, "identity.request_id", ``) // until FillAs
	for _, s := range [...][2]string{{"completed", "COMPLETED"}, {"policy_violation", "POLICY_VIOLATION"}} {
		becomes(t, `{"envelope_id":"e","terminated":true,"terminal_reason":"`+s[0]+`"}`, "bounds.terminal_reason", `"`+s[1]+`"`, `"`+s[0]+`"`)
	}
	f(`"terminal_reason":"just so"`, "bounds.terminal_reason", `"just so"`)
	f(`"termination_reason":""`, "_ext.flat.termination_reason", `""`)
}

func TestQuestionsBecomeAnInterrupt(t *testing.T) {
	const asking = `{"envelope_id":"e","clarification_pending":true,"clarification_question":"Q?","terminal_reason":"clarification_required"}`
	f := func(text, path, want string) {
		t.Helper()
		becomes(t, text, path, want, want)
	}
	f(asking, "interrupts.interrupt_pending", `true`)
	f(asking, "interrupts.interrupt", `{"kind":"clarification","question":"Q?"}`)
	f(asking, "bounds.terminal_reason", ``)
	becomes(t, asking, "_ext", ``, `{"flat":{"terminal_reason":"clarification_required"}}`) // only boundary A says so by itself
	const answered = `{"envelope_id":"e","confirmation_pending":false,"confirmation_id":"c","confirmation_message":"M","confirmation_response":false,` +
		`"clarification_response":""}`
	f(answered, "interrupts.interrupt_pending", `false`)
	f(answered, "interrupts.interrupt", `{"kind":"clarification","response":{"text":""}}`)
	f(answered, "_ext.flat", `{"confirmation_id":"c","confirmation_message":"M","confirmation_response":false}`)
	const approving = `{"envelope_id":"e","confirmation_pending":true,"confirmation_id":"c","confirmation_message":"M","confirmation_response":true,"clarification_question":"old"}`
	f(approving, "interrupts.interrupt", `{"kind":"confirmation","id":"c","message":"M","response":{"approved":true}}`)
	f(approving, "_ext.flat", `{"clarification_question":"old"}`)
	const other = `{"envelope_id":"e","interrupt_pending":true,"interrupt":{"kind":"timeout"},"clarification_pending":true}`
	f(other, "interrupts.interrupt", `{"kind":"timeout"}`)
	f(other, "_ext.flat", `{"clarification_pending":true}`)
	const nothing = `{"envelope_id":"e","interrupt_pending":true,"clarification_question":"old"}`
	f(nothing, "interrupts.interrupt", ``)
	f(nothing, "_ext.flat.clarification_question", `"old"`)
}

func TestNestedBecomesFlat(t *testing.T) {
	f := func(bounds, beside, path, atA, atB string) {
		t.Helper()
		becomes(t, `{"identity":{"envelope_id":"e","tenant":"t"},"pipeline":{"completed_stage_set":["a"]},"bounds":{`+bounds+`}`+beside+`}`, path, atA, atB)
	}
	same := func(beside, path, want string) {
		t.Helper()
		f(``, beside, path, want, want)
	}
	same(``, "envelope_id", `"e"`)
	same(``, "identity", ``)
	same(``, "_ext.identity.tenant", `"t"`)
	same(``, "completed_stage_set", `{"a":true}`)
	same(`,"user_id":5,"trace":[]`, "_ext.top.user_id", `5`)
	same(`,"user_id":5,"trace":[]`, "trace", `[]`)
	same(`,"execution":{"loop_feedback":["l"]}`, "critic_feedback", `["l"]`)
	same(`,"_ext":{"flat":{"bounds":7,"identity":{},"clarification_question":5}}`, "bounds", `7`)
	same(`,"_ext":{"flat":{"bounds":7,"identity":{},"clarification_question":5}}`, "_ext.top._ext.flat", `{"identity":{},"clarification_question":5}`)
	f(`"terminal_reason":"Policy_Violation"`, ``, "terminal_reason", `"denied_by_policy"`, `"Policy_Violation"`)
	const asks = `,"interrupts":{"interrupt_pending":true,"interrupt":{"kind":"CLARIFICATION","id":"i","question":"Q?","response":{"text":"A"}}}`
	same(asks, "clarification_pending", `true`)
	same(asks, "clarification_question", `"Q?"`)
	same(asks, "clarification_response", `"A"`)
	same(asks, "interrupt.id", `"i"`)
	f(``, asks, "terminal_reason", `"clarification_required"`, ``)
	f(`"terminated":true`, asks, "terminal_reason", ``, ``)
	const approved = `,"interrupts":{"interrupt_pending":false,"interrupt":{"kind":"confirmation","id":"i","message":"M","response":{"approved":false}}}`
	same(approved, "confirmation_id", `"i"`)
	same(approved, "confirmation_message", `"M"`)
	same(approved, "confirmation_response", `false`)
	f(``, approved, "confirmation_pending", `false`, ``)
	f(``, approved, "terminal_reason", ``, ``)
}

func TestFillAs(t *testing.T) {
	for _, form := range [...]Form{JSON, MsgPack} {
		e := decoded(t, form, (parts{form, Flat}).bytes(`{"raw_input":"x"}`))
		e.FillAs(Nested, clockNow, fixedID)
		m := parse(t, form, e.AppendAs(nil, Nested))
		if at(m, "identity.envelope_id") != "env_0123456789abcdef" || at(m, "audit.created_at") != "2026-01-02T03:04:05.000000Z" {
			t.Errorf("%v: %v", form, m)
		}
	}
}
