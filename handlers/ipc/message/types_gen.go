// Code generated from handlers/ipc/methods.txt. DO NOT EDIT.

package message

import "github.com/tinylib/msgp/msgp"

// A reply may not reserve more memory than its frame can hold.
//
//msgp:limit arrays:1048576 maps:1048576

// CreateProcess is the body of kernel.CreateProcess.
type CreateProcess struct {
	PID       string      `msg:"pid"`
	RequestID string      `msg:"request_id,omitempty"`
	UserID    string      `msg:"user_id,omitempty"`
	SessionID string      `msg:"session_id,omitempty"`
	Priority  string      `msg:"priority,omitempty"`
	Quota     *QuotaPatch `msg:"quota,omitempty"`
	Schedule  *bool       `msg:"schedule,omitempty"`
}

// GetProcess is the body of kernel.GetProcess.
type GetProcess struct {
	PID string `msg:"pid"`
}

// ScheduleProcess is the body of kernel.ScheduleProcess.
type ScheduleProcess struct {
	PID string `msg:"pid"`
}

// GetNextRunnable is the body of kernel.GetNextRunnable.
type GetNextRunnable struct {
	Start bool `msg:"start,omitempty"`
}

// TransitionState is the body of kernel.TransitionState.
type TransitionState struct {
	PID      string `msg:"pid"`
	NewState string `msg:"new_state"`
	Reason   string `msg:"reason,omitempty"`
}

// TerminateProcess is the body of kernel.TerminateProcess.
type TerminateProcess struct {
	PID    string `msg:"pid"`
	Reason string `msg:"reason,omitempty"`
}

// CheckQuota is the body of kernel.CheckQuota.
type CheckQuota struct {
	PID string `msg:"pid"`
}

// RecordUsage is the body of kernel.RecordUsage.
type RecordUsage struct {
	PID                 string `msg:"pid"`
	LLMCalls            int64  `msg:"llm_calls,omitempty"`
	ToolCalls           int64  `msg:"tool_calls,omitempty"`
	TokensIn            int64  `msg:"tokens_in,omitempty"`
	TokensOut           int64  `msg:"tokens_out,omitempty"`
	AgentHops           int64  `msg:"agent_hops,omitempty"`
	Iterations          int64  `msg:"iterations,omitempty"`
	InferenceRequests   int64  `msg:"inference_requests,omitempty"`
	InferenceInputChars int64  `msg:"inference_input_chars,omitempty"`
}

// CheckRateLimit is the body of kernel.CheckRateLimit.
type CheckRateLimit struct {
	UserID string `msg:"user_id"`
	Record bool   `msg:"record"`
}

// ListProcesses is the body of kernel.ListProcesses.
type ListProcesses struct {
	State  string `msg:"state,omitempty"`
	UserID string `msg:"user_id,omitempty"`
	Cursor *int64 `msg:"cursor,omitempty"`
	Limit  int64  `msg:"limit,omitempty"`
}

// SetQuotaDefaults is the body of kernel.SetQuotaDefaults.
type SetQuotaDefaults struct {
	Quota QuotaPatch `msg:"quota"`
}

// GetSystemStatus is the body of kernel.GetSystemStatus.
type GetSystemStatus struct {
	Digest bool `msg:"digest,omitempty"`
}

// Ping is the body of kernel.Ping.
type Ping struct {
	Payload msgp.Raw `msg:"payload"`
}

// CreateEnvelope is the body of engine.CreateEnvelope.
type CreateEnvelope struct {
	RawInput   string   `msg:"raw_input,omitempty"`
	RequestID  string   `msg:"request_id,omitempty"`
	UserID     string   `msg:"user_id,omitempty"`
	SessionID  string   `msg:"session_id,omitempty"`
	StageOrder []string `msg:"stage_order,omitempty"`
	Metadata   msgp.Raw `msg:"metadata"`
}

// UpdateEnvelope is the body of engine.UpdateEnvelope.
type UpdateEnvelope struct {
	Envelope msgp.Raw `msg:"envelope"`
}

// ExecutePipeline is the body of engine.ExecutePipeline.
type ExecutePipeline struct {
	Envelope       msgp.Raw `msg:"envelope"`
	PipelineConfig msgp.Raw `msg:"pipeline_config"`
}

