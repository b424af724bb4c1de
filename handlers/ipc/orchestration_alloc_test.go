//go:build !race

package ipc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"trunkline/codec/wire"
)

// allocRig measures what requests allocate from the bytes that come in to the bytes that go out.
type allocRig struct {
	*rig
	p   *peer
	out []byte
}

func newAllocRig(t *testing.T) *allocRig {
	r := newRig(t)
	return &allocRig{r, r.connect(), make([]byte, 0, 1<<20)}
}

// did sends a request that has to be answered by a RESPONSE.
func (r *allocRig) did(service, method, body string) {
	r.t.Helper()
	if got := r.p.call("c", service, method, body); !strings.HasPrefix(got, "02 ") {
		r.t.Fatalf("%s.%s: %s", service, method, got)
	}
}

// perRun returns how many allocations the frames take together, and fails if they are not all taken
// or the last answer is not of the type wanted.
func (r *allocRig) perRun(runs int, typ byte, frames ...[]byte) float64 {
	r.t.Helper()
	got := r.allocs(runs, frames...)
	if len(r.out) < 5 || r.out[4] != typ {
		r.t.Errorf("not answered as expected: %.200q", r.out)
	}
	return got
}

// allocs is perRun for answers of any type.
func (r *allocRig) allocs(runs int, frames ...[]byte) float64 {
	r.t.Helper()
	in := bytes.Join(frames, nil)
	failed := false
	got := testing.AllocsPerRun(runs, func() {
		r.now.Mono += 1e6
		r.now.Wall++
		used := 0
		used, r.out, _ = r.p.s.Feed(in, r.out[:0], r.now)
		failed = failed || used != len(in) || len(r.out) == 0
	})
	if failed {
		r.t.Errorf("not taken or not answered: %.200q", in)
	}
	return got
}

const (
	reply02        = 0x02
	errorFF        = 0xff
	nestedEnvelope = `{"identity":{"envelope_id":"e1"},"pipeline":{},"bounds":{},"raw_input":"hi","audit":{"metadata":{"k":[1,2]}}}`
)

// TestNoAllocsOrchestrating holds envelope §10: what is asked often takes nothing from the heap.
func TestNoAllocsOrchestrating(t *testing.T) {
	r := newAllocRig(t)
	for _, e := range []struct{ pid, env string }{{"flat", flatEnvelope}, {"nested", nestedEnvelope}, {"ended", nestedEnvelope}} {
		r.did("orchestration", "InitializeSession", `{"process_id":"`+e.pid+`","pipeline_config":`+cycling+`,"envelope":`+e.env+`}`)
	}
	r.did("kernel", "CreateProcess", `{"pid":"ended"}`)
	r.did("kernel", "TerminateProcess", `{"pid":"ended"}`)
	f := func(name string, typ byte, service, method, body string) {
		t.Helper()
		if got := r.perRun(200, typ, request("id-1", service, method, body)); got != 0 {
			t.Errorf("%s: %v allocations, want 0", name, got)
		}
	}
	f("bounds, flat", reply02, "engine", "CheckBounds", flatEnvelope)
	f("bounds, nested", reply02, "engine", "CheckBounds", nestedEnvelope)
	f("bounds, wrapped", reply02, "engine", "CheckBounds", `{"envelope":`+nestedEnvelope+`}`)
	for _, pid := range []string{"flat", "nested", "ended"} {
		f("next, "+pid, reply02, "orchestration", "GetNextInstruction", `{"process_id":"`+pid+`"}`)
		f("state, "+pid, reply02, "orchestration", "GetSessionState", `{"process_id":"`+pid+`"}`)
	}
	f("stage of a process", reply02, "kernel", "GetProcess", `{"pid":"ended"}`)
	f("late report", reply02, "orchestration", "ReportAgentResult", `{"process_id":"ended","agent_name":"a1","output":{"v":1}}`)
	f("report of another agent", errorFF, "orchestration", "ReportAgentResult", `{"process_id":"flat","agent_name":"a2"}`)
	f("ended again", reply02, "kernel", "TerminateProcess", `{"pid":"ended"}`)
}

