package questions

import (
	"fmt"
	"strings"
)

// outputSizes are about how many bytes of outputs the envelopes hold that are stepped.
var outputSizes = [...]int{0, 4 << 10, 64 << 10, 1 << 20}

// flatBase are the members of a flat envelope that every measurement has.
const flatBase = `"envelope_id":"%s","request_id":"req_00000000000000b2","user_id":"u1","session_id":"sess_00000000000000c3",` +
	`"raw_input":"trace login","received_at":"2025-12-10T10:00:00Z","metadata":{"channel":"cli","trace":[1,2.5,null,true]}`

// pipeline goes round two stages for as long as 32-bit counters last, by a rule on the output of
// each.
const pipeline = `{"name":"bench","max_iterations":2147483647,"max_llm_calls":2147483647,"max_agent_hops":2147483647,"agents":[` +
	`{"name":"s1","agent":"a1","routing":[{"condition":"verdict","value":"stop","target":"end"},{"condition":"verdict","value":"go","target":"s2"}]},` +
	`{"name":"s2","agent":"a2","routing":[{"condition":"verdict","value":"stop","target":"end"},{"condition":"verdict","value":"go","target":"s1"}]}],` +
	`"edge_limits":[{"from_stage":"s1","to_stage":"s2","max_count":2147483647}]}`

// findings returns a JSON object of about n bytes as agents make them: short members, numbers,
// lists of small maps and some text.
func findings(n int) string {
	var b strings.Builder
	b.WriteString(`{"status":"success","confidence":0.87,"items":[`)
	for i := 0; b.Len() < n-90; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"path":"src/login/handler_%d.py","score":%d.5,"ok":true,"note":"matched the \"login\" route"}`, i, i, i%10)
	}
	b.WriteString(`],"summary":"done"}`)
	return b.String()
}

// outputs returns the outputs of an envelope, about n bytes.
func outputs(n int) string {
	if n == 0 {
		return "{}"
	}
	return `{"seed":` + findings(n) + `}`
}

// flatEnvelope returns an envelope in the flat shape with n bytes of outputs, ended or not.
func flatEnvelope(id string, n int, ended bool) string {
	return fmt.Sprintf(`{`+flatBase+`,"current_stage":"start","terminated":%v,"outputs":%s}`, id, ended, outputs(n))
}

// nestedEnvelope returns an envelope in the nested shape with n bytes of outputs.
func nestedEnvelope(id string, n int) string {
	return fmt.Sprintf(`{"identity":{"envelope_id":%q,"request_id":"r","user_id":"u","session_id":"s"},"pipeline":{"current_stage":"start"},`+
		`"bounds":{},"outputs":%s}`, id, outputs(n))
}

// steppedEnvelope returns a flat envelope of about n bytes whose first stage has just been
// finished.
func steppedEnvelope(n int) string {
	const rest = `,"stage_order":["perception","intent","plan","execution","critic","integration"],"current_stage":"start","terminated":false,` +
		`"iteration":0,"max_iterations":3,"llm_call_count":1,"max_llm_calls":10,"agent_hop_count":0,"max_agent_hops":21,"outputs":{"perception":`
	head := "{" + fmt.Sprintf(flatBase, "env_00000000000000a1") + rest
	return head + findings(n-len(head)-2) + "}}"
}

// events returns JSON text of about n bytes with the mix of a typical event: keys, short strings,
// numbers, one longer text.
func events(n int) string {
	if n < 32 {
		return `{"n":1,"ok":true}`
	}
	var b strings.Builder
	b.WriteString(`{"events":[`)
	for i := 0; b.Len() < n-40; i++ {
		fmt.Fprintf(&b, `{"pid":"proc-%06d","old_state":"READY","new_state":"RUNNING","n":%d,"ratio":%d.5,`+
			`"reason":"the worker took it from the queue","ok":true,"none":null},`, i, i*17, i)
	}
	b.WriteString("{}]}")
	return b.String()
}

// uuid returns the i-th of the 36-byte identifiers of a kind.
func uuid(kind byte, i int) string { return fmt.Sprintf("%c0000000-0000-4000-8000-%012x", kind, i) }