// CloneEnvelope is the body of engine.CloneEnvelope.
type CloneEnvelope struct {
	Envelope msgp.Raw `msg:"envelope"`
}

// InitializeSession is the body of orchestration.InitializeSession.
type InitializeSession struct {
	ProcessID      string   `msg:"process_id"`
	PipelineConfig msgp.Raw `msg:"pipeline_config"`
	Envelope       msgp.Raw `msg:"envelope"`
	Force          bool     `msg:"force,omitempty"`
}

// GetNextInstruction is the body of orchestration.GetNextInstruction.
type GetNextInstruction struct {
	ProcessID string `msg:"process_id"`
}

// ReportAgentResult is the body of orchestration.ReportAgentResult.
type ReportAgentResult struct {
	ProcessID string       `msg:"process_id"`
	AgentName string       `msg:"agent_name"`
	Success   bool         `msg:"success"`
	Error     string       `msg:"error,omitempty"`
	Output    msgp.Raw     `msg:"output"`
	Metrics   AgentMetrics `msg:"metrics"`
}

// GetSessionState is the body of orchestration.GetSessionState.
type GetSessionState struct {
	ProcessID string `msg:"process_id"`
}

// Publish is the body of commbus.Publish.
type Publish struct {
	EventType string `msg:"event_type"`
	Payload   string `msg:"payload,omitempty"`
	Source    string `msg:"source,omitempty"`
}

// Send is the body of commbus.Send.
type Send struct {
	CommandType string `msg:"command_type"`
	Payload     string `msg:"payload,omitempty"`
	Source      string `msg:"source,omitempty"`
}

// Query is the body of commbus.Query.
type Query struct {
	QueryType string `msg:"query_type"`
	Payload   string `msg:"payload,omitempty"`
	Source    string `msg:"source,omitempty"`
	TimeoutMS int64  `msg:"timeout_ms,omitempty"`
}

// Subscribe is the body of commbus.Subscribe.
type Subscribe struct {
	EventTypes    []string `msg:"event_types"`
	SubscriberID  string   `msg:"subscriber_id,omitempty"`
	Ack           bool     `msg:"ack,omitempty"`
	EventPatterns []string `msg:"event_patterns,omitempty"`
}

// Unsubscribe is the body of commbus.Unsubscribe.
type Unsubscribe struct {
	StreamID     string `msg:"stream_id,omitempty"`
	SubscriberID string `msg:"subscriber_id,omitempty"`
}

// RegisterCommandHandler is the body of commbus.RegisterCommandHandler.
type RegisterCommandHandler struct {
	CommandTypes []string `msg:"command_types"`
	HandlerID    string   `msg:"handler_id,omitempty"`
}

// RegisterQueryHandler is the body of commbus.RegisterQueryHandler.
type RegisterQueryHandler struct {
	QueryTypes []string `msg:"query_types"`
	HandlerID  string   `msg:"handler_id,omitempty"`
}

// Reply is the body of commbus.Reply.
type Reply struct {
	QueryID string `msg:"query_id"`
	Success bool   `msg:"success"`
	Result  string `msg:"result,omitempty"`
	Error   string `msg:"error,omitempty"`
}

// Frame is the payload of every frame a server sends (kernel-ipc §3.5).
type Frame struct {
	ID    string   `msg:"id"`
	Ok    *bool    `msg:"ok,omitempty"`
	Body  msgp.Raw `msg:"body"`
	Error *Fault   `msg:"error,omitempty"`
}

// Fault is the error of an ERROR frame.
type Fault struct {
	Code    string `msg:"code"`
	Message string `msg:"message"`
	// Retryable is true on saturation: the same request may succeed later.
	Retryable bool `msg:"retryable"`
	// KernelQueueCapacity is that setting of a server whose queue is full, else 0.
	KernelQueueCapacity int64 `msg:"kernel_queue_capacity"`
	// MaxConnections is that setting of a server that refuses the connection, else 0.
	MaxConnections int64 `msg:"max_connections"`
	// RetryAfterSeconds is how long the rate limiter asks to wait, else 0.
	RetryAfterSeconds float64 `msg:"retry_after_seconds"`
}

