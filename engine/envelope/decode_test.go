package envelope

import (
	"strings"
	"testing"

	"trunkline/codec/transcode"
)

// parts builds an envelope of either shape in either form: base members and one more.
type parts struct {
	form  Form
	shape Shape
}

func (p parts) bytes(text string) []byte {
	if p.form == JSON {
		return []byte(text)
	}
	return transcode.AppendMsgPack(nil, []byte(text))
}

// with returns an envelope in which the member of key k has a value.
func (p parts) with(k Key, value string) []byte {
	if p.shape == Flat {
		if k == EnvelopeID {
			return p.bytes(`{"envelope_id":` + value + `}`)
		}
		return p.bytes(`{"envelope_id":"e","` + k.String() + `":` + value + `}`)
	}
	groups := map[group]string{identity: `"envelope_id":"e"`, pipeline: ``, bounds: ``}
	member := `"` + k.name(Nested) + `":` + value
	g := infos[k].group
	beside := ""
	switch {
	case k == EnvelopeID:
		groups[identity] = member
	case g == top:
		beside = "," + member
	case groups[g] != "":
		groups[g] += "," + member
	default:
		groups[g] = member
	}
	text := `{"x":1` + beside
	for g, name := range groupNames {
		if members, ok := groups[group(g)]; ok {
			text += `,"` + name + `":{` + members + `}`
		}
	}
	return p.bytes(text + "}")
}

// everywhere are the two forms of the two shapes.
var everywhere = [...]parts{{JSON, Flat}, {JSON, Nested}, {MsgPack, Flat}, {MsgPack, Nested}}

func (p parts) String() string {
	return [...]string{"json", "msgpack"}[p.form] + "/" + [...]string{"flat", "nested"}[p.shape]
}

// refused checks the problem of a member's value wherever the member may stand.
func refused(t *testing.T, k Key, value, want string, where ...parts) {
	t.Helper()
	for _, p := range where {
		if p.shape == Nested && infos[k].group == noGroup {
			continue
		}
		var e Env
		got := e.Decode(p.form, p.with(k, value))
		path := k.String()
		if g := infos[k].group; p.shape == Nested && g < numGroups {
			path = groupNames[g] + "." + k.name(Nested)
		}
		if got == nil || got.Field != path || got.Text != want {
			t.Errorf("%v %s = %s: %v, want %s %s", p, k, value, got, path, want)
		}
	}
}

func accepted(t *testing.T, k Key, value string, where ...parts) {
	t.Helper()
	for _, p := range where {
		if p.shape == Nested && infos[k].group == noGroup {
			continue
		}
		var e Env
		if got := e.Decode(p.form, p.with(k, value)); got != nil {
			t.Errorf("%v %s = %s: %s", p, k, value, got.Message())
		}
	}
}

func TestMembersOfWrongType(t *testing.T) {
	noText := []string{`1`, `true`, `[]`, `{}`}
	for k := range numKeys {
		var want string
		var values []string
		switch infos[k].class {
		case text, nullText, identifier, moment, nullMoment:
			want, values = wantText, noText
		case counter, wideCounter:
			want, values = wantInt, []string{`"3"`, `2.5`, `true`, `[]`, `{}`, `""`}
		case flag, nullFlag:
			want, values = wantFlag, []string{`1`, `"true"`, `[]`}
		case texts:
			want, values = wantTexts, []string{`"a"`, `{}`, `["a",1]`, `[null]`}
		case objects:
			want, values = wantMaps, []string{`{}`, `"a"`, `[1]`, `[{},"a"]`, `[null]`}
		case stageSet:
			want, values = "must be an object of booleans or an array of strings", []string{`"a"`, `1`, `[1]`, `{"a":1}`, `{"a":null}`}
		case textMap:
			want, values = "must be an object of strings", []string{`[]`, `"a"`, `{"a":1}`, `{"a":null}`}
		case opaqueMap, outputMap, nullMap:
			want, values = wantMap, []string{`[]`, `"a"`, `1`, `false`}
		}
		for _, v := range values {
			refused(t, k, v, want, everywhere[:]...)
		}
		if k != EnvelopeID {
			accepted(t, k, `null`, everywhere[:]...)
		}
	}
}

