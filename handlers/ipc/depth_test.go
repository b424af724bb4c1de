package ipc

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
)

// What sessions of tests are begun with.
const (
	cycling = `{"name":"n","agents":[{"name":"s1","agent":"a1","routing":[{"condition":"v","value":1,"target":"s2"}],"default_next":"s2"},` +
		`{"name":"s2","agent":"a2","default_next":"s1"}],"max_iterations":2000000000,"max_llm_calls":2000000000,"max_agent_hops":2000000000}`
	flatEnvelope = `{"envelope_id":"e1","current_stage":"start","outputs":{},"request_context":{"request_id":"r"}}`
)

// nest returns JSON of so many levels, each a list but for the outermost.
func nest(levels int) string {
	return `{"v":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
}

// TestWhatIsAcceptedCanBeReadBack: replies hold what came in a request inside of more levels, and
// clients read as many as the server. At the limit a value is taken and every reply with it can be
// read; one level more is refused, and a reply is never too deep.
func TestWhatIsAcceptedCanBeReadBack(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	ask := func(service, method, body string) (ok bool) {
		t.Helper()
		_, out, _ := p.s.Feed(request("1", service, method, body), nil, r.now)
		typ, reply, n := frame.Split(out, 64<<20)
		var sc mpack.Scanner
		if problem := sc.Check(reply); n != len(out) || problem != mpack.NoProblem {
			t.Errorf("%s.%s: %s in the reply", service, method, problem.Text())
		}
		if typ == frame.Error && !strings.Contains(string(reply), "INVALID_ARGUMENT") {
			t.Errorf("%s.%s: %.200q", service, method, reply)
		}
		return typ == frame.Response
	}
	start := func(pid, env string) bool {
		ok := ask("orchestration", "InitializeSession", `{"process_id":"`+pid+`","pipeline_config":`+cycling+`,"force":true,"envelope":`+env+`}`)
		for _, method := range []string{"GetSessionState", "GetNextInstruction"} {
			if got := ok && ask("orchestration", method, `{"process_id":"`+pid+`"}`); got != ok {
				t.Errorf("%s after a session began: %v", method, got)
			}
		}
		return ok
	}
	f := func(name string, limit int, try func(value string) bool) {
		t.Helper()
		for levels := limit - 1; levels <= min(limit+6, 509); levels++ {
			if got := try(nest(levels)); got != (levels <= limit) {
				t.Errorf("%s of %d levels: taken %v, the limit is %d", name, levels, got, limit)
			}
		}
	}
	text := func(json string) string { return strconv.Quote(json) }
	report := func(body string) func(string) bool {
		return func(v string) bool {
			return start("s", flatEnvelope) && ask("orchestration", "ReportAgentResult", fmt.Sprintf(body, v)) && ask("orchestration", "GetSessionState", `{"process_id":"s"}`)
		}
	}
	f("output", 508, report(`{"process_id":"s","agent_name":"a1","output":%s}`))
	f("output of a failure", 508, report(`{"process_id":"s","agent_name":"a1","success":false,"error":"e","output":%s}`))
	f("metadata", 508, func(v string) bool { return ask("engine", "CreateEnvelope", `{"metadata":`+v+`}`) })
	flat := func(v string) string { return `{"envelope_id":"e1","outputs":{"a":` + v + `}}` }
	deeper := func(v string) string { return `{"envelope_id":"e1","metadata":` + v + `}` }
	f("envelope as text", 508, func(v string) bool { return start("t", text(flat(v))) })
	f("metadata of an envelope as text", 509, func(v string) bool { return start("t", text(deeper(v))) })
	f("clone of text", 508, func(v string) bool { return ask("engine", "CloneEnvelope", `{"envelope":`+text(flat(v))+`}`) })
	f("pipeline's envelope", 508, func(v string) bool {
		return ask("engine", "ExecutePipeline", `{"pipeline_config":`+cycling+`,"envelope":`+text(`{"envelope_id":"x`+strconv.Itoa(len(v))+`","outputs":{"a":`+v+`}}`)+`}`)
	})
}
