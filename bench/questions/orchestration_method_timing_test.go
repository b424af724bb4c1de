package questions

// Question: what does a request of each orchestration method cost through the whole session, frame
// in to reply bytes out, and how does it grow with the outputs in the envelope?

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"trunkline/engine/runtime"
)

// tableEntries is how many envelopes and sessions there is room for.
const tableEntries = 16

// keptSize is up to where the methods that claim to be free are: what they need beyond it is given
// back after each request.
const keptSize = 64 << 10

func BenchmarkOrchestrationMethod(b *testing.B) { measure(b, orchestrationMethods()) }

// orchestrated is a method and how to ask for it again and again.
type orchestrated struct {
	name, service, method string
	free                  bool
	// bodies are those of one operation after the other, over outputs of n bytes.
	bodies func(p *peer, n int) []string
	// before changes the frames ahead of each run; nil: they are the same every time.
	before func(p *peer, in []byte) func()
	want   string
}

func orchestrationMethods() []question {
	same := func(format string, env func(string, int, bool) string, ended bool) func(*peer, int) []string {
		return func(_ *peer, n int) []string { return []string{fmt.Sprintf(format, env("e", n, ended))} }
	}
	var all []question
	for _, m := range []orchestrated{
		{name: "GetNextInstruction", service: "orchestration", free: true, want: `"kind":"RUN_AGENT"`, bodies: ofSession},
		{name: "GetSessionState", service: "orchestration", free: true, want: `"process_id":"p"`, bodies: ofSession},
		{name: "ReportAgentResult/flat", service: "orchestration", method: "ReportAgentResult", free: true, want: `"kind":"RUN_AGENT"`, bodies: reportsOf(flatEnvelope)},
		{name: "ReportAgentResult/nested", service: "orchestration", method: "ReportAgentResult", free: true, want: `"kind":"RUN_AGENT"`,
			bodies: reportsOf(func(id string, n int, _ bool) string { return nestedEnvelope(id, n) })},
		{name: "InitializeSession", service: "orchestration", want: `"process_id":"p"`,
			bodies: same(`{"process_id":"p","pipeline_config":`+pipeline+`,"envelope":%s,"force":true}`, flatEnvelope, false)},
		{name: "CheckBounds", service: "engine", free: true, want: `"can_continue":true`, bodies: same(`%s`, flatEnvelope, false)},
		{name: "CreateEnvelope", service: "engine", want: `"envelope_id"`, before: timePasses, bodies: func(_ *peer, n int) []string {
			return []string{`{"raw_input":"trace login","metadata":{"m":` + findings(max(n, 100)) + `}}`}
		}},
		{name: "UpdateEnvelope", service: "engine", want: `"envelope_id"`, bodies: func(p *peer, n int) []string {
			p.call("engine", "CloneEnvelope", `{"envelope":`+flatEnvelope("e", n, false)+`}`)
			return []string{`{"envelope":` + p.lastBody() + `}`}
		}},
		{name: "CloneEnvelope", service: "engine", want: `"envelope_id"`, before: timePasses, bodies: same(`{"envelope":%s}`, flatEnvelope, true)},
		{name: "ExecutePipeline", service: "engine", want: `"`, before: newName,
			bodies: func(_ *peer, n int) []string {
				return []string{`{"envelope":` + flatEnvelope(firstName, n, true) + `,"pipeline_config":` + pipeline + `}`}
			}},
	} {
		if m.method == "" {
			m.method = m.name
		}
		for _, n := range outputSizes {
			all = append(all, question{name: fmt.Sprintf("%s/outputs=%d", m.name, n), free: m.free && n <= keptSize, prepare: func(tb testing.TB) work {
				return m.work(tb, n)
			}})
		}
	}
	return all
}

// work asks for the bodies in turns, as many in one read as make 16 requests or 64 KiB.
func (m *orchestrated) work(tb testing.TB, n int) work {
	p := newRig(tb, func(c *runtime.Config) { c.MaxEnvelopes, c.MaxSessions = tableEntries, tableEntries }).connect()
	var in []byte
	bodies := m.bodies(p, n)
	for _, body := range bodies {
		in = append(in, request(tb, m.service, m.method, body)...)
	}
	ops := len(bodies)
	if m.before == nil {
		times := max(1, min(16/ops, (64<<10)/(n+1)))
		in, ops = bytes.Repeat(in, times), ops*times
	}
	before := func() {}
	if m.before != nil {
		before = m.before(p, in)
	}
	run := func() { before(); p.feed(in) }
	before()
	p.must(in, m.want)
	for range 2 * tableEntries / ops { // until the tables are full
		run()
	}
	before()
	p.must(in, m.want)
	return work{run: run, ops: ops, bytes: len(in) / ops}
}

// ofSession asks about session p.
func ofSession(p *peer, n int) []string {
	p.begin("p", flatEnvelope("e", n, false))
	return []string{`{"process_id":"p"}`}
}

// reportsOf reports what the two agents of session p did, in turns.
func reportsOf(env func(string, int, bool) string) func(*peer, int) []string {
	return func(p *peer, n int) []string {
		p.begin("p", env("e", n, false))
		return []string{reportBody("p", "a1"), reportBody("p", "a2")}
	}
}

// begin starts a session over the pipeline.
func (p *peer) begin(pid, env string) {
	p.tb.Helper()
	p.call("orchestration", "InitializeSession", fmt.Sprintf(`{"process_id":%q,"pipeline_config":%s,"envelope":%s,"force":true}`, pid, pipeline, env))
}

// reportBody is ReportAgentResult's body with 200 bytes of findings.
func reportBody(pid, agent string) string {
	return fmt.Sprintf(`{"process_id":%q,"agent_name":%q,"output":{"verdict":"go","result":%s},"success":true,"error":"",`+
		`"metrics":{"llm_calls":1,"tool_calls":2,"tokens_in":310,"tokens_out":42,"duration_ms":12}}`, pid, agent, findings(200))
}

// timePasses has the clock run so fast that the oldest envelope may always go: an hour is over
// before the store is full again.
func timePasses(p *peer, _ []byte) func() {
	return func() { p.now.Mono += int64(10 * time.Minute) }
}

// firstName is an envelope's identifier that newName counts up.
const firstName = "env_0000000000000000"

// newName gives the envelope a name that no session has: the table always gives up an ended one.
func newName(p *peer, in []byte) func() {
	p.tb.Helper()
	at := bytes.Index(in, []byte(firstName))
	if at < 0 {
		p.tb.Fatalf("no %s in %.200q", firstName, in)
	}
	name := in[at : at+len(firstName)]
	return func() {
		for i := len(name) - 1; ; i-- {
			if name[i]++; name[i] <= '9' {
				return
			}
			name[i] = '0'
		}
	}
}
