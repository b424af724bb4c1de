package envelope

import (
	"bytes"
	"testing"
)

// changed decodes {"envelope_id":"e",<members>} in both forms, lets change work on it, and compares
// a member of the reply.
func changed(t *testing.T, members string, k Key, change func(e *Env), want string) {
	t.Helper()
	for _, form := range [...]Form{JSON, MsgPack} {
		p := parts{form, Flat}
		text := `{"envelope_id":"e"}`
		if members != "" {
			text = `{"envelope_id":"e",` + members + `}`
		}
		e := decoded(t, form, p.bytes(text))
		change(e)
		if got := e.Value(k).Raw; !bytes.Equal(got, p.encoded(want)) {
			t.Errorf("%v %s: %s is %q, want %s", p, members, k, got, want)
		}
		if again := decoded(t, form, e.Append(nil)); !bytes.Equal(again.Value(k).Raw, p.encoded(want)) {
			t.Errorf("%v %s: %s is %q in the reply, want %s", p, members, k, again.Value(k).Raw, want)
		}
	}
}

func (p parts) encoded(value string) []byte {
	if value == "" {
		return nil
	}
	return p.bytes(value)
}

func TestSetters(t *testing.T) {
	text := func(s string) func(e *Env) { return func(e *Env) { e.SetText(RawInput, []byte(s)) } }
	changed(t, ``, RawInput, text("a\"\n"), `"a\"\n"`)
	changed(t, `"raw_input":"b"`, RawInput, text(""), `""`)
	changed(t, ``, CurrentStage, func(e *Env) { e.SetText(CurrentStage, []byte("start")) }, `"start"`)
	changed(t, `"completed_at":null`, CompletedAt, func(e *Env) { e.setTime(CompletedAt, clockNow) }, `"2026-01-02T03:04:05.000000Z"`)
	changed(t, ``, Iteration, func(e *Env) { e.SetInt(Iteration, 0) }, `0`)
	changed(t, `"iteration":3`, Iteration, func(e *Env) { e.SetInt(Iteration, 70000) }, `70000`)
	changed(t, `"terminated":true`, Terminated, func(e *Env) { e.SetBool(Terminated, false) }, `false`)
	changed(t, `"confirmation_response":null`, ConfirmationResponse, func(e *Env) { e.SetBool(ConfirmationResponse, false) }, `false`)
	changed(t, `"termination_reason":"x"`, TerminationReason, func(e *Env) { e.SetNull(TerminationReason) }, `null`)
	changed(t, ``, AllGoals, func(e *Env) { e.setStrings(AllGoals, [][]byte{[]byte("a"), []byte(`b"`)}) }, `["a","b\""]`)
	changed(t, ``, AllGoals, func(e *Env) { e.setStrings(AllGoals, nil) }, `[]`)
}

// TestSettersKeepSpelling checks that setting what is there changes nothing.
func TestSettersKeepSpelling(t *testing.T) {
	const src = `{"envelope_id":"\u0065","iteration":3.0,"terminated":false,"received_at":"2026-01-02T03:04:05.000000Z","termination_reason":null,` +
		`"terminal_reason":"COMPLETED"}`
	e := decoded(t, JSON, []byte(src))
	before := string(e.Append(nil))
	e.SetText(EnvelopeID, []byte("e"))
	e.SetInt(Iteration, 3)
	e.SetBool(Terminated, false)
	e.setTime(ReceivedAt, clockNow)
	e.SetNull(TerminationReason)
	e.setReason(CompletedSuccessfully)
	if got := string(e.Append(nil)); got != before {
		t.Errorf("%s\nbecame %s", before, got)
	}
}

func TestListsAndMaps(t *testing.T) {
	add := func(k Key) func(e *Env) {
		return func(e *Env) { e.appendElement(k, (parts{e.form, Flat}).bytes(`{"n":2}`)) }
	}
	changed(t, ``, Errors, add(Errors), `[{"n":2}]`)
	changed(t, `"errors":null`, Errors, add(Errors), `[{"n":2}]`)
	changed(t, `"errors":[]`, Errors, add(Errors), `[{"n":2}]`)
	changed(t, `"errors":[{"n":1}]`, Errors, add(Errors), `[{"n":1},{"n":2}]`)
	set := func(name, value string) func(e *Env) {
		return func(e *Env) { e.SetMember(Metadata, name, (parts{e.form, Flat}).bytes(value)) }
	}
	changed(t, ``, Metadata, set("a", `1`), `{"a":1}`)
	changed(t, `"metadata":{"a":0,"b":2}`, Metadata, set("a", `1`), `{"a":1,"b":2}`)
	changed(t, `"metadata":{"b":2}`, Metadata, set("a", `[]`), `{"b":2,"a":[]}`)
	changed(t, `"metadata":{"a":3,"b":2,"a":4}`, Metadata, set("a", `1`), `{"a":1,"b":2}`)
}

