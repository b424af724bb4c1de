package ipc

import (
	"slices"
	"strings"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/kernel"
)

// Durability says which of a method's replies wait for the log (the durability column of the method table).
type Durability uint8

const (
	// None: the method changes nothing that could be kept.
	None Durability = iota
	// Lazy: its change is logged in order, the reply does not wait for it.
	Lazy
	// Durable: the reply leaves after its change is safe.
	Durable
)

// method is a row of the method table: the one place a method is described. Routing, counting, listing and documentation come
// from it.
type method struct {
	service, name string
	handle        func(*turn) wire.Code
	in            string   // the body's fields in validation order, in the notation of the package message
	out           string   // the shape of the reply, or of what the stream carries
	fields        []string // the keys of in; a handler finds the value of each at the same index of turn.fields
	want          []mpack.Field
	durability    Durability
	stream        bool // opens a stream: it has no RESPONSE
	whole         bool // the handler reads the body itself, at turn.req.Body
	several       bool // a request may make several changes, which a crash keeps together or not at all
	reads         bool // the reply tells of kept state though it changes none
	doc           string
	need          kernel.Need // what is fetched ahead beside the row, if the first field is a pid
	index         int         // of the row in the table
	keyed         bool        // the first field is a pid: its row is fetched ahead
}

// maxFields is the longest list of fields a row has.
const maxFields = 9

var methods = index([]method{
	{service: "kernel", name: "CreateProcess", handle: createProcess, several: true, durability: Durable,
		in: "pid! request_id user_id session_id priority quota:QuotaPatch? schedule:bool?", out: "Process",
		doc: "Create a process and queue it."},
	{service: "kernel", name: "GetProcess", reads: true, handle: getProcess, need: kernel.NeedIDs,
		in: "pid!", out: "Process", doc: "Show one process."},
	{service: "kernel", name: "ScheduleProcess", handle: scheduleProcess, need: kernel.NeedIDs | kernel.NeedQueue, durability: Durable,
		in: "pid!", out: "Process", doc: "Move a NEW process to READY, or queue a handed-out one again."},
	{service: "kernel", name: "GetNextRunnable", reads: true, handle: getNextRunnable, durability: Lazy,
		in: "start:bool", out: "Process", doc: "Take the best READY process off the queue."},
	{service: "kernel", name: "TransitionState", handle: transitionState, need: kernel.NeedIDs | kernel.NeedQueue, durability: Durable,
		in: "pid! new_state! reason", out: "Process", doc: "Move a process to another state."},
	{service: "kernel", name: "TerminateProcess", handle: terminateProcess, several: true, need: kernel.NeedIDs | kernel.NeedQueue, durability: Durable,
		in: "pid! reason", out: "Process", doc: "End a process; repeating it is harmless."},
	{service: "kernel", name: "CheckQuota", reads: true, handle: checkQuota,
		in: "pid!", out: "QuotaCheck", doc: "Say whether a process is within its quota."},
	{service: "kernel", name: "RecordUsage", handle: recordUsage, durability: Durable,
		in: `pid! llm_calls:int tool_calls:int tokens_in:int tokens_out:int agent_hops:int iterations:int
			inference_requests:int inference_input_chars:int`, out: "Usage",
		doc: "Add to a process's usage counters."},
	{service: "kernel", name: "CheckRateLimit", handle: checkRateLimit, durability: Lazy,
		in: "user_id! record:bool!", out: "RateDecision", doc: "Ask for a place in a user's rate windows."},
	{service: "kernel", name: "ListProcesses", reads: true, handle: listProcesses,
		in: "state user_id cursor:int? limit:int", out: "ProcessPage", doc: "List processes, oldest first."},
	{service: "kernel", name: "GetProcessCounts", reads: true, handle: getProcessCounts,
		out: "Counts", doc: "Count processes by state, and the ready queue."},
	{service: "kernel", name: "SetQuotaDefaults", handle: setQuotaDefaults, durability: Durable,
		in: "quota:QuotaPatch!", out: "Quota",
		doc: "Change the default quota; only fields above zero count."},
	{service: "kernel", name: "GetQuotaDefaults", reads: true, handle: getQuotaDefaults,
		out: "Quota", doc: "Show the default quota."},
	{service: "kernel", name: "GetSystemStatus", reads: true, handle: getSystemStatus,
		in: "digest:bool", out: "Status", doc: "Show processes, sessions and bus counters."},

	{service: "engine", name: "CreateEnvelope", handle: createEnvelope, several: true, durability: Durable,
		in: "raw_input request_id user_id session_id stage_order:[]str metadata:raw", out: "raw",
		doc: "Create and store an envelope."},
	{service: "engine", name: "CheckBounds", handle: checkBounds, whole: true,
		in: "envelope:raw", out: "Bounds", doc: "Say whether an envelope is within its bounds."},
	{service: "engine", name: "UpdateEnvelope", handle: updateEnvelope, several: true, durability: Durable,
		in: "envelope:raw", out: "raw",
		doc: "Replace a stored envelope; sessions whose interrupt it answers go on."},
	{service: "engine", name: "ExecutePipeline", handle: executePipeline, several: true, durability: Durable,
		in: "envelope:raw pipeline_config:raw", out: "Instruction",
		doc: "Start a session named by its envelope and tell what to run first."},
	{service: "engine", name: "CloneEnvelope", handle: cloneEnvelope, several: true, durability: Durable,
		in: "envelope:raw", out: "raw", doc: "Store a copy of an envelope under a new identifier."},

	{service: "orchestration", name: "InitializeSession", handle: initializeSession, several: true, durability: Durable,
		in: "process_id! pipeline_config:raw envelope:raw force:bool", out: "SessionState",
		doc: "Start the session of a process."},
	{service: "orchestration", name: "GetNextInstruction", reads: true, handle: getNextInstruction, durability: Lazy,
		in: "process_id!", out: "Instruction", doc: "Tell what to run next."},
	{service: "orchestration", name: "ReportAgentResult", handle: reportAgentResult, several: true, durability: Durable,
		in: "process_id! agent_name! success:bool! error output:raw metrics:AgentMetrics!", out: "Instruction",
		doc: "Take an agent's result and tell what to run next."},
	{service: "orchestration", name: "GetSessionState", reads: true, handle: getSessionState,
		in: "process_id!", out: "SessionState", doc: "Show a session."},

	{service: "commbus", name: "Publish", handle: publish,
		in: "event_type! payload source", out: "Delivery", doc: "Publish an event to its subscribers."},
	{service: "commbus", name: "Send", handle: send,
		in: "command_type! payload source", out: "Sent", doc: "Send a command to its handler."},
	{service: "commbus", name: "Query", handle: query,
		in: "query_type! payload source timeout_ms:int", out: "Answer",
		doc: "Ask the handler of a query type and wait for its answer."},
	{service: "commbus", name: "Subscribe", handle: subscribe, stream: true,
		in: "event_types:[]str! subscriber_id ack:bool", out: "Event",
		doc: "Stream the events of some types."},
	{service: "commbus", name: "Unsubscribe", handle: unsubscribeCall,
		in: "stream_id subscriber_id", out: "Ended",
		doc: "End streams of this connection, or cancel its pending query."},
	{service: "commbus", name: "RegisterCommandHandler", handle: registerCommands, stream: true,
		in: "command_types:[]str! handler_id", out: "Registered",
		doc: "Become the handler of some command types."},
	{service: "commbus", name: "RegisterQueryHandler", handle: registerQueries, stream: true,
		in: "query_types:[]str! handler_id", out: "Registered",
		doc: "Become the handler of some query types."},
	{service: "commbus", name: "Reply", handle: reply,
		in: "query_id! success:bool! result error", out: "Accepted",
		doc: "Answer a query given to this connection."},
})

