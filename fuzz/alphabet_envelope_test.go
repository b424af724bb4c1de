package fuzz

import "slices"

// The words of pipelines: envelopes of both shapes, configurations, reports.

// lastEnvelope stands for the identifier of an envelope that the server made; where it stands in an
// envelope, it is put in.
type lastEnvelope struct{}

func nestedOf(id any, groups ...member) object {
	return append(object{{"identity", object{{"envelope_id", id}}}, {"pipeline", object{}}, {"bounds", object{}}}, groups...)
}

func flatOf(id any, more ...member) object {
	return append(object{{"envelope_id", id}, {"current_stage", "start"}, {"outputs", object{}}}, more...)
}

var (
	question = object{{"kind", "clarification"}, {"id", "int_0123456789abcdef"}, {"question", "Which?"}, {"x", []any{1.5}}}
	pending  = []member{{"interrupt_pending", true}, {"interrupt", question}}
	expiring = object{{"kind", "Checkpoint"}, {"expires_at", "2023-11-15T12:00:00+01:00"}, {"id", nil}, {"question", ""}}
	waiting  = member{"interrupts", object{{"interrupt_pending", true}, {"interrupt", object{{"kind", "TIMEOUT"}}}}}
	busy     = member{"bounds", object{{"llm_call_count", 9}, {"tokens_in", int64(1<<63 - 2)}, {"max_llm_calls", 3}}}
	opaque   = member{"trace", []any{uint64(1 << 63), float32(1.5), object{{"a", nil}}}}
)

// envelopes are of processes p1 to p3, of e1, of one the server has, or of no process.
var envelopes = []any{
	flatOf("e1"), nestedOf("e1"), flatOf(lastEnvelope{}), nestedOf(lastEnvelope{}), flatOf("p1"), nestedOf("p2"),
	flatOf(lastEnvelope{}, pending...), nestedOf(lastEnvelope{}, waiting), flatOf("e1", pending...),
	flatOf("p3", member{"interrupt_pending", true}, member{"interrupt", nil}, opaque),
	flatOf(lastEnvelope{}, member{"interrupt_pending", true}, member{"interrupt", expiring}),
	flatOf(lastEnvelope{}, member{"interrupt_pending", false}, member{"interrupt", object{{"kind", "confirmation"}, {"response", object{{"approved", true}}}}}),
	nestedOf(lastEnvelope{}, member{"interrupts", object{{"interrupt_pending", false}, {"interrupt", nil}}}, member{"trace", "t"}),
	flatOf("e2", member{"completed_stage_set", object{{"s1", false}, {"s2", true}}}, member{"failed_stages", object{{"s1", "old"}}},
		member{"metadata", object{{"k", 1.5}}}, opaque),
	nestedOf("e2", busy, member{"audit", nil}, member{"raw_input", "é\x00"}, opaque),
	nestedOf("e2", member{"pipeline", object{{"current_stage", "s2"}, {"completed_stage_set", []any{"s2"}}, {"x", 1}}}, member{"outputs", object{{"a1", object{{"v", 1}}}}}),
	flatOf("e3", member{"terminated", true}, member{"terminal_reason", "user_cancelled"}),
	nestedOf("e3", member{"bounds", object{{"terminated", true}, {"terminal_reason", "because"}, {"termination_reason", ""}}}),
	flatOf(nil, member{"user_id", nil}, member{"received_at", "2025-12-10 10:00"}, member{"terminal_reason", "Completed"}, member{"iteration", 2147483646}),
	nestedOf("e4", member{"execution", object{{"all_goals", []any{}}, {"loop_feedback", []any{"f"}}}}, member{"bounds", object{{"max_agent_hops", 0},
		{"terminal_reason", "clarification_required"}}}),
	object{{"raw_input", "only"}}, object{{"identity", nil}, {"outputs", nil}, {"loop_feedback", []any{"f"}}, {"dag_mode", true}},
	`{"envelope_id":"e5","n":[1,-2.5,18446744073709551615,1e2],"outputs":{"a1":{}},"t":"\ud83d\ude00"}`,
	`{"identity":{"envelope_id":"e5"},"pipeline":{},"bounds":{"tool_call_count":7}}`,
	flatOf(lastEnvelope{}, member{"interrupt_pending", true}),
}

