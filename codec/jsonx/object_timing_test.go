package jsonx

import (
	"fmt"
	"testing"
)

// Question: does stepping over the members of an envelope cost less than checking it, so that
// looking for one member in checked text is never the larger part?

// envelope returns about 4 KiB of JSON as pipelines exchange it: many short members, nested
// outputs, a history, some prose.
func envelope() []byte {
	out := []byte(`{"envelope_id":"env_0123456789abcdef","request_id":"req_0123456789abcdef","user_id":"anonymous","session_id":"sess_0011",` +
		`"raw_input":"Please summarise the attached report, then say \"done\" and list what is left to do.","received_at":"2026-01-02T03:04:05.000000Z",` +
		`"stage_order":["perception","intent","planner","executor","critic","integration"],"iteration":2,"max_iterations":3,"active_stages":{},` +
		`"completed_stage_set":{"perception":true,"intent":true},"failed_stages":{},"parallel_mode":false,"llm_call_count":4,"terminated":false,` +
		`"terminal_reason":null,"metadata":{"trace":{"id":"4bf92f3577b34da6a3ce929d0e0e4736","sampled":true,"ratio":0.25},"tags":["a","b"]},"outputs":{`)
	for i, stage := range []string{"perception", "intent", "planner", "executor"} {
		if i > 0 {
			out = append(out, ',')
		}
		out = AppendString(out, stage)
		out = append(out, `:{"verdict":"ok","confidence":0.875,"reasoning":"The request names one document and two actions; nothing is ambiguous, `+
			`so the plan can go on without a question to the user.","steps":[{"n":1,"tool":"read_file","args":{"path":"report.md","lines":[1,400]}},`+
			`{"n":2,"tool":"summarise","args":{"words":200,"style":null}},{"n":3,"tool":"reply","args":{}}],"usage":{"tokens_in":1834,"tokens_out":412}}`...)
	}
	out = append(out, `},"processing_history":[`...)
	for i := range 15 {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"agent":"planner","started_at":"2026-01-02T03:04:06.125000Z","duration_ms":1250,"status":"success","error":null}`...)
	}
	return append(out, `],"errors":[],"created_at":"2026-01-02T03:04:05.000000Z","completed_at":null}`...)
}

func BenchmarkEnvelope(b *testing.B) {
	text := envelope()
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
	run("check", func() { Check(text, MaxDepth) })
	run("members", func() {
		o := OpenObject(text)
		for _, _, ok := o.Next(); ok; _, _, ok = o.Next() {
		}
	})
	run("skip", func() { behindContainer(text, 1) })
	var w Walker
	run("step", func() {
		w.Start(text)
		for kind, _ := w.Step(); kind != End; kind, _ = w.Step() {
		}
	})
}

// sample returns JSON text of about n bytes with the mix of a typical event: keys, short strings,
// numbers, one longer text.
func sample(n int) []byte {
	if n < 32 {
		return []byte(`{"n":1,"ok":true}`)[:17]
	}
	out := []byte(`{"events":[`)
	for i := 0; len(out) < n-40; i++ {
		out = fmt.Appendf(out, `{"pid":"proc-%06d","old_state":"READY","new_state":"RUNNING","n":%d,"ratio":%d.5,`+
			`"reason":"the worker took it from the queue","ok":true,"none":null},`, i, i*17, i)
	}
	return append(out, "{}]}"...)
}