func TestStageSets(t *testing.T) {
	complete := func(e *Env) { e.SetCompleted("s") }
	changed(t, ``, CompletedStageSet, complete, `{"s":true}`)
	changed(t, `"completed_stage_set":{"a":true,"s":false}`, CompletedStageSet, complete, `{"a":true,"s":true}`)
	changed(t, `"completed_stage_set":{"s":true}`, CompletedStageSet, complete, `{"s":true}`)
	changed(t, `"completed_stage_set":["a"]`, CompletedStageSet, complete, `["a","s"]`)
	changed(t, `"completed_stage_set":["s"]`, CompletedStageSet, complete, `["s"]`)
	changed(t, `"failed_stages":{"a":"x","s":"y"}`, FailedStages, complete, `{"a":"x"}`)
	changed(t, `"failed_stages":{"a":"x"}`, FailedStages, func(e *Env) { e.SetFailed("s", []byte(`a "b"`)) }, `{"a":"x","s":"a \"b\""}`)
	e := decoded(t, MsgPack, everywhere[3].bytes(`{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{}}`))
	e.SetCompleted("s")
	if got := parse(t, MsgPack, e.Append(nil))["pipeline"].(map[string]any)["completed_stage_set"]; len(got.([]any)) != 1 {
		t.Errorf("the nested shape has %v", got)
	}
}

func TestRemove(t *testing.T) {
	for _, form := range [...]Form{JSON, MsgPack} {
		p := parts{form, Flat}
		e := decoded(t, form, p.bytes(`{"envelope_id":"e","max_iterations":7,"user_id":"u","interrupt":{"kind":"timeout"},"current_stage":"x"}`))
		for _, k := range [...]Key{MaxIterations, UserID, Interrupt, CurrentStage} {
			e.Remove(k)
			if e.Value(k).Kind != Absent {
				t.Errorf("%v: %s is still there", form, k)
			}
		}
		if e.Int(MaxIterations) != 3 || string(e.Text(UserID)) != "anonymous" || string(e.Text(CurrentStage)) != "start" {
			t.Errorf("%v: defaults %d %s %s", form, e.Int(MaxIterations), e.Text(UserID), e.Text(CurrentStage))
		}
		if e = decoded(t, form, e.Append(nil)); e.Int(MaxIterations) != 3 || e.Value(Interrupt).Kind == Map {
			t.Errorf("%v: the reply shows %d", form, e.Int(MaxIterations))
		}
	}
}

func TestSetReason(t *testing.T) {
	f := func(p parts, was string, r Reason, want string) {
		t.Helper()
		e := decoded(t, p.form, p.with(TerminalReason, was))
		e.setReason(r)
		if got := e.Value(TerminalReason).Raw; !bytes.Equal(got, p.encoded(want)) {
			t.Errorf("%v %s, %v: %q, want %s", p, was, r, got, want)
		}
	}
	for i, p := range everywhere {
		spelling := `"POLICY_VIOLATION"`
		if i == 0 {
			spelling = `"denied_by_policy"`
		}
		f(p, `null`, DeniedByPolicy, spelling)
		f(p, `"Policy_Violation"`, DeniedByPolicy, `"Policy_Violation"`) // kept as it is
		f(p, `"other"`, DeniedByPolicy, spelling)
		none := `null`
		if p.shape == Nested {
			none = ``
		}
		f(p, `"COMPLETED"`, NoReason, none)
	}
}

func TestOutputs(t *testing.T) {
	for _, form := range [...]Form{JSON, MsgPack} {
		p := parts{form, Flat}
		e := decoded(t, form, p.bytes(`{"envelope_id":"e","outputs":{"a":{"n":1},"b":null,"c\"":{}}}`))
		if _, ok := e.output([]byte("b")); ok || e.outputCount() != 2 {
			t.Errorf("%v: %d outputs", form, e.outputCount())
		}
		if raw, ok := e.output([]byte(`c"`)); !ok || !bytes.Equal(raw, p.bytes(`{}`)) {
			t.Errorf("%v: output %q", form, raw)
		}
		e.SetOutput([]byte(`d\`), p.bytes(`{"n":4}`))
		e.SetOutput([]byte("b"), p.bytes(`{"n":2}`))
		e.removeOutput([]byte("a"))
		e.removeOutput([]byte("x"))
		if _, ok := e.output([]byte("a")); ok || e.outputCount() != 3 {
			t.Errorf("%v: %d outputs after the changes", form, e.outputCount())
		}
		again := decoded(t, form, e.Append(nil))
		for name, want := range map[string]string{`d\`: `{"n":4}`, "b": `{"n":2}`, `c"`: `{}`} {
			if raw, ok := again.output([]byte(name)); !ok || !bytes.Equal(raw, p.bytes(want)) {
				t.Errorf("%v: %s is %q in the reply", form, name, raw)
			}
		}
		e.SetOutput([]byte("a"), p.bytes(`{}`)) // it comes back
		if _, ok := e.output([]byte("a")); !ok || e.outputCount() != 4 {
			t.Errorf("%v: %d outputs in the end", form, e.outputCount())
		}
	}
}