// bodies are envelopes that are a request's body themselves.
var (
	bodies   = append(slices.DeleteFunc(slices.Clone(envelopes), isText), object{}, object{{"envelope", envelopes[0]}, {"y", 1}})
	noBodies = slices.DeleteFunc(slices.Clone(noEnvelope), func(v any) bool { return !isObject(v) })
)

var noEnvelope = []any{absent{}, nil, 5, []any{}, object{}, "", "{", "[1]", "null", object{{"identity", 5}, {"envelope_id", "e"}},
	object{{"identity", object{{"envelope_id", "e"}}}, {"pipeline", object{}}}, nestedOf(""), nestedOf(nil), nestedOf(long1024 + "x"),
	flatOf("e", member{"iteration", -1}), flatOf("e", member{"llm_call_count", 1 << 31}), flatOf("e", member{"max_llm_calls", 1.0}),
	flatOf("e", member{"stage_order", []any{"a", 5}}), flatOf("e", member{"received_at", "2025-02-29T00:00:00Z"}),
	flatOf("e", member{"outputs", object{{"a", "x"}}}), flatOf("e", member{"metadata", []any{}}), flatOf("e", member{"terminated", "yes"}),
	nestedOf("e", member{"audit", []any{}}), nestedOf("e", member{"bounds", object{{"tokens_in", uint64(1 << 63)}}}),
	flatOf("e", member{"current_stage", "zzz"}), `{"envelope_id":"e","iteration":1.5}`}

func stageNamed(name string, more ...member) object { return append(object{{"name", name}}, more...) }

func configOf(stages []any, more ...member) object {
	return append(object{{"name", "n"}, {"agents", stages}}, more...)
}

func ruleTo(target string, condition, value any) object {
	return object{{"condition", condition}, {"value", value}, {"target", target}}
}

func edgeLimit(from, to string, n any) object {
	return object{{"from_stage", from}, {"to_stage", to}, {"max_count", n}}
}

var (
	first  = stageNamed("s1", member{"agent", "a1"}, member{"default_next", "s2"})
	second = stageNamed("s2", member{"agent", "a2"}, member{"default_next", "s1"})
	chosen = stageNamed("s1", member{"agent", "a1"}, member{"routing", []any{ruleTo("s2", "v", 1), ruleTo("end", "v", nil),
		ruleTo("s3", "v", object{{"a", []any{1.0, true}}, {"b", "x"}})}}, member{"error_next", "s3"}, member{"default_next", "s1"})
	ample   = []member{{"max_iterations", 50}, {"max_llm_calls", 1000}, {"max_agent_hops", 50}}
	configs = []any{
		configOf([]any{first, second}), configOf([]any{first, second}, ample...), configOf([]any{chosen, second, stageNamed("s3")}, ample...),
		configOf([]any{first, second}, append([]member{{"edge_limits", []any{edgeLimit("s2", "s1", 2), edgeLimit("s2", "s1", 9), edgeLimit("s1", "s1", 0)}}}, ample...)...),
		configOf([]any{stageNamed("s2", member{"stage_order", 2}, member{"agent", ""}), stageNamed("s1", member{"agent", "a1"},
			member{"routing_rules", []any{ruleTo("s2", nil, nil)}}, member{"routing", []any{}})}),
		configOf([]any{stageNamed("end", member{"agent", "a1"}, member{"default_next", "end"})}, member{"max_llm_calls", nil}),
		configOf([]any{stageNamed("s1")}, member{"max_iterations", 0}),
		`{"name":"n","agents":[{"name":"s1","agent":"a1","routing":[{"condition":"v","value":1.0,"target":"s2"}]},{"name":"s2"}],"max_agent_hops":1}`,
	}
	noConfig = []any{absent{}, nil, 5, []any{}, "", "{", "[]", object{}, configOf(nil), configOf([]any{5}), configOf([]any{stageNamed("")}),
		configOf([]any{first, first}), configOf([]any{first}), configOf([]any{second, first}, member{"max_iterations", -1}),
		configOf([]any{stageNamed("s", member{"routing", []any{ruleTo("", nil, nil)}})}), object{{"name", ""}, {"agents", []any{stageNamed("s")}}},
		configOf([]any{stageNamed("s")}, member{"edge_limits", []any{edgeLimit("s", "x", 1)}}),
		configOf([]any{stageNamed("s")}, member{"edge_limits", []any{edgeLimit("s", "s", nil)}}),
		configOf([]any{stageNamed("s", member{"stage_order", 1.0})}), configOf([]any{stageNamed("s", member{"agent", 5})})}
	agents  = []any{"a1", "a2", "a1", "a2", "s1", "s2", "s3", "end"}
	results = []any{absent{}, object{{"v", 1}}, object{{"v", 1.0}}, object{{"v", nil}, {"w", []any{nan32}}}, object{}, object{{"v", true}, {"success", 5}},
		object{{"v", object{{"b", "x"}, {"a", []any{1, true}}}}, {"error", "mine"}}}
	metrics = []any{absent{}, object{{"llm_calls", 1}, {"tool_calls", 2}, {"tokens_in", 5}, {"tokens_out", nil}, {"duration_ms", 12}},
		object{{"llm_calls", 2147483647}, {"tokens_in", int64(1<<63 - 1)}}, object{{"x", "y"}}, nil}
	noMetrics = []any{5, []any{}, object{{"llm_calls", -1}}, object{{"tool_calls", 1.5}}, object{{"llm_calls", 3000000000}},
		object{{"tokens_out", "1"}}, object{{"tokens_in", uint64(1 << 63)}}, object{{"duration_ms", -5}}}
	inputs = []any{absent{}, "hi", "é\n", "", long1024 + "x"}
	orders = []any{absent{}, []any{"s1", "s2"}, []any{}, []any{"a", "a"}}
)

