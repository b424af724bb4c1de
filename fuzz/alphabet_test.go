package fuzz

import (
	"math"
	"slices"
	"strings"
)

// The alphabet is what programs write: every method, mostly with fields that make sense, over few
// enough names that requests meet each other.

// absent leaves a field out.
type absent struct{}

// field is a body field and the values it takes; one time in 16 it is one of wrong instead.
type field struct {
	name        string
	good, wrong []any
}

var (
	long1024 = strings.Repeat("l", 1024)
	nan32    = encoded("\xca\x7f\xc0\x00\x00")
	noText   = []any{absent{}, nil, 5, "", true, []any{}, object{}, long1024 + "l", math.NaN(), 2.5, float32(1.5)}
	noInt    = []any{nil, "2", 2.0, true, -1, 1 << 31, int64(math.MaxInt64), uint64(1 << 63), math.MinInt64, []any{}, nan32, math.Inf(1)}
	noFlag   = []any{nil, 1, "true", object{}, 0.0}
	noObject = []any{nil, "x", []any{}, 1, math.NaN()}
	noJSON   = []any{nil, "", "{bad", object{}, 7, "[1,]", strings.Repeat("[", 129) + strings.Repeat("]", 129), "\"\x01\"", "01", "{} x",
		`"\ud800`, `"\x"`}
	noPatterns = []any{nil, "a.*", object{}, []any{"a.*", 5}, []any{"a", ""}, []any{"a*"}, []any{">.a"}, []any{">", "*b"},
		[]any{strings.Repeat("*.", 32) + "*"}, []any{long1024 + "x"}}
	noTypes = []any{absent{}, nil, []any{}, "a", []any{"a", 5}, []any{"a", ""}, []any{nil}, object{}, []any{"a", long1024 + "x"}}
)

var (
	pids        = []any{"p1", "p1", "p2", "p2", "p3", "p4", "p\"\\é\n", "ghost", lastEnvelope{}}
	users       = []any{absent{}, "u1", "u1", "u2"}
	someIDs     = []any{absent{}, absent{}, "r1", "é\t"}
	counts      = []any{absent{}, absent{}, 0, 1, 2, 60, 100, 1000}
	sums        = []any{absent{}, absent{}, 1, 100000, int64(math.MaxInt64), int64(math.MaxInt64) - 1}
	eventTypes  = []any{"a", "b", "a", "process.created", "process.state_changed", "commbus.gap", "resource.exhausted"}
	sources     = []any{absent{}, "t", "kernel"}
	payloads    = []any{absent{}, `{"n":1}`, `[1,2.5,-3,1e2,18446744073709551615,"\u00e9\ud83d\ude00"]`, " null ", `"` + strings.Repeat("x", 440) + `"`, `{}`}
	commands    = []any{"run", "run", "stop"}
	queries     = []any{"sum", "sum", "avg"}
	subscribers = []any{absent{}, "w1", "w1", "w2"}
	reasons     = []any{absent{}, "done", "é\"\n", ""}
	flags       = []any{absent{}, true, false}
	typeLists   = []any{
		[]any{"a"}, []any{"a", "b", "a"}, []any{"process.created", "process.state_changed", "process.terminated", "resource.exhausted"},
		[]any{"process.state_changed", "a"}, []any{"a", "b", "c"}, []any{"run"}, []any{"sum"}, []any{"sum", "avg"}, []any{"run", "stop"},
	}
	patternLists = []any{absent{}, absent{}, []any{}, []any{"process.*"}, []any{">", "a"}, []any{"*", "*.created", "a.>"}}
	stateNames   = []any{"READY", "RUNNING", "WAITING", "BLOCKED", "TERMINATED", "ZOMBIE", "running", "Ready", "FOO", ""}
	stateFilter  = []any{absent{}, absent{}, "READY", "terminated", "RUNNING"}
	quotas       = []any{
		absent{}, absent{}, object{{"max_llm_calls", 1}}, object{{"timeout_seconds", 1}, {"max_tool_calls", 0}},
		object{{"max_inference_requests", 1}, {"max_inference_input_chars", 5}, {"max_iterations", 0}}, object{{"timeout_seconds", -1}},
		object{{"max_llm_calls", 3000000000}}, object{{"max_llm_calls", nil}, {"max_agent_hops", "x"}}, object{},
	}
	defaults = []any{
		object{{"rate_limit_burst", 3}}, object{{"rate_limit_burst", 100}, {"rate_limit_rpm", 5}}, object{{"rate_limit_rph", 8}},
		object{{"max_llm_calls", 200}, {"max_tool_calls", 0}}, object{{"max_input_tokens", 10}, {"max_output_tokens", 10}}, absent{}, object{},
		object{{"rate_limit_burst", 10}, {"rate_limit_rpm", 60}, {"rate_limit_rph", 1000}}, object{{"rate_limit_rpm", 7}, {"max_iterations", -2}},
	}
)