// TestNoAllocsRefusing: the refusals of the nine methods whose text is fixed, and those that only
// name what they were given.
func TestNoAllocsRefusing(t *testing.T) {
	r := newAllocRig(t)
	r.did("orchestration", "InitializeSession", `{"process_id":"p","pipeline_config":`+cycling+`,"envelope":`+flatEnvelope+`}`)
	f := func(service, method, body string) {
		t.Helper()
		if got := r.perRun(100, errorFF, request("id-1", service, method, body)); got != 0 {
			t.Errorf("%s %s: %v allocations, want 0", method, body, got)
		}
	}
	unknown := `{"process_id":"ghost","agent_name":"a1"}`
	for _, method := range []string{"GetNextInstruction", "ReportAgentResult", "GetSessionState"} {
		f("orchestration", method, unknown)
		f("orchestration", method, `{}`)
		f("orchestration", method, `{"process_id":""}`)
	}
	for _, body := range []string{`{"process_id":"p"}`, `{"process_id":"p","agent_name":"a1","success":1}`,
		`{"process_id":"p","agent_name":"a1","error":5}`, `{"process_id":"p","agent_name":"a1","output":[]}`,
		`{"process_id":"p","agent_name":"a1","metrics":[]}`, `{"process_id":"p","agent_name":"a1","metrics":{"llm_calls":-1}}`,
		`{"process_id":"p","agent_name":"a1","metrics":{"llm_calls":3000000000}}`, `{"process_id":"p","agent_name":"a1","metrics":{"tool_calls":1.5}}`,
		`{"process_id":"p","agent_name":"a1","metrics":{"tokens_in":"x"}}`, `{"process_id":"p","agent_name":"a1","metrics":{"duration_ms":true}}`} {
		f("orchestration", "ReportAgentResult", body)
	}
	f("orchestration", "InitializeSession", `{"process_id":"p"}`)
	f("orchestration", "InitializeSession", `{"process_id":"p","pipeline_config":5,"envelope":{}}`)
	f("orchestration", "InitializeSession", `{"process_id":"p","pipeline_config":{},"envelope":5,"force":"yes"}`)
	f("orchestration", "InitializeSession", `{"process_id":"`+strings.Repeat("x", wire.MaxIdentifier+1)+`"}`)
	for _, method := range []string{"UpdateEnvelope", "CloneEnvelope", "ExecutePipeline"} {
		f("engine", method, `{}`)
		f("engine", method, `{"envelope":5}`)
	}
	f("engine", "UpdateEnvelope", `{"envelope":`+flatEnvelope+`}`)
	f("engine", "CreateEnvelope", `{"raw_input":5}`)
	f("engine", "CreateEnvelope", `{"metadata":5}`)
	f("engine", "CreateEnvelope", `{"stage_order":5}`)
	f("engine", "CreateEnvelope", `{"stage_order":["a",""]}`)
	f("engine", "Foo", `{}`)
	f("orchestration", "Foo", `{}`)
}

// TestAllocsReporting holds what reports take, in turn for the two agents of a pipeline that goes
// round: nothing where the session's envelope keeps its size, and no more than the room it grows
// into where it does not.
func TestAllocsReporting(t *testing.T) {
	r := newAllocRig(t)
	report := func(pid, agent, more string) []byte {
		return request("id-1", "orchestration", "ReportAgentResult", `{"process_id":"`+pid+`","agent_name":"`+agent+`"`+more+`}`)
	}
	f := func(name, pid, env, more string, most float64) {
		t.Helper()
		r.did("orchestration", "InitializeSession", `{"process_id":"`+pid+`","force":true,"pipeline_config":`+cycling+`,"envelope":`+env+`}`)
		round := [][]byte{report(pid, "a1", more), report(pid, "a2", more)}
		for range 300 { // the counters reach the width they keep
			r.perRun(1, reply02, round...)
		}
		if got := r.perRun(1000, reply02, round...); got > 2*most {
			t.Errorf("%s: %v allocations in two reports, want %v", name, got, 2*most)
		}
	}
	metrics := `,"metrics":{"llm_calls":1,"tool_calls":2,"tokens_in":100,"tokens_out":50,"duration_ms":12}`
	f("flat", "p1", flatEnvelope, `,"output":{"v":1}`+metrics, 0)
	f("nested", "p2", nestedEnvelope, `,"output":{"v":1}`+metrics, 0)
	f("without output", "p3", nestedEnvelope, ``, 0)
	f("failed", "p4", nestedEnvelope, `,"success":false,"error":"boom","output":{"v":1}`+metrics, 0)
	f("failed, flat", "p5", flatEnvelope, `,"success":false,"error":"boom"`, 0)
	f("4 KiB", "p6", nestedEnvelope, `,"output":{"v":"`+strings.Repeat("x", 4096)+`"}`, 0)
}