var processField = field{"process_id", pids, noText}

// pipelineSentences are those of the services engine and orchestration.
var pipelineSentences = []sentence{
	{"engine", "CreateEnvelope", []field{{"raw_input", inputs, noFlag[1:2]}, {"request_id", someIDs, noText}, {"user_id", users, noText},
		{"session_id", someIDs, noText}, {"stage_order", orders, noTypes}, {"metadata", []any{absent{}, object{{"k", nan32}}, nil, object{}}, noObject}}, 6, false},
	{"engine", "CheckBounds", []field{{theBody, bodies, noBodies}, {"envelope", append([]any{absent{}, absent{}}, envelopes[:2]...), noEnvelope}}, 4, false},
	{"engine", "UpdateEnvelope", []field{{"envelope", envelopes, noEnvelope}}, 12, false},
	{"engine", "ExecutePipeline", []field{{"envelope", envelopes, noEnvelope}, {"pipeline_config", configs, noConfig}}, 6, false},
	{"engine", "CloneEnvelope", []field{{"envelope", envelopes, noEnvelope}}, 4, false},
	{"orchestration", "InitializeSession", []field{processField, {"pipeline_config", configs, noConfig}, {"envelope", envelopes, noEnvelope},
		{"force", flags, noFlag}}, 12, false},
	{"orchestration", "GetNextInstruction", []field{processField}, 8, false},
	{"orchestration", "ReportAgentResult", []field{processField, {"agent_name", agents, noText}, {"success", []any{absent{}, absent{}, true, false}, noFlag},
		{"error", reasons, []any{5, []any{}}}, {"output", results, noObject}, {"metrics", metrics, noMetrics}}, 30, false},
	{"orchestration", "GetSessionState", []field{processField}, 5, false},
	{"engine", "GetSessionState", nil, 1, false}, {"orchestration", "checkBounds", nil, 1, false},
}

var engineMethods map[string]func(*call) object

func init() {
	engineMethods = map[string]func(*call) object{"CreateEnvelope": createEnvelope, "CheckBounds": checkBounds,
		"UpdateEnvelope": updateEnvelope, "ExecutePipeline": executePipeline, "CloneEnvelope": cloneEnvelope}
}

var orchestrationMethods map[string]func(*call) object

func init() {
	orchestrationMethods = map[string]func(*call) object{"InitializeSession": initializeSession, "GetNextInstruction": getNextInstruction,
		"ReportAgentResult": reportAgentResult, "GetSessionState": getSessionState}
}