// Process is the process control block, the reply of every process operation (kernel-ipc §4.0).
type Process struct {
	PID       string `msg:"pid"`
	RequestID string `msg:"request_id"`
	UserID    string `msg:"user_id"`
	SessionID string `msg:"session_id"`
	// State is NEW, READY, RUNNING, WAITING, BLOCKED, TERMINATED or ZOMBIE.
	State string `msg:"state"`
	// Priority is REALTIME, HIGH, NORMAL, LOW or IDLE.
	Priority string `msg:"priority"`
	Usage    Usage  `msg:"usage"`
	// CurrentStage is the stage of the session of the same id, "" without one.
	CurrentStage string `msg:"current_stage"`
}

// Usage holds the five visible counters of a process.
type Usage struct {
	LLMCalls  int64 `msg:"llm_calls"`
	ToolCalls int64 `msg:"tool_calls"`
	AgentHops int64 `msg:"agent_hops"`
	TokensIn  int64 `msg:"tokens_in"`
	TokensOut int64 `msg:"tokens_out"`
}

// Quota is the full set of limits of a process, or of the defaults (kernel-ipc §4.0).
type Quota struct {
	MaxLLMCalls            int64 `msg:"max_llm_calls"`
	MaxToolCalls           int64 `msg:"max_tool_calls"`
	MaxAgentHops           int64 `msg:"max_agent_hops"`
	MaxIterations          int64 `msg:"max_iterations"`
	TimeoutSeconds         int64 `msg:"timeout_seconds"`
	MaxInputTokens         int64 `msg:"max_input_tokens"`
	MaxOutputTokens        int64 `msg:"max_output_tokens"`
	MaxContextTokens       int64 `msg:"max_context_tokens"`
	SoftTimeoutSeconds     int64 `msg:"soft_timeout_seconds"`
	RateLimitRPM           int64 `msg:"rate_limit_rpm"`
	RateLimitRPH           int64 `msg:"rate_limit_rph"`
	RateLimitBurst         int64 `msg:"rate_limit_burst"`
	MaxInferenceRequests   int64 `msg:"max_inference_requests"`
	MaxInferenceInputChars int64 `msg:"max_inference_input_chars"`
}

// QuotaPatch names some limits. In CreateProcess an absent one takes the default quota's value; SetQuotaDefaults uses only values above 0.
type QuotaPatch struct {
	MaxLLMCalls            *int64 `msg:"max_llm_calls,omitempty"`
	MaxToolCalls           *int64 `msg:"max_tool_calls,omitempty"`
	MaxAgentHops           *int64 `msg:"max_agent_hops,omitempty"`
	MaxIterations          *int64 `msg:"max_iterations,omitempty"`
	TimeoutSeconds         *int64 `msg:"timeout_seconds,omitempty"`
	MaxInputTokens         *int64 `msg:"max_input_tokens,omitempty"`
	MaxOutputTokens        *int64 `msg:"max_output_tokens,omitempty"`
	MaxContextTokens       *int64 `msg:"max_context_tokens,omitempty"`
	SoftTimeoutSeconds     *int64 `msg:"soft_timeout_seconds,omitempty"`
	RateLimitRPM           *int64 `msg:"rate_limit_rpm,omitempty"`
	RateLimitRPH           *int64 `msg:"rate_limit_rph,omitempty"`
	RateLimitBurst         *int64 `msg:"rate_limit_burst,omitempty"`
	MaxInferenceRequests   *int64 `msg:"max_inference_requests,omitempty"`
	MaxInferenceInputChars *int64 `msg:"max_inference_input_chars,omitempty"`
}

// QuotaCheck is the reply of CheckQuota; being over quota is no error (kernel-ipc §4.7).
type QuotaCheck struct {
	WithinBounds bool `msg:"within_bounds"`
	// ExceededReason names the first violated limit, "" within bounds.
	ExceededReason string `msg:"exceeded_reason"`
	LLMCalls       int64  `msg:"llm_calls"`
	ToolCalls      int64  `msg:"tool_calls"`
	AgentHops      int64  `msg:"agent_hops"`
	TokensIn       int64  `msg:"tokens_in"`
	TokensOut      int64  `msg:"tokens_out"`
}