func TestCounters(t *testing.T) {
	a, b := everywhere[:2], everywhere[2:]
	refused(t, Iteration, `-1`, "must be non-negative, got -1", everywhere[:]...)
	refused(t, Iteration, `2147483648`, "value 2147483648 exceeds i32 range", everywhere[:]...)
	accepted(t, Iteration, `2147483647`, everywhere[:]...)
	accepted(t, TokensIn, `9223372036854775807`, everywhere[:]...)
	refused(t, TokensIn, `9223372036854775808`, "value 9223372036854775808 exceeds i64 range", b...)
	refused(t, Iteration, `18446744073709551615`, "value 18446744073709551615 exceeds i32 range", b...)
	refused(t, TokensIn, `9223372036854775808`, wantInt, a...)
	for _, k := range [...]Key{MaxIterations, MaxLLMCalls, MaxAgentHops, CurrentStageNumber, MaxStages} {
		refused(t, k, `0`, "must be at least 1", a...)
		accepted(t, k, `0`, b...)
	}
	for _, spelling := range [...]string{`3.0`, `3e0`, `30e-1`} {
		accepted(t, Iteration, spelling, a...)
		refused(t, Iteration, spelling, wantInt, b...)
	}
}

func TestTexts(t *testing.T) {
	a, b := everywhere[:2], everywhere[2:]
	id := strings.Repeat("i", 1024)
	for _, k := range [...]Key{EnvelopeID, RequestID, UserID, SessionID} {
		accepted(t, k, `"`+id+`"`, everywhere[:]...)
		refused(t, k, `"`+id+`i"`, tooLongID, everywhere[:]...)
	}
	accepted(t, RawInput, `"`+id+`i"`, everywhere[:]...)
	for _, k := range [...]Key{ReceivedAt, CompletedAt, CreatedAt} {
		refused(t, k, `"yesterday"`, wantTime, everywhere[:]...)
		refused(t, k, `"2025-13-01T00:00:00Z"`, wantTime, everywhere[:]...)
		accepted(t, k, `"2025-12-10 10:00"`, everywhere[:]...)
	}
	refused(t, StageOrder, `["a",""]`, "must not hold empty names", a...)
	refused(t, StageOrder, `["a","b","a"]`, "must not repeat a name", a...)
	refused(t, StageOrder, `["a","\u0061"]`, "must not repeat a name", a...)
	accepted(t, StageOrder, `["a","","a"]`, b...)
	accepted(t, AllGoals, `["g","g",""]`, everywhere[:]...)
}

func TestOutputsAndMetadata(t *testing.T) {
	f := func(p parts, k Key, value, field, text string) {
		t.Helper()
		var e Env
		if got := e.Decode(p.form, p.with(k, value)); got == nil || got.Field != field || got.Text != text {
			t.Errorf("%v %s: %+v, want %s %s", p, value, got, field, text)
		}
	}
	for _, p := range everywhere {
		f(p, Outputs, `{"a":{},"plan":"x"}`, "outputs.plan", wantMap)
		f(p, Outputs, `{"p\u006can":[]}`, "outputs.plan", wantMap)
		accepted(t, Outputs, `{"a":{},"b":null,"":{}}`, p)
		accepted(t, Outputs, `{"a":1,"a":{}}`, p)
	}
	f(everywhere[0], Metadata, `{"prior_outputs":[]}`, "metadata.prior_outputs", wantMap)
	f(everywhere[1], Metadata, `{"prior_outputs":1}`, "audit.metadata.prior_outputs", wantMap)
	accepted(t, Metadata, `{"prior_outputs":1,"prior_outputs":null}`, everywhere[:]...)
	accepted(t, Metadata, `{"prior_outputs":1}`, everywhere[2:]...)
}

func TestNotAnEnvelope(t *testing.T) {
	f := func(text, field, what, message string) {
		t.Helper()
		for _, form := range [...]Form{JSON, MsgPack} {
			var e Env
			got := e.Decode(form, parts{form, Flat}.bytes(text))
			if got == nil || got.Field != field || got.Text != what || got.Message() != message {
				t.Errorf("%s: %+v %s, want %q %q %q", text, got, got.Message(), field, what, message)
			}
		}
	}
	const noIdentity = "missing field `identity`"
	for _, text := range [...]string{`[1]`, `"x"`, `null`, `3`} {
		f(text, "", "must be an object", "must be an object")
	}
	for _, text := range [...]string{`{}`, `{"foo":1}`, `{"iteration":1,"metadata":{}}`, `{"identity":1,"envelope_id":"e"}`, `{"identity":null}`} {
		f(text, "", noIdentity, noIdentity)
	}
	f(`{"identity":{"envelope_id":"e"},"pipeline":{}}`, "bounds", missingText, "missing field `bounds`")
	f(`{"identity":{"envelope_id":"e"},"bounds":{}}`, "pipeline", missingText, "missing field `pipeline`")
	f(`{"identity":{},"bounds":{},"pipeline":{}}`, "identity.envelope_id", missingText, "missing field `identity.envelope_id`")
	f(`{"identity":{"envelope_id":""},"bounds":{},"pipeline":{}}`, "identity.envelope_id", "cannot be empty", "identity.envelope_id cannot be empty")
	f(`{"identity":{"envelope_id":"e"},"bounds":[],"pipeline":{}}`, "bounds", wantMap, "bounds must be an object")
	f(`{"identity":{"envelope_id":"e"},"bounds":{},"pipeline":{},"audit":1}`, "audit", wantMap, "audit must be an object")
}

