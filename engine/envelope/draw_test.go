package envelope

import (
	"fmt"
	"strings"

	"trunkline/codec/transcode"

	"pgregory.net/rapid"
)

// drawn is an envelope's text that boundaries A and B both accept.
type drawn struct {
	t    *rapid.T
	form Form
}

func (d drawn) pick(of ...string) string { return rapid.SampledFrom(of).Draw(d.t, "v") }

func (d drawn) chance(percent int) bool { return rapid.IntRange(0, 99).Draw(d.t, "p") >= 100-percent }

// opaque draws a value that no one looks into.
func (d drawn) opaque() string {
	return d.pick(`1`, `null`, `"x"`, `{"a": [1.50, {"b": null}]}`, `[]`, `{}`, `true`, `"\u00e9\n"`)
}

func (d drawn) text() string {
	return d.pick(`"a"`, `"b c"`, `""`, `"\u0061"`, `"é\"\\"`, `"COMPLETED"`, `"completed"`)
}

func (d drawn) set() string {
	return d.pick(`{}`, `[]`, `{"s1": true}`, `{"s1": true, "s2": false}`, `{"s1": true, "s\u0031": false, "é\"": true}`, `["s1"]`,
		`["s2", "s\u0032", "é\""]`)
}

func (d drawn) interrupt() string {
	kind := d.pick(`"clarification"`, `"confirmation"`, `"Checkpoint"`, `"CLARIFICATION"`, `"unspecified"`)
	return `{"kind": ` + kind + d.pick(``, `, "id": `+d.text()) + d.pick(``, `, "question": `+d.text(), `, "message": `+d.text()) +
		d.pick(``, `, "response": null`, `, "response": {"text": `+d.text()+`}`, `, "response": {"approved": false}`) + d.pick(``, `, "x": 1`) + `}`
}

func (d drawn) reason() string {
	return d.pick(`null`, `"completed_successfully"`, `"COMPLETED"`, `"clarification_required"`, `"CONFIRMATION_REQUIRED"`, `"max_LLM_calls_exceeded"`,
		`"free text"`, `"Completed"`)
}

// value draws a value for a member.
func (d drawn) value(k Key) string {
	switch k {
	case EnvelopeID:
		return d.pick(`"e"`, `"env_00000000000000a1"`, `"é\u0041"`)
	case TerminalReason:
		return d.reason()
	case CurrentStage:
		return d.pick(`"start"`, `"s1"`, `"\u0065nd"`)
	case StageOrder:
		return d.pick(`[]`, `["s1", "s2"]`, `["é"]`)
	case Interrupt:
		return d.pick(`null`, d.interrupt())
	case Metadata:
		return d.pick(`{}`, `{"a": 1.0}`, `{"prior_outputs": {"p": {}}}`)
	}
	switch infos[k].class {
	case text, identifier:
		return d.text()
	case nullText:
		return d.pick(`null`, d.text())
	case moment:
		return d.pick(`"2025-12-10 10:00"`, `"2025-12-10T10:00:00.123456Z"`)
	case nullMoment:
		return d.pick(`null`, `"2025-12-10T10:00:00,5+05:30"`)
	case counter, wideCounter:
		if d.form == JSON {
			return d.pick(`1`, `2147483647`, `3.0`, `40e-1`)
		}
		return d.pick(`0`, `1`, `2147483647`)
	case flag:
		return d.pick(`true`, `false`)
	case nullFlag:
		return d.pick(`null`, `true`, `false`)
	case texts:
		return d.pick(`[]`, `["g1"]`, `["g1", "é\n", "g1"]`)
	case stageSet:
		return d.set()
	case objects:
		return d.pick(`[]`, `[{"a": 1.10}, {}]`)
	case textMap:
		return d.pick(`{}`, `{"a": "b"}`, `{"\u0061": "é"}`)
	case outputMap:
		return d.pick(`{}`, `{"p": {"n": 12345678901234567890}}`, `{"p": {}, "q\"": {"a": []}, "p": {"a": 1}}`, `{"p": null}`)
	}
	return d.opaque()
}

// member draws one of a map, its name escaped at times.
func (d drawn) member(name, value string) string {
	if name != "" && d.chance(5) {
		name = fmt.Sprintf(`\u%04x`, name[0]) + name[1:]
	}
	return `"` + name + `": ` + value
}

// unknown draws members that the model does not know, some under names that mean something
// elsewhere.
func (d drawn) unknown(list []string, names ...string) []string {
	for _, name := range names {
		if d.chance(10) {
			list = append(list, d.member(name, d.opaque()))
		}
	}
	return list
}

func (d drawn) object(list []string) string {
	if len(list) > 1 {
		list = rapid.Permutation(list).Draw(d.t, "order")
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// flat draws a flat envelope.
func (d drawn) flat() string {
	list := []string{d.member("envelope_id", d.value(EnvelopeID))}
	for k := RequestID; k < numKeys; k++ {
		if !d.chance(35) {
			continue
		}
		list = append(list, d.member(k.String(), d.value(k)))
		if d.chance(5) {
			list = append(list, d.member(k.String(), d.value(k)))
		}
	}
	for _, old := range [...]struct {
		name string
		k    Key
	}{{dagMode, ParallelMode}, {loopFeedback, LoopFeedback}} {
		if d.chance(15) {
			list = append(list, d.member(old.name, d.value(old.k)))
		}
	}
	list = d.unknown(list, "trace", "pipeline", "bounds", "identity_", "audit", "question", "")
	if d.chance(10) {
		list = append(list, d.member("_ext", d.ext()))
	}
	return d.object(list)
}

func (d drawn) ext() string {
	return d.pick(`5`, `{}`, `{"bounds": {"x": 1}}`, `{"pipeline": {"y": [2], "iteration": 7}, "top": {"user_id": "u", "outputs": 3, "z": 1}}`,
		`{"flat": {"bounds": 1}, "audit": 4, "other": {"a": 1}}`, `{"flat": {"clarification_question": "q", "terminal_reason": 5, "identity": {}}}`)
}

// nested draws a nested envelope.
func (d drawn) nested() string {
	var list []string
	for g := range numGroups {
		var members []string
		for _, k := range nestedKeys[g] {
			if k == EnvelopeID || d.chance(40) {
				members = append(members, d.member(k.name(Nested), d.value(k)))
			}
		}
		members = d.unknown(members, "x", "iteration_", "user_name", "clarification_question", "critic_feedback", "raw_input")
		if len(members) > 0 || g <= bounds {
			list = append(list, d.member(groupNames[g], d.object(members)))
		}
	}
	for _, k := range [...]Key{RawInput, ReceivedAt, Outputs} {
		if d.chance(50) {
			list = append(list, d.member(k.name(Nested), d.value(k)))
		}
	}
	list = d.unknown(list, "trace", "iteration", "user_id", "clarification_pending", "loop_feedback", "x")
	if d.chance(10) {
		list = append(list, d.member("_ext", d.ext()))
	}
	return d.object(list)
}

// encode returns a text in the form that is drawn for.
func (d drawn) encode(text string) []byte {
	if d.form == JSON {
		return []byte(text)
	}
	return transcode.AppendMsgPack(nil, []byte(text))
}

func forms(t *rapid.T) drawn {
	return drawn{t, rapid.SampledFrom([]Form{JSON, MsgPack}).Draw(t, "form")}
}