// RateDecision is the reply of CheckRateLimit; a refusal is no error (kernel-ipc §4.9).
type RateDecision struct {
	Allowed  bool   `msg:"allowed"`
	Exceeded bool   `msg:"exceeded"`
	Reason   string `msg:"reason"`
	// LimitType is hour, minute or burst when refused, else "".
	LimitType string `msg:"limit_type"`
	// CurrentCount is the number of accepted requests in the last 60 s.
	CurrentCount int64 `msg:"current_count"`
	// Limit is the per-minute limit in force.
	Limit             int64   `msg:"limit"`
	RetryAfterSeconds float64 `msg:"retry_after_seconds"`
	Remaining         int64   `msg:"remaining"`
}

// ProcessPage is the reply of ListProcesses, oldest creation first.
type ProcessPage struct {
	Processes []Process `msg:"processes"`
	// NextCursor is nil on the last page.
	NextCursor *int64 `msg:"next_cursor,omitempty"`
}

// StateCounts holds one number of processes per state.
type StateCounts struct {
	New        int64 `msg:"NEW"`
	Ready      int64 `msg:"READY"`
	Running    int64 `msg:"RUNNING"`
	Waiting    int64 `msg:"WAITING"`
	Blocked    int64 `msg:"BLOCKED"`
	Terminated int64 `msg:"TERMINATED"`
	Zombie     int64 `msg:"ZOMBIE"`
}

// Counts is the reply of GetProcessCounts (kernel-ipc §4.11).
type Counts struct {
	CountsByState StateCounts `msg:"counts_by_state"`
	// Total is the sum of CountsByState in the same reply.
	Total int64 `msg:"total"`
	// QueueDepth counts the ready queue without leased processes.
	QueueDepth int64 `msg:"queue_depth"`
}

// Status is the reply of GetSystemStatus (kernel-ipc §4.14).
type Status struct {
	Processes     ProcessStatus       `msg:"processes"`
	Services      ServiceStatus       `msg:"services"`
	Orchestration OrchestrationStatus `msg:"orchestration"`
	Commbus       BusStatus           `msg:"commbus"`
	// Digest is there if the request asks for it.
	Digest *Digest `msg:"digest,omitempty"`
}

// ProcessStatus is the process part of Status.
type ProcessStatus struct {
	Total   int64       `msg:"total"`
	ByState StateCounts `msg:"by_state"`
}

// ServiceStatus counts registered services by health.
type ServiceStatus struct {
	Healthy   int64 `msg:"healthy"`
	Degraded  int64 `msg:"degraded"`
	Unhealthy int64 `msg:"unhealthy"`
}

// OrchestrationStatus counts orchestration sessions.
type OrchestrationStatus struct {
	ActiveSessions int64 `msg:"active_sessions"`
}

// BusStatus holds the bus counters: the first three since the server's start, the last one now.
type BusStatus struct {
	EventsPublished   int64 `msg:"events_published"`
	CommandsSent      int64 `msg:"commands_sent"`
	QueriesExecuted   int64 `msg:"queries_executed"`
	ActiveSubscribers int64 `msg:"active_subscribers"`
}

// Digest condenses all state into numbers of 16 hexadecimal digits.
type Digest struct {
	Kernel        []string `msg:"kernel"`
	Orchestration []string `msg:"orchestration"`
	// Index is the journal's last record before the walk, 0 without a journal.
	Index int64 `msg:"index"`
	// Through is the last record after it; if both are equal, nothing changed meanwhile.
	Through int64 `msg:"through"`
}

// Pong is the reply of Ping.
type Pong struct {
	// Pong is the payload of the request, nil without one.
	Pong    msgp.Raw `msg:"pong"`
	Server  string   `msg:"server"`
	Version string   `msg:"version"`
	// Protocol is 1.
	Protocol int64 `msg:"protocol"`
	// Extensions are methods, and fields of methods, that not every server has.
	Extensions []string   `msg:"extensions"`
	Limits     PingLimits `msg:"limits"`
}

// PingLimits holds the limits of a server that its clients have to know.
type PingLimits struct {
	MaxFrameBytes int64 `msg:"max_frame_bytes"`
	// MaxInFlight is how many unanswered requests of a connection the server reads.
	MaxInFlight     int64 `msg:"max_in_flight"`
	ReadTimeoutSecs int64 `msg:"read_timeout_secs"`
}