// TestAllocsOfGrowth holds what the reports of a straight pipeline take, each of which adds an
// output, a finished stage and a way taken: the room for what is kept, which grows by an eighth at
// least.
func TestAllocsOfGrowth(t *testing.T) {
	const stages, sessions, most = 20, 20, 0.5
	r := newAllocRig(t)
	var config []string
	for i := range stages {
		config = append(config, fmt.Sprintf(`{"name":"stage-number-%d-with-a-name-of-some-length","agent":"a%d","default_next":"%s"}`, i, i,
			[...]string{"end", fmt.Sprintf("stage-number-%d-with-a-name-of-some-length", i+1)}[min(stages-1-i, 1)]))
	}
	for i := range sessions + 1 { // AllocsPerRun runs once more
		r.did("orchestration", "InitializeSession", fmt.Sprintf(`{"process_id":"p%d","envelope":%s,"pipeline_config":{"name":"n",`+
			`"max_iterations":100,"max_agent_hops":100,"agents":[%s]}}`, i, nestedEnvelope, strings.Join(config, ",")))
	}
	var in [sessions + 1][]byte
	for i := range in {
		for k := range stages {
			in[i] = append(in[i], request("id-1", "orchestration", "ReportAgentResult",
				fmt.Sprintf(`{"process_id":"p%d","agent_name":"a%d","output":{"summary":"something was done","n":%d}}`, i, k, k))...)
		}
	}
	n := 0
	got := testing.AllocsPerRun(sessions, func() {
		_, r.out, _ = r.p.s.Feed(in[n], r.out[:0], r.now)
		n++
	})
	if strings.Count(string(r.out), "RUN_AGENT") != stages-1 || !strings.Contains(string(r.out), "Pipeline completed") {
		t.Errorf("answered %q", r.out)
	}
	if got > most*stages {
		t.Errorf("%v allocations in %d reports, want %v", got, stages, most*stages)
	}
}

// TestNoAllocsOfRows: every row of the method table has an allocs line, request bodies that take
// nothing from the heap or the reason for having none.
func TestNoAllocsOfRows(t *testing.T) {
	r := newAllocRig(t)
	for i := range 10 {
		r.did("kernel", "CreateProcess", fmt.Sprintf(`{"pid":"p%d","user_id":"u%d"}`, i, i))
	}
	r.did("orchestration", "InitializeSession", `{"process_id":"s1","pipeline_config":`+cycling+`,"envelope":`+flatEnvelope+`}`)
	for i := range methods {
		m := &methods[i]
		line := allocLines[m.service+"."+m.name]
		var bodies []json.RawMessage
		if !strings.HasPrefix(line, "[") {
			if !strings.HasSuffix(line, ".") {
				t.Errorf("%s.%s: the allocs line %q has neither request bodies nor a reason", m.service, m.name, line)
			}
			continue
		}
		if err := json.Unmarshal([]byte(line), &bodies); err != nil || len(bodies) == 0 {
			t.Fatalf("%s.%s: %q: %v", m.service, m.name, line, err)
		}
		var frames [][]byte
		for _, body := range bodies {
			frames = append(frames, request("id-1", m.service, m.name, string(body)))
		}
		if got := r.allocs(200, frames...); got != 0 {
			t.Errorf("%s.%s: %v allocations, want 0", m.service, m.name, got)
		}
	}
}