// quotaNames are the keys of a quota, in validation order (kernel-ipc §4.0).
var quotaNames = func() []string {
	names := make([]string, kernel.NumQuotaFields)
	for i := range names {
		names[i] = kernel.QuotaField(i).String()
	}
	return names
}()

var quotaFields = mpack.Fields(quotaNames...)

func index(table []method) []method {
	for i := range table {
		table[i].index = i
		table[i].fields = fieldNames(table[i].in)
		table[i].keyed = len(table[i].fields) > 0 && table[i].fields[0] == "pid"
		table[i].want = mpack.Fields(table[i].fields...)
	}
	return table
}

func fieldNames(in string) (names []string) {
	for _, field := range strings.Fields(in) {
		names = append(names, field[:strings.IndexAny(field+"!", ":!")])
	}
	return names
}

// routes finds a method's row by its names as they stand in the request: an open-addressed table that is never written after it
// was made, sparse enough that a look-up is one comparison of each name.
type routes struct {
	rows     [512]*method
	services []string
}

func newRoutes(table []method) *routes {
	r := &routes{}
	for i := range table {
		m := &table[i]
		at := routeHash(m.service, m.name)
		for r.rows[at] != nil {
			at = (at + 1) % len(r.rows)
		}
		r.rows[at] = m
		if !slices.Contains(r.services, m.service) {
			r.services = append(r.services, m.service)
		}
	}
	return r
}

// routeHash tells method names apart by their length and three of their letters; both names are not empty.
func routeHash[T ~string | ~[]byte](service, name T) int {
	n := len(name)
	h := uint(n) + uint(name[0])*7 + uint(name[n-1])*31 + uint(name[n/2])*131 + uint(service[0])*257
	return int(h % uint(len(routes{}.rows)))
}

// find returns the row of a method, nil if there is none. It does not allocate.
func (r *routes) find(service, name []byte) *method {
	if len(service) == 0 || len(name) == 0 {
		return nil
	}
	for at := routeHash(service, name); r.rows[at] != nil; at = (at + 1) % len(r.rows) {
		if m := r.rows[at]; m.name == string(name) && m.service == string(service) {
			return m
		}
	}
	return nil
}

// has reports whether any method belongs to service.
func (r *routes) has(service []byte) bool {
	return slices.ContainsFunc(r.services, func(s string) bool { return s == string(service) })
}

// MethodInfo describes one method of the endpoint, for listings and documentation.
type MethodInfo struct {
	Service, Name string
	Doc           string   // one sentence
	Fields        []string // keys of the body, in validation order
	Stream        bool     // opens a stream instead of being answered by a RESPONSE
	Durability    Durability
}

// Methods lists the methods the endpoint serves, in the order of the method table.
func Methods() []MethodInfo {
	infos := make([]MethodInfo, 0, len(methods))
	for i := range methods {
		m := &methods[i]
		infos = append(infos, MethodInfo{m.service, m.name, m.doc, slices.Clone(m.fields), m.stream, m.durability})
	}
	return infos
}
