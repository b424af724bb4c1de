package envelopes

import (
	"fmt"
	"strings"
)

const (
	// stepSize is the size of the envelope in bytes that the goals of step and process are about.
	stepSize = 4 << 10
	// outputs and reported are the bytes of outputs that a session's envelope begins with, and that
	// every report brings.
	outputs, reported = 1024, 200
)

// flatBase are the members of a flat envelope that every measurement has.
const flatBase = `"envelope_id":"%s","request_id":"req_00000000000000b2","user_id":"u1","session_id":"sess_00000000000000c3",` +
	`"raw_input":"trace login","received_at":"2025-12-10T10:00:00Z","metadata":{"channel":"cli","trace":[1,2.5,null,true]}`

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

// flatEnvelope returns a flat envelope of about n bytes whose first stage has just been finished.
func flatEnvelope(n int) []byte {
	const rest = `,"stage_order":["perception","intent","plan","execution","critic","integration"],"current_stage":"start","terminated":false,` +
		`"iteration":0,"max_iterations":3,"llm_call_count":1,"max_llm_calls":10,"agent_hop_count":0,"max_agent_hops":21,"outputs":{"perception":`
	head := "{" + fmt.Sprintf(flatBase, "env_00000000000000a1") + rest
	return []byte(head + findings(n-len(head)-2) + "}}")
}

// pipeline goes round two stages for as long as 32-bit counters last, by a rule on the output of
// each.
const pipeline = `{"name":"bench","max_iterations":2147483647,"max_llm_calls":2147483647,"max_agent_hops":2147483647,"agents":[` +
	`{"name":"s1","agent":"a1","routing":[{"condition":"verdict","value":"stop","target":"end"},{"condition":"verdict","value":"go","target":"s2"}]},` +
	`{"name":"s2","agent":"a2","routing":[{"condition":"verdict","value":"stop","target":"end"},{"condition":"verdict","value":"go","target":"s1"}]}],` +
	`"edge_limits":[{"from_stage":"s1","to_stage":"s2","max_count":2147483647}]}`

// beginBody is InitializeSession's body for session i.
func beginBody(i int) string {
	return fmt.Sprintf(`{"process_id":"session-%d","pipeline_config":%s,"envelope":{%s,"current_stage":"start","outputs":{"seed":%s}}}`,
		i, pipeline, fmt.Sprintf(flatBase, fmt.Sprintf("env_%016x", i)), findings(outputs))
}

// reportBody is ReportAgentResult's body for session i.
func reportBody(i int, agent string) string {
	return fmt.Sprintf(`{"process_id":"session-%d","agent_name":%q,"output":{"verdict":"go","result":%s},"success":true,"error":"",`+
		`"metrics":{"llm_calls":1,"tool_calls":2,"tokens_in":310,"tokens_out":42,"duration_ms":12}}`, i, agent, findings(reported))
}