// sentence is one method's requests; heavier ones come more often.
type sentence struct {
	service, method string
	fields          []field
	weight          int
	stream          bool // its id names a stream
}

var pidField = field{"pid", pids, noText}

func busFields(name string, types []any) []field {
	return []field{{name, types, noText}, {"payload", payloads, noJSON}, {"source", sources, noText}}
}

var sentences = slices.Concat([]sentence{
	{"kernel", "CreateProcess", []field{pidField, {"request_id", someIDs, noText}, {"user_id", users, noText}, {"session_id", someIDs, noText},
		{"priority", []any{absent{}, "HIGH", "realtime", "Low", "IDLE", "urgent", ""}, noText}, {"quota", quotas, noObject},
		{"schedule", []any{absent{}, absent{}, true, false}, noFlag}}, 10, false},
	{"kernel", "GetProcess", []field{pidField}, 4, false},
	{"kernel", "ScheduleProcess", []field{pidField}, 4, false},
	{"kernel", "GetNextRunnable", []field{{"start", flags, noFlag}}, 6, false},
	{"kernel", "TransitionState", []field{pidField, {"new_state", stateNames, noText}, {"reason", reasons, noText}}, 12, false},
	{"kernel", "TerminateProcess", []field{pidField, {"reason", reasons, noText}, {"force", flags, nil}}, 4, false},
	{"kernel", "CheckQuota", []field{pidField}, 6, false},
	{"kernel", "RecordUsage", []field{pidField, {"llm_calls", counts, noInt}, {"tool_calls", counts, noInt}, {"tokens_in", sums, noInt},
		{"tokens_out", sums, noInt}, {"agent_hops", counts, noInt}, {"iterations", counts, noInt}, {"inference_requests", counts, noInt},
		{"inference_input_chars", sums, noInt}}, 6, false},
	{"kernel", "CheckRateLimit", []field{{"user_id", []any{"u1", "u1", "u2", "anonymous"}, noText}, {"record", flags, noFlag},
		{"endpoint", reasons, nil}}, 8, false},
	{"kernel", "ListProcesses", []field{{"state", stateFilter, noText}, {"user_id", users, noText}, {"cursor", []any{absent{}, 0, lastCursor{}}, noCursor},
		{"limit", []any{absent{}, 1, 2, 3, 0}, noInt}}, 6, false},
	{"kernel", "GetProcessCounts", nil, 4, false},
	{"kernel", "SetQuotaDefaults", []field{{"quota", defaults, noObject}}, 4, false},
	{"kernel", "GetQuotaDefaults", nil, 2, false},
	{"kernel", "GetSystemStatus", nil, 4, false},
	{"kernel", "Ping", []field{{"payload", append([]any{object{{"k", []any{1, nil, "x"}}}, 2.5, nan32, float32(1.5), long1024[:1021]}, payloads...),
		[]any{long1024, []any{long1024}}}}, 2, false},
	{"commbus", "Publish", busFields("event_type", eventTypes), 12, false},
	{"commbus", "Send", busFields("command_type", commands), 6, false},
	{"commbus", "Query", append(busFields("query_type", queries),
		field{"timeout_ms", []any{absent{}, 0, 1000, 3000, 99999999}, []any{nil, "2", 1.5, true, -1}}), 10, false},
	{"commbus", "Subscribe", []field{{"event_types", typeLists, noTypes}, {"subscriber_id", subscribers, noText}, {"ack", flags, noFlag},
		{"event_patterns", patternLists, noPatterns}}, 10, true},
	{"commbus", "Unsubscribe", []field{{"stream_id", []any{absent{}, "s1", "s1", "s2", "s3", "q1"}, noText},
		{"subscriber_id", []any{absent{}, absent{}, absent{}, "w1", "w2"}, noText}}, 6, false},
	{"commbus", "RegisterCommandHandler", []field{{"command_types", typeLists[5:], noTypes}, {"handler_id", subscribers, noText}}, 6, true},
	{"commbus", "RegisterQueryHandler", []field{{"query_types", typeLists[5:], noTypes}, {"handler_id", subscribers, noText}}, 6, true},
	{"commbus", "Reply", []field{{"query_id", []any{lastQuery{}, lastQuery{}, lastQuery{}, "q0"}, noText}, {"success", flags, noFlag},
		{"result", payloads, noJSON}, {"error", reasons, noText}}, 10, false},
	{"kernel", "getProcess", nil, 1, false}, {"Kernel", "GetProcess", nil, 1, false}, {"commbus", "GetProcess", nil, 1, false},
}, pipelineSentences)

