// Code generated from handlers/ipc/methods.txt. DO NOT EDIT.

package ipc

import "trunkline/engine/kernel"

var methods = index([]method{
	{
		service: "kernel", name: "CreateProcess", handle: createProcess,
		fields: []string{"pid", "request_id", "user_id", "session_id", "priority", "quota", "schedule"}, durability: Durable, several: true, to: ToKey, key: "pid",
		doc: "Create a process and queue it.",
	},
	{
		service: "kernel", name: "GetProcess", handle: getProcess,
		fields: []string{"pid"}, reads: true, need: kernel.NeedIDs, to: ToKey, key: "pid",
		doc: "Show one process.",
	},
	{
		service: "kernel", name: "ScheduleProcess", handle: scheduleProcess,
		fields: []string{"pid"}, durability: Durable, need: kernel.NeedIDs | kernel.NeedQueue, to: ToKey, key: "pid",
		doc: "Move a NEW process to READY, or queue a handed-out one again.",
	},
	{
		service: "kernel", name: "GetNextRunnable", handle: getNextRunnable,
		fields: []string{"start"}, durability: Lazy, reads: true, to: ToSeveral,
		doc: "Take the best READY process off the queue.",
	},
	{
		service: "kernel", name: "TransitionState", handle: transitionState,
		fields: []string{"pid", "new_state", "reason"}, durability: Durable, need: kernel.NeedIDs | kernel.NeedQueue, to: ToKey, key: "pid",
		doc: "Move a process to another state.",
	},
	{
		service: "kernel", name: "TerminateProcess", handle: terminateProcess,
		fields: []string{"pid", "reason"}, durability: Durable, several: true, need: kernel.NeedIDs | kernel.NeedQueue, to: ToKey, key: "pid",
		doc: "End a process; repeating it is harmless.",
	},
	{
		service: "kernel", name: "CheckQuota", handle: checkQuota,
		fields: []string{"pid"}, reads: true, to: ToKey, key: "pid",
		doc: "Report whether a process is within its quota.",
	},
	{
		service: "kernel", name: "RecordUsage", handle: recordUsage,
		fields: []string{"pid", "llm_calls", "tool_calls", "tokens_in", "tokens_out", "agent_hops", "iterations", "inference_requests", "inference_input_chars"}, durability: Durable, to: ToKey, key: "pid",
		doc: "Add to a process's usage counters.",
	},
	{
		service: "kernel", name: "CheckRateLimit", handle: checkRateLimit,
		fields: []string{"user_id", "record"}, durability: Lazy, to: ToKey, key: "user_id",
		doc: "Ask for a place in a user's rate windows.",
	},
	{
		service: "kernel", name: "ListProcesses", handle: listProcesses,
		fields: []string{"state", "user_id", "cursor", "limit", "created"}, hidden: 1, reads: true, to: ToSeveral,
		doc: "List processes, oldest first.",
	},
	{
		service: "kernel", name: "GetProcessCounts", handle: getProcessCounts,
		fields: []string{}, reads: true, to: ToSeveral,
		doc: "Count processes by state, and the ready queue.",
	},
	{
		service: "kernel", name: "SetQuotaDefaults", handle: setQuotaDefaults,
		fields: []string{"quota"}, durability: Durable, to: ToSeveral,
		doc: "Change the default quota; only fields above zero count.",
	},
	{
		service: "kernel", name: "GetQuotaDefaults", handle: getQuotaDefaults,
		fields: []string{}, reads: true, to: ToFirst,
		doc: "Show the default quota.",
	},
	{
		service: "kernel", name: "GetSystemStatus", handle: getSystemStatus,
		fields: []string{"digest"}, reads: true, to: ToSeveral,
		doc: "Show processes, sessions and bus counters.",
	},
	{
		service: "kernel", name: "Ping", handle: ping,
		fields: []string{"payload"}, whole: true, to: ToAny,
		doc: "Echo a value and show the server's version, limits and extensions.",
	},
	{
		service: "engine", name: "CreateEnvelope", handle: createEnvelope,
		fields: []string{"raw_input", "request_id", "user_id", "session_id", "stage_order", "metadata"}, durability: Durable, several: true, to: ToAny,
		doc: "Create and store an envelope.",
	},
	{
		service: "engine", name: "CheckBounds", handle: checkBounds,
		fields: []string{"envelope"}, whole: true, to: ToAny,
		doc: "Report whether an envelope is within its bounds.",
	},
	{
		service: "engine", name: "UpdateEnvelope", handle: updateEnvelope,
		fields: []string{"envelope", "resume"}, hidden: 1, durability: Durable, several: true, to: ToSeveral,
		doc: "Replace a stored envelope; sessions whose interrupt it answers go on.",
	},
	{
		service: "engine", name: "ExecutePipeline", handle: executePipeline,
		fields: []string{"envelope", "pipeline_config"}, durability: Durable, several: true, to: ToEnvelope,
		doc: "Start a session named by its envelope and return what to run first.",
	},
	{
		service: "engine", name: "CloneEnvelope", handle: cloneEnvelope,
		fields: []string{"envelope"}, durability: Durable, several: true, to: ToAny,
		doc: "Store a copy of an envelope under a new identifier.",
	},
	{
		service: "orchestration", name: "InitializeSession", handle: initializeSession,
		fields: []string{"process_id", "pipeline_config", "envelope", "force"}, durability: Durable, several: true, to: ToKey, key: "process_id",
		doc: "Start the session of a process.",
	},
	{
		service: "orchestration", name: "GetNextInstruction", handle: getNextInstruction,
		fields: []string{"process_id"}, durability: Lazy, reads: true, to: ToKey, key: "process_id",
		doc: "Return what to run next.",
	},
	{
		service: "orchestration", name: "ReportAgentResult", handle: reportAgentResult,
		fields: []string{"process_id", "agent_name", "success", "error", "output", "metrics"}, durability: Durable, several: true, to: ToKey, key: "process_id",
		doc: "Take an agent's result and return what to run next.",
	},
	{
		service: "orchestration", name: "GetSessionState", handle: getSessionState,
		fields: []string{"process_id"}, reads: true, to: ToKey, key: "process_id",
		doc: "Show a session.",
	},
	{
		service: "commbus", name: "Publish", handle: publish,
		fields: []string{"event_type", "payload", "source"}, to: ToKey, key: "event_type",
		doc: "Publish an event to its subscribers.",
	},
	{
		service: "commbus", name: "Send", handle: send,
		fields: []string{"command_type", "payload", "source"}, to: ToKey, key: "command_type",
		doc: "Send a command to its handler.",
	},
	{
		service: "commbus", name: "Query", handle: query,
		fields: []string{"query_type", "payload", "source", "timeout_ms"}, to: ToSeveral,
		doc: "Ask the handler of a query type and wait for its answer.",
	},
	{
		service: "commbus", name: "Subscribe", handle: subscribe,
		fields: []string{"event_types", "subscriber_id", "ack", "event_patterns"}, stream: true, to: ToSeveral,
		doc: "Stream the events of some types.",
	},
	{
		service: "commbus", name: "Unsubscribe", handle: unsubscribe,
		fields: []string{"stream_id", "subscriber_id"}, to: ToSeveral,
		doc: "End streams of this connection, or cancel its pending query.",
	},
	{
		service: "commbus", name: "RegisterCommandHandler", handle: registerCommandHandler,
		fields: []string{"command_types", "handler_id"}, stream: true, to: ToSeveral,
		doc: "Become the handler of some command types.",
	},
	{
		service: "commbus", name: "RegisterQueryHandler", handle: registerQueryHandler,
		fields: []string{"query_types", "handler_id"}, stream: true, to: ToSeveral,
		doc: "Become the handler of some query types.",
	},
	{
		service: "commbus", name: "Reply", handle: reply,
		fields: []string{"query_id", "success", "result", "error"}, to: ToKey, key: "query_id",
		doc: "Answer a query given to this connection.",
	},
})

// extensions are the methods and fields that the reference implementation does not have; the last
// one is a field of all methods that change something.
var extensions = []string{
	"kernel.CreateProcess.schedule",
	"kernel.GetNextRunnable.start",
	"kernel.RecordUsage.iterations",
	"kernel.RecordUsage.inference_requests",
	"kernel.RecordUsage.inference_input_chars",
	"kernel.ListProcesses.cursor",
	"kernel.ListProcesses.limit",
	"kernel.GetSystemStatus.digest",
	"kernel.Ping",
	"commbus.Subscribe.ack",
	"commbus.Subscribe.event_patterns",
	"commbus.Unsubscribe",
	"commbus.RegisterCommandHandler",
	"commbus.RegisterQueryHandler",
	"commbus.Reply",
	IdempotencyKey,
}