func TestShapeIsRecognised(t *testing.T) {
	f := func(text string, want Shape) {
		t.Helper()
		for _, form := range [...]Form{JSON, MsgPack} {
			if e := decoded(t, form, (parts{form, Flat}).bytes(text)); e.shape != want || e.form != form {
				t.Errorf("%s: shape %v form %v", text, e.shape, e.form)
			}
		}
	}
	for _, core := range [...]string{`"envelope_id":null`, `"request_id":"r"`, `"raw_input":""`, `"outputs":{}`, `"current_stage":"s"`, `"raw\u005finput":""`} {
		f(`{`+core+`}`, Flat)
		f(`{"identity":null,"pipeline":5,`+core+`}`, Flat) // a group's name is ignored in the flat shape
	}
	f(`{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{},"iteration":"x","user_id":5}`, Nested) // nor a flat one there
	f(`{"identity":5,"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{}}`, Nested)
}

// TestRepeatedNames checks that the last of a repeated name is the one that counts, and the only
// one judged.
func TestRepeatedNames(t *testing.T) {
	for _, form := range [...]Form{JSON, MsgPack} {
		e := decoded(t, form, (parts{form, Flat}).bytes(`{"envelope_id":"a","iteration":"x","\u0069teration":7,"envelope_id":"b",
			"outputs":{"p":1,"q":{},"p":{"n":2}}}`))
		if string(e.Text(EnvelopeID)) != "b" || e.Int(Iteration) != 7 || e.outputCount() != 2 {
			t.Errorf("%v: id %s iteration %d outputs %d", form, e.Text(EnvelopeID), e.Int(Iteration), e.outputCount())
		}
		out := parse(t, form, e.Append(nil))
		if len(out["outputs"].(map[string]any)) != 2 {
			t.Errorf("outputs %v", out["outputs"])
		}
		e = decoded(t, form, (parts{form, Flat}).bytes(`{"identity":{"envelope_id":"a","user_id":5},"bounds":{"max_llm_calls":1},"pipeline":{},
			"bounds":{"x":1},"identity":{"envelope_id":"b","session_id":"s"}}`))
		if string(e.Text(EnvelopeID)) != "b" || string(e.Text(UserID)) != "anonymous" || e.Int(MaxLLMCalls) != 10 {
			t.Errorf("%v nested: id %s user %s max %d", form, e.Text(EnvelopeID), e.Text(UserID), e.Int(MaxLLMCalls))
		}
	}
}

func TestOldNames(t *testing.T) {
	f := func(members string, k Key, want string, echoed string) {
		t.Helper()
		e := decoded(t, JSON, []byte(`{"envelope_id":"e",`+members+`}`))
		if got := string(e.Value(k).Raw); got != want {
			t.Errorf("%s: %s is %s, want %s", members, k, got, want)
		}
		if out := string(e.Append(nil)); !strings.Contains(out, echoed) {
			t.Errorf("%s: no %s in %s", members, echoed, out)
		}
	}
	f(`"dag_mode":true`, ParallelMode, `true`, `"dag_mode":true`)
	f(`"dag_mode":5,"parallel_mode":false`, ParallelMode, `false`, `"dag_mode":5`)
	f(`"dag_mode":true,"parallel_mode":null`, ParallelMode, `true`, `"dag_mode":true`)
	f(`"loop_feedback":["l"]`, LoopFeedback, `["l"]`, `"loop_feedback":["l"]`)
	f(`"loop_feedback":["l"]`, LoopFeedback, `["l"]`, `"critic_feedback":["l"]`)
	f(`"loop_feedback":5,"critic_feedback":["c"]`, LoopFeedback, `["c"]`, `"loop_feedback":5`)
	f(`"loop_feedback":["a"],"loop_feedback":["b"]`, LoopFeedback, `["b"]`, `"loop_feedback":["b"]`)
	f(`"loop\u005ffeedback":["l"]`, LoopFeedback, `["l"]`, `"critic_feedback":["l"]`)
}

// TestAllProblemsAreCollected checks what `validate` shows: every member that is wrong.
func TestAllProblemsAreCollected(t *testing.T) {
	out := string(testEngine().Validate(nil, []byte(`{"envelope_id":5,"iteration":"x","outputs":[],"user_id":"u"}`)))
	for _, want := range [...]string{"envelope_id must be a string", "iteration must be an integer", "outputs must be an object"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
}
