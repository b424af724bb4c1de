package envelope

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
)

// seeds are the worked examples (envelope §9) and one of each oddity.
func seeds() [][]byte {
	const base = `{"envelope_id":"env_00000000000000a1","request_id":"req_00000000000000b2","user_id":"u1","session_id":"sess_00000000000000c3",` +
		`"raw_input":"trace login","received_at":"2025-12-10T10:00:00Z","stage_order":["perception","intent","plan","execution","critic","integration"],`
	list := []string{
		base + `"outputs":{"perception":{"normalized_input":"trace login"},"intent":{"goals":["g1","g2"],"clarification_needed":false}},"current_stage":"start","terminated":false}`,
		base + `"outputs":{"perception":{}},"current_stage":"intent","clarification_pending":true,"clarification_question":"Which login?","terminal_reason":"clarification_required"}`,
		base + `"outputs":{"plan":{"plan_id":"p","approval":"requires_confirmation"}},"confirmation_pending":true,"confirmation_id":"conf_9084cc48154543a5","confirmation_response":true}`,
		base + `"outputs":{"perception":{"n":12345678901234567890,"f":0.10}},"trace":{"a":[1]},"llm_call_count":10,"errors":[{"agent":"execution","recoverable":true}]}`,
		`{"envelope_id":"e1","current_stage":"s2","outputs":{"a1":{"v":1}},"request_context":{"request_id":"r"},"stage_order":["s1","s2"],"iteration":1,"tokens_in":0,` +
			`"terminal_reason":null,"completed_stage_set":{"s1":true},"failed_stages":{"s2":"boom"},"metadata":{"last_agent_failure":{"agent_name":"a2"}}}`,
		`{"identity":{"envelope_id":"e","user_id":"u","x":1},"pipeline":{"completed_stage_set":["a"],"iteration":2},"bounds":{"terminal_reason":"COMPLETED","terminated":true},` +
			`"interrupts":{"interrupt_pending":true,"interrupt":{"kind":"confirmation","id":"i","response":{"approved":true}}},"audit":{"completed_at":null},"user_id":1}`,
		`{"envelope_id":"e","\u0069teration":1,"iteration":3.0,"dag_mode":true,"loop_feedback":["l"],"critic_feedback":["c"],"bounds":1,"_ext":{"audit":{"x":1},"top":{"user_id":2}}}`,
		`{"identity":{"envelope_id":"e"},"pipeline":{"active_stages":{"a":true}},"bounds":{},"bounds":{},"_ext":{"flat":{"clarification_question":"q","terminal_reason":"x"}}}`,
		`{"identity":{"envelope_id":""},"pipeline":null,"bounds":{}}`, `{}`, `[]`, `{"envelope_id":"e","outputs":{"a":null,"b":1,"b":{}}}`,
		`{"envelope_id":"e","iteration":-1}`, `{"envelope_id":"e","received_at":"2025-13-01T00:00:00Z","stage_order":["a","a"]}`,
	}
	var all [][]byte
	for _, text := range list {
		all = append(all, []byte(text))
	}
	return append(all, fullFlat())
}

// fuzzed checks what holds for any input that is well-formed: a problem names a path, and a reply
// decodes again and does not change any more.
func fuzzed(t *testing.T, form Form, src []byte) {
	var e, again Env
	kept := bytes.Clone(src)
	if p := e.Decode(form, src); p != nil {
		if p.Text == "" || p.Message() == "" || !isPath(p.Field) {
			t.Fatalf("problem %+v", p)
		}
		return
	}
	one := e.Append(nil)
	if p := again.Decode(form, one); p != nil {
		t.Fatalf("refused its own reply: %s\nsource %q\nreply  %q", p.Message(), src, one)
	}
	if two := again.Append(nil); !bytes.Equal(one, two) {
		t.Fatalf("the reply changes\nsource %q\nfirst  %q\nsecond %q", src, one, two)
	}
	if two := e.Append(nil); !bytes.Equal(one, two) || !bytes.Equal(src, kept) {
		t.Fatalf("writing changed it\nbefore %q\nafter  %q", one, two)
	}
}

// isPath reports whether a problem's field begins with a known name.
func isPath(field string) bool {
	name, _, _ := strings.Cut(field, ".")
	return field == "" || Known([]byte(name)) || slices.Contains([]string{"identity", "outputs"}, name)
}

func FuzzDecodeJSON(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if p := jsonx.Check(src, jsonx.MaxDepth); p.OK() {
			fuzzed(t, JSON, src)
		}
	})
}

func FuzzDecodeMsgpack(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(transcode.AppendMsgPack(nil, seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if mpack.KindOf(src) != mpack.Map {
			return
		}
		var sc mpack.Scanner
		if end, p := sc.ParseFields(src, 0, nil, nil); p == mpack.NoProblem && end == len(src) {
			fuzzed(t, MsgPack, src)
		}
	})
}