// Bounds is the reply of CheckBounds; being over them is no error (envelope §4.6).
type Bounds struct {
	CanContinue bool `msg:"can_continue"`
	// TerminalReason is MAX_…_EXCEEDED, or "" within bounds.
	TerminalReason      string `msg:"terminal_reason"`
	LLMCallsRemaining   int64  `msg:"llm_calls_remaining"`
	AgentHopsRemaining  int64  `msg:"agent_hops_remaining"`
	IterationsRemaining int64  `msg:"iterations_remaining"`
}

// Instruction is the next step of a session's worker (envelope §3.10).
type Instruction struct {
	// Kind is RUN_AGENT, WAIT_INTERRUPT or TERMINATE.
	Kind string `msg:"kind"`
	// AgentName is the agent to run, "" when none is.
	AgentName string `msg:"agent_name"`
	// Envelope is the session's, in the shape it was given in.
	Envelope           msgp.Raw `msg:"envelope"`
	TerminalReason     string   `msg:"terminal_reason"`
	TerminationMessage string   `msg:"termination_message"`
	InterruptPending   bool     `msg:"interrupt_pending"`
	// Interrupt is an encoded map, nil when there is none.
	Interrupt msgp.Raw `msg:"interrupt"`
}

// SessionState is the reply of InitializeSession and GetSessionState (envelope §3.10).
type SessionState struct {
	ProcessID    string   `msg:"process_id"`
	CurrentStage string   `msg:"current_stage"`
	StageOrder   []string `msg:"stage_order"`
	Envelope     msgp.Raw `msg:"envelope"`
	// EdgeTraversals counts hops by "from->to".
	EdgeTraversals map[string]int64 `msg:"edge_traversals"`
	Terminated     bool             `msg:"terminated"`
	TerminalReason string           `msg:"terminal_reason"`
}

// AgentMetrics is the cost of an agent's run. Absent tokens are unknown; the duration is not kept.
type AgentMetrics struct {
	LLMCalls   int64  `msg:"llm_calls"`
	ToolCalls  int64  `msg:"tool_calls"`
	TokensIn   *int64 `msg:"tokens_in,omitempty"`
	TokensOut  *int64 `msg:"tokens_out,omitempty"`
	DurationMS int64  `msg:"duration_ms"`
}

// Delivery is the reply of Publish: how many subscriptions took the event.
type Delivery struct {
	Success   bool  `msg:"success"`
	Delivered int64 `msg:"delivered"`
}

// Sent is the reply of Send.
type Sent struct {
	Success bool   `msg:"success"`
	Error   string `msg:"error"`
}

// Answer is the reply of Query, as its handler gave it.
type Answer struct {
	Success bool `msg:"success"`
	// Result is one encoded value.
	Result msgp.Raw `msg:"result"`
	Error  string   `msg:"error"`
}

// Ended is the reply of Unsubscribe: how many streams it ended.
type Ended struct {
	Success bool  `msg:"success"`
	Ended   int64 `msg:"ended"`
}

// Accepted is the reply of Reply: whether the query still waited.
type Accepted struct {
	Success   bool `msg:"success"`
	Delivered bool `msg:"delivered"`
}

// Event is one message of a Subscribe stream.
type Event struct {
	EventType string `msg:"event_type"`
	// Payload is JSON text, byte for byte as published.
	Payload string `msg:"payload"`
	// TimestampMS is Unix time in milliseconds at publish.
	TimestampMS int64  `msg:"timestamp_ms"`
	Source      string `msg:"source"`
}

// Registered is the first message of a handler's stream.
type Registered struct {
	Registered []string `msg:"registered"`
	HandlerID  string   `msg:"handler_id"`
}

// Command is one message to a command handler.
type Command struct {
	CommandType string `msg:"command_type"`
	Payload     string `msg:"payload"`
	Source      string `msg:"source"`
	TimestampMS int64  `msg:"timestamp_ms"`
}

// QueryCall is one query to a query handler, to be answered with Reply.
type QueryCall struct {
	QueryID   string `msg:"query_id"`
	QueryType string `msg:"query_type"`
	Payload   string `msg:"payload"`
	Source    string `msg:"source"`
	// TimeoutMS is the effective timeout in milliseconds.
	TimeoutMS int64 `msg:"timeout_ms"`
}
