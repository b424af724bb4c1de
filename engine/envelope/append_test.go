package envelope

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"trunkline/codec/transcode"
)

// appended decodes a text in a form and returns the reply's members, unchanged otherwise.
func appended(t *testing.T, form Form, text string) map[string]any {
	t.Helper()
	return parse(t, form, decoded(t, form, (parts{form, Flat}).bytes(text)).Append(nil))
}

func keysOf(m map[string]any) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), " ")
}

func TestFlatAdds(t *testing.T) {
	const id = `{"envelope_id":"e"}`
	var all []string
	for k := range flatKeys {
		if !hasNoDefault(k) || k == EnvelopeID {
			all = append(all, k.String())
		}
	}
	slices.Sort(all)
	if got := keysOf(appended(t, JSON, id)); got != strings.Join(all, " ") {
		t.Errorf("boundary A shows %s\nwant %s", got, all)
	}
	const atB = "agent_hop_count current_stage envelope_id interrupt_pending iteration llm_call_count max_agent_hops max_iterations max_llm_calls " +
		"metadata outputs stage_order terminal_reason terminated termination_reason"
	if got := keysOf(appended(t, MsgPack, id)); got != atB {
		t.Errorf("boundary B shows %s\nwant %s", got, atB)
	}
	// What came in is shown, as is what was set, and nothing twice.
	const more = `{"envelope_id":"e","tokens_in":5,"interrupt":null,"user_id":"","errors":[],"parallel_mode":true}`
	if got, want := keysOf(appended(t, MsgPack, more)), atB+" errors interrupt parallel_mode tokens_in user_id"; got != sorted(want) {
		t.Errorf("boundary B shows %s\nwant %s", got, sorted(want))
	}
	e := decoded(t, MsgPack, (parts{MsgPack, Flat}).bytes(id))
	e.SetInt(TokensOut, 1)
	e.SetCompleted("s")
	if got := keysOf(parse(t, MsgPack, e.Append(nil))); got != sorted(atB+" tokens_out completed_stage_set") {
		t.Errorf("after setting: %s", got)
	}
}

