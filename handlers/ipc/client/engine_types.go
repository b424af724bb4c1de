package client

import "github.com/tinylib/msgp/msgp"

//go:generate go run github.com/tinylib/msgp@v1.6.5 -io=false -tests=false -unexported -file engine_types.go -o engine_types_gen.go

// A reply may not make this side reserve more than its frame could hold.
//
//msgp:limit arrays:1048576 maps:1048576

// Envelopes, outputs and metadata are one encoded MessagePack value each, because their members are the callers' own; EncodeJSON
// makes one of JSON text and AppendJSON shows one. A nil msgp.Raw is sent as nil, which the server reads as absent.

// CreateEnvelope is the input of the method of that name (envelope §4.5); every field may be left empty.
type CreateEnvelope struct {
	RawInput   string   `msg:"raw_input,omitempty"`
	RequestID  string   `msg:"request_id,omitempty"`
	UserID     string   `msg:"user_id,omitempty"`
	SessionID  string   `msg:"session_id,omitempty"`
	StageOrder []string `msg:"stage_order,omitempty"`
	// Metadata is an encoded map.
	Metadata msgp.Raw `msg:"metadata"`
}

// Bounds is CheckBounds's answer; being over them is an answer, not an error (envelope §4.6).
type Bounds struct {
	CanContinue bool `msg:"can_continue"`
	// TerminalReason is MAX_LLM_CALLS_EXCEEDED, MAX_ITERATIONS_EXCEEDED, MAX_AGENT_HOPS_EXCEEDED, or "" within bounds.
	TerminalReason      string `msg:"terminal_reason"`
	LLMCallsRemaining   int64  `msg:"llm_calls_remaining"`
	AgentHopsRemaining  int64  `msg:"agent_hops_remaining"`
	IterationsRemaining int64  `msg:"iterations_remaining"`
}

// The kinds of an Instruction.
const (
	RunAgent      = "RUN_AGENT"
	WaitInterrupt = "WAIT_INTERRUPT"
	Terminate     = "TERMINATE"
)

// Instruction says what a session's worker does next (envelope §3.10).
type Instruction struct {
	// Kind is RunAgent, WaitInterrupt or Terminate.
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

// SessionState is a session as InitializeSession and GetSessionState show it (envelope §3.10).
type SessionState struct {
	ProcessID    string   `msg:"process_id"`
	CurrentStage string   `msg:"current_stage"`
	StageOrder   []string `msg:"stage_order"`
	Envelope     msgp.Raw `msg:"envelope"`
	// EdgeTraversals counts hops by "from->to".
	EdgeTraversals map[string]int64 `msg:"edge_traversals"`
	Terminated     bool             `msg:"terminated"`
	// TerminalReason is "" until the session has one.
	TerminalReason string `msg:"terminal_reason"`
}

// InitializeSession is the input of the method of that name (envelope §4.10).
type InitializeSession struct {
	ProcessID string `msg:"process_id"`
	// Pipeline is an encoded pipeline_config (envelope §3.9), a map or a string of its JSON text.
	Pipeline msgp.Raw `msg:"pipeline_config"`
	// Envelope is a map of either shape or a string of its JSON text.
	Envelope msgp.Raw `msg:"envelope"`
	// Force replaces an existing session.
	Force bool `msg:"force,omitempty"`
}

// AgentResult is the input of ReportAgentResult (envelope §4.12).
type AgentResult struct {
	ProcessID string `msg:"process_id"`
	AgentName string `msg:"agent_name"`
	Success   bool   `msg:"success"`
	Error     string `msg:"error,omitempty"`
	// Output is an encoded map; nil is an empty one.
	Output  msgp.Raw     `msg:"output"`
	Metrics AgentMetrics `msg:"metrics"`
}

// AgentMetrics is what an agent's run cost, added to the envelope's counters. Nil tokens are unknown and add nothing; the duration
// is checked and not kept.
type AgentMetrics struct {
	LLMCalls   int64  `msg:"llm_calls,omitempty"`
	ToolCalls  int64  `msg:"tool_calls,omitempty"`
	TokensIn   *int64 `msg:"tokens_in,omitempty"`
	TokensOut  *int64 `msg:"tokens_out,omitempty"`
	DurationMS int64  `msg:"duration_ms,omitempty"`
}

type envelopeInput struct {
	Envelope msgp.Raw `msg:"envelope"`
}

type executeInput struct {
	Envelope msgp.Raw `msg:"envelope"`
	Pipeline msgp.Raw `msg:"pipeline_config"`
}

type processInput struct {
	ProcessID string `msg:"process_id"`
}
