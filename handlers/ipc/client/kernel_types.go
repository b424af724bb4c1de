package client

//go:generate go run github.com/tinylib/msgp@v1.6.5 -io=false -tests=false -unexported -file kernel_types.go -o kernel_types_gen.go

// A reply may not make this side reserve more than its frame could hold.
//
//msgp:limit arrays:1048576 maps:1048576

// Process is the process control block every process operation answers with (kernel-ipc §4.0).
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
	// CurrentStage is the stage of the orchestration session of the same id, "" without one.
	CurrentStage string `msg:"current_stage"`
}

// Usage is a process's five visible counters.
type Usage struct {
	LLMCalls  int64 `msg:"llm_calls"`
	ToolCalls int64 `msg:"tool_calls"`
	AgentHops int64 `msg:"agent_hops"`
	TokensIn  int64 `msg:"tokens_in"`
	TokensOut int64 `msg:"tokens_out"`
}

// UsageDelta is what RecordUsage adds; every field counts from 0 (kernel-ipc §4.8).
type UsageDelta struct {
	LLMCalls            int64 `msg:"llm_calls,omitempty"`
	ToolCalls           int64 `msg:"tool_calls,omitempty"`
	TokensIn            int64 `msg:"tokens_in,omitempty"`
	TokensOut           int64 `msg:"tokens_out,omitempty"`
	AgentHops           int64 `msg:"agent_hops,omitempty"`
	Iterations          int64 `msg:"iterations,omitempty"`
	InferenceRequests   int64 `msg:"inference_requests,omitempty"`
	InferenceInputChars int64 `msg:"inference_input_chars,omitempty"`
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

// QuotaPatch names some limits; nil ones are not sent. For CreateProcess a nil limit takes the default quota's value and 0 is
// a real zero limit; for SetQuotaDefaults only values above 0 have an effect.
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

// QuotaCheck is CheckQuota's answer; being over quota is an answer, not an error (kernel-ipc §4.7).
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

// RateDecision is CheckRateLimit's answer; a refusal is an answer, not an error (kernel-ipc §4.9).
type RateDecision struct {
	Allowed  bool   `msg:"allowed"`
	Exceeded bool   `msg:"exceeded"`
	Reason   string `msg:"reason"`
	// LimitType is hour, minute or burst when refused, else "".
	LimitType string `msg:"limit_type"`
	// CurrentCount is the number of accepted requests in the last 60 s, this one included.
	CurrentCount int64 `msg:"current_count"`
	// Limit is the per-minute limit in force.
	Limit             int64   `msg:"limit"`
	RetryAfterSeconds float64 `msg:"retry_after_seconds"`
	Remaining         int64   `msg:"remaining"`
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

// Counts is GetProcessCounts's answer (kernel-ipc §4.11).
type Counts struct {
	ByState StateCounts `msg:"counts_by_state"`
	// Total is the sum of ByState in the same reply.
	Total int64 `msg:"total"`
	// QueueDepth counts the ready queue, leased processes left out.
	QueueDepth int64 `msg:"queue_depth"`
}

// Status is GetSystemStatus's answer (kernel-ipc §4.14).
type Status struct {
	Processes     ProcessStatus       `msg:"processes"`
	Services      ServiceStatus       `msg:"services"`
	Orchestration OrchestrationStatus `msg:"orchestration"`
	Commbus       BusStatus           `msg:"commbus"`
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

// CreateProcess is the input of the method of that name (kernel-ipc §4.1); only PID is required.
type CreateProcess struct {
	PID       string      `msg:"pid"`
	RequestID string      `msg:"request_id,omitempty"`
	UserID    string      `msg:"user_id,omitempty"`
	SessionID string      `msg:"session_id,omitempty"`
	Priority  string      `msg:"priority,omitempty"`
	Quota     *QuotaPatch `msg:"quota,omitempty"`
	// Schedule false leaves the process NEW and out of the ready queue; nil means true.
	Schedule *bool `msg:"schedule,omitempty"`
}

// ListProcesses selects what ListProcesses answers (kernel-ipc §4.10); the zero value means everything in one reply.
type ListProcesses struct {
	State  string `msg:"state,omitempty"`
	UserID string `msg:"user_id,omitempty"`
	// Cursor is a previous page's NextCursor; nil starts at the oldest.
	Cursor *int64 `msg:"cursor,omitempty"`
	// Limit bounds the page; 0 means no bound but the reply's size.
	Limit int64 `msg:"limit,omitempty"`
}

// ProcessPage is ListProcesses's answer, oldest creation first.
type ProcessPage struct {
	Processes []Process `msg:"processes"`
	// NextCursor is nil on the last page.
	NextCursor *int64 `msg:"next_cursor"`
}

type pidInput struct {
	PID string `msg:"pid"`
}

type nextInput struct {
	Start bool `msg:"start,omitempty"`
}

type transitionInput struct {
	PID      string `msg:"pid"`
	NewState string `msg:"new_state"`
	Reason   string `msg:"reason,omitempty"`
}

type terminateInput struct {
	PID    string `msg:"pid"`
	Reason string `msg:"reason,omitempty"`
}

type usageInput struct {
	PID        string `msg:"pid"`
	UsageDelta `msg:",flatten"`
}

type rateInput struct {
	UserID string `msg:"user_id"`
	Record bool   `msg:"record"`
}

type quotaInput struct {
	Quota QuotaPatch `msg:"quota"`
}