func sorted(names string) string {
	list := strings.Fields(names)
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestNestedAdds(t *testing.T) {
	const bare = `{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{}}`
	f := func(m map[string]any, group, want string) {
		t.Helper()
		if got := keysOf(m[group].(map[string]any)); got != sorted(want) {
			t.Errorf("%s: %s\nwant %s", group, got, sorted(want))
		}
	}
	for _, form := range [...]Form{JSON, MsgPack} {
		m := appended(t, form, bare)
		if got := keysOf(m); got != "audit bounds execution identity interrupts outputs pipeline raw_input" {
			t.Errorf("%v: %s", form, got)
		}
		f(m, "identity", "envelope_id user_id")
		f(m, "pipeline", "current_stage stage_order iteration max_iterations parallel_mode")
		f(m, "bounds", "llm_call_count max_llm_calls tool_call_count agent_hop_count max_agent_hops tokens_in tokens_out terminated")
		f(m, "interrupts", "interrupt_pending")
		f(m, "execution", "completed_stages current_stage_number max_stages all_goals remaining_goals goal_completion_status prior_plans loop_feedback")
		f(m, "audit", "processing_history errors metadata")
		e := decoded(t, form, (parts{form, Nested}).bytes(bare))
		e.Fill(clockNow, fixedID)
		m = parse(t, form, e.Append(nil))
		f(m, "identity", "envelope_id request_id session_id user_id")
		f(m, "audit", "processing_history errors metadata created_at")
		if m["received_at"] != "2026-01-02T03:04:05.000000Z" {
			t.Errorf("received_at %v", m["received_at"])
		}
	}
}

// TestNestedOmits checks what is never shown as null or empty (envelope §3.1), even if it came in
// so.
func TestNestedOmits(t *testing.T) {
	f := func(k Key, value string, shown bool) {
		t.Helper()
		for _, p := range everywhere {
			if p.shape == Nested {
				m := parse(t, p.form, decoded(t, p.form, p.with(k, value)).Append(nil))
				if _, got := m[groupNames[infos[k].group]].(map[string]any)[k.name(Nested)]; got != shown {
					t.Errorf("%v %s = %s: shown %v", p, k, value, got)
				}
			}
		}
	}
	for _, k := range [...]Key{ActiveStages, CompletedStageSet, FailedStages, TerminalReason, TerminationReason, Interrupt, CompletedAt} {
		f(k, `null`, false)
	}
	for _, k := range [...]Key{ActiveStages, CompletedStageSet} {
		f(k, `{ }`, false)
		f(k, `[ ]`, false)
		f(k, `["a"]`, true)
		f(k, `{"a":false}`, true)
	}
	f(FailedStages, `{}`, false)
	f(FailedStages, `{"a":""}`, true)
	f(TerminalReason, `""`, false)
	f(TerminalReason, `"CLARIFICATION_REQUIRED"`, false) // not terminated
	f(TerminalReason, `"confirmation_required"`, false)
	f(TerminalReason, `"COMPLETED"`, true)
	f(TerminationReason, `""`, false)
	f(Interrupt, `{}`, true)
	f(UserID, `null`, true)
	f(Metadata, `null`, true)
	f(RequestID, `null`, false) // until Fill
}

// TestEcho checks that what is not changed comes back as it was written, in the order it came.
func TestEcho(t *testing.T) {
	const flat = `{"trace": {"a": [1]},"iteration": 3e0,"envelope_id":"\u0065","x":12345678901234567890,"x":0.10,"outputs": {"p": {"n": 1.50}},` +
		`"received_at":"2025-12-10 10:00","metadata": { }`
	got := string(decoded(t, JSON, []byte(flat+"}")).Append(nil))
	for _, want := range [...]string{`{"trace":{"a": [1]},"iteration":3e0,"envelope_id":"\u0065","x":12345678901234567890,"x":0.10,`,
		`"outputs":{"p": {"n": 1.50}},"received_at":"2025-12-10 10:00","metadata":{ },"user_id":"anonymous"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	const nested = `{"bounds":{"z":[1.0],"max_llm_calls":5.0},"y":"\u00e9","identity":{"envelope_id":"e"},"pipeline":{"\u0071":1}`
	got = string(decoded(t, JSON, []byte(nested+"}")).Append(nil))
	for _, want := range [...]string{`{"bounds":{"z":[1.0],"max_llm_calls":5.0,`, `},"y":"\u00e9","identity":{"envelope_id":"e",`, `"pipeline":{"\u0071":1,`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

func TestDefaultsAreThoseOfTheTable(t *testing.T) {
	f := func(k Key, want string) {
		t.Helper()
		if got := string(defaults[JSON][k]); got != want {
			t.Errorf("%s: %s, want %s", k, got, want)
		}
		if got, want := string(defaults[MsgPack][k]), string(transcode.AppendMsgPack(nil, []byte(want))); got != want {
			t.Errorf("%s in MessagePack: %x, want %x", k, got, want)
		}
	}
	f(UserID, `"anonymous"`)
	f(RawInput, `""`)
	f(CurrentStage, `"start"`)
	f(StageOrder, `[]`)
	f(MaxIterations, `3`)
	f(MaxLLMCalls, `10`)
	f(MaxAgentHops, `21`)
	f(CurrentStageNumber, `1`)
	f(MaxStages, `5`)
	f(Iteration, `0`)
	f(Terminated, `false`)
	f(TerminalReason, `null`)
	f(ConfirmationResponse, `null`)
	f(CompletedAt, `null`)
	f(Interrupt, `null`)
	f(Outputs, `{}`)
	f(GoalCompletionStatus, `{}`)
	f(FailedStages, `{}`)
	f(Errors, `[]`)
}

func TestNamesAreFound(t *testing.T) {
	seen := map[uint8]string{}
	for i := range names.names {
		n := &names.names[i]
		if other, taken := seen[nameHash(n.name)]; taken {
			t.Errorf("%s and %s share a slot: the hash has to be perfect", n.name, other)
		}
		seen[nameHash(n.name)] = n.name
		if got := findName([]byte(n.name)); got != n {
			t.Errorf("%s: found %+v", n.name, got)
		}
	}
	for _, name := range [...]string{"", "x", "envelope_i", "envelope_ids", "Outputs", "nested"} {
		if n := findName([]byte(name)); n != &noName || Known([]byte(name)) {
			t.Errorf("%q is known as %+v", name, n)
		}
	}
	for _, name := range [...]string{"dag_mode", "loop_feedback", "critic_feedback", "identity", "audit", "raw_input"} {
		if !Known([]byte(name)) {
			t.Errorf("%q is not known", name)
		}
	}
	for g := range numGroups {
		for _, k := range nestedKeys[g] {
			if infos[k].group != g || findName([]byte(k.name(Nested))).in != g {
				t.Errorf("%s is listed in %s", k, groupNames[g])
			}
		}
	}
	if Key(numKeys).String() != "unknown" {
		t.Error("a key that is none has a name")
	}
}