// lastCursor and lastQuery stand for names that the server made up and has reported.
type (
	lastCursor struct{}
	lastQuery  struct{}
)

var noCursor = []any{nil, "2", 2.0, true, -1, uint64(1 << 63)}

// topics are the sentences of one kind of conversation each: everything, processes, the bus,
// pipelines. Each has its sentences as often as they weigh, so that one byte chooses.
var topics = [4][]*sentence{
	weigh(func(*sentence) bool { return true }),
	weigh(func(s *sentence) bool { return s.service == "kernel" && s.method != "getProcess" }),
	weigh(func(s *sentence) bool {
		return s.service == "commbus" && s.method != "GetProcess" || s.method == "TerminateProcess"
	}),
	weigh(func(s *sentence) bool {
		return s.service == "engine" || s.service == "orchestration" || slices.Contains(besidePipelines, s.method)
	}),
}

// besidePipelines are the methods of processes that sessions and envelopes have to do with.
var besidePipelines = []string{"CreateProcess", "TerminateProcess", "TransitionState", "GetSystemStatus"}

func weigh(about func(*sentence) bool) (list []*sentence) {
	for i := range sentences {
		for n := 0; n < sentences[i].weight && about(&sentences[i]); n++ {
			list = append(list, &sentences[i])
		}
	}
	if len(list) > 256 {
		panic("more sentences than a byte can tell apart")
	}
	return list
}

// The rules of the model by method: what each request changes, and its reply.

var kernelMethods map[string]func(*call) object

func init() {
	kernelMethods = map[string]func(*call) object{
		"CreateProcess": createProcess, "GetProcess": getProcess, "ScheduleProcess": scheduleProcess,
		"GetNextRunnable": getNextRunnable, "TransitionState": transitionState, "TerminateProcess": terminateProcess,
		"CheckQuota": checkQuota, "RecordUsage": recordUsage, "CheckRateLimit": checkRateLimit, "ListProcesses": listProcesses,
		"GetProcessCounts": getProcessCounts, "SetQuotaDefaults": setQuotaDefaults,
		"GetQuotaDefaults": func(k *call) object { return k.model.quotaBody() },
		"GetSystemStatus":  getSystemStatus, "Ping": ping,
	}
}

var busMethods map[string]func(*call) object

func init() {
	busMethods = map[string]func(*call) object{
		"Publish": publish, "Send": send, "Query": ask, "Subscribe": subscribe, "Unsubscribe": unsubscribe, "Reply": reply,
		"RegisterCommandHandler": func(k *call) object { return register(k, "Command", "command") },
		"RegisterQueryHandler":   func(k *call) object { return register(k, "Query", "query") },
	}
}

// ping is kernel.Ping (kernel-ipc §11).
func ping(k *call) object {
	payload := k.field("payload")
	if sizeOf(payload) > 1024 {
		k.invalid("payload exceeds 1024 bytes")
		return nil
	}
	extensions := []any{"kernel.CreateProcess.schedule", "kernel.GetNextRunnable.start", "kernel.RecordUsage.iterations",
		"kernel.RecordUsage.inference_requests", "kernel.RecordUsage.inference_input_chars", "kernel.ListProcesses.cursor",
		"kernel.ListProcesses.limit", "kernel.GetSystemStatus.digest", "kernel.Ping", "commbus.Subscribe.ack",
		"commbus.Subscribe.event_patterns", "commbus.Unsubscribe",
		"commbus.RegisterCommandHandler", "commbus.RegisterQueryHandler", "commbus.Reply", "idempotency_key"}
	limits := object{{"max_frame_bytes", k.model.set.maxFrame}, {"max_in_flight", 64}, {"read_timeout_secs", 0}}
	return object{{"pong", payload}, {"server", "trunkline"}, {"version", ""}, {"protocol", 1}, {"extensions", extensions}, {"limits", limits}}
}
