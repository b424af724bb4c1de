// Code generated from handlers/ipc/methods.txt. DO NOT EDIT.

package ipcclient

import (
	"context"

	"github.com/tinylib/msgp/msgp"

	"trunkline/handlers/ipc/message"
)

// CreateProcess calls kernel.CreateProcess. Create a process and queue it.
func (c *Conn) CreateProcess(ctx context.Context, in CreateProcess) (out Process, err error) {
	err = c.invoke(ctx, "kernel", "CreateProcess", &in, &out)
	return out, err
}

// GetProcess calls kernel.GetProcess. Show one process.
func (c *Conn) GetProcess(ctx context.Context, pid string) (out Process, err error) {
	err = c.invoke(ctx, "kernel", "GetProcess", &GetProcess{PID: pid}, &out)
	return out, err
}

// ScheduleProcess calls kernel.ScheduleProcess. Move a NEW process to READY, or queue a handed-out one again.
func (c *Conn) ScheduleProcess(ctx context.Context, pid string) (out Process, err error) {
	err = c.invoke(ctx, "kernel", "ScheduleProcess", &ScheduleProcess{PID: pid}, &out)
	return out, err
}

// GetNextRunnable calls kernel.GetNextRunnable. Take the best READY process off the queue.
func (c *Conn) GetNextRunnable(ctx context.Context, start bool) (out Process, err error) {
	err = c.invoke(ctx, "kernel", "GetNextRunnable", &GetNextRunnable{Start: start}, &out)
	return out, err
}

// TransitionState calls kernel.TransitionState. Move a process to another state.
func (c *Conn) TransitionState(ctx context.Context, in TransitionState) (out Process, err error) {
	err = c.invoke(ctx, "kernel", "TransitionState", &in, &out)
	return out, err
}

// TerminateProcess calls kernel.TerminateProcess. End a process; repeating it is harmless.
func (c *Conn) TerminateProcess(ctx context.Context, in TerminateProcess) (out Process, err error) {
	err = c.invoke(ctx, "kernel", "TerminateProcess", &in, &out)
	return out, err
}

// CheckQuota calls kernel.CheckQuota. Report whether a process is within its quota.
func (c *Conn) CheckQuota(ctx context.Context, pid string) (out QuotaCheck, err error) {
	err = c.invoke(ctx, "kernel", "CheckQuota", &CheckQuota{PID: pid}, &out)
	return out, err
}

// RecordUsage calls kernel.RecordUsage. Add to a process's usage counters.
func (c *Conn) RecordUsage(ctx context.Context, in RecordUsage) (out Usage, err error) {
	err = c.invoke(ctx, "kernel", "RecordUsage", &in, &out)
	return out, err
}

// CheckRateLimit calls kernel.CheckRateLimit. Ask for a place in a user's rate windows.
func (c *Conn) CheckRateLimit(ctx context.Context, in CheckRateLimit) (out RateDecision, err error) {
	err = c.invoke(ctx, "kernel", "CheckRateLimit", &in, &out)
	return out, err
}

// ListProcesses calls kernel.ListProcesses. List processes, oldest first.
func (c *Conn) ListProcesses(ctx context.Context, in ListProcesses) (out ProcessPage, err error) {
	err = c.invoke(ctx, "kernel", "ListProcesses", &in, &out)
	return out, err
}

// GetProcessCounts calls kernel.GetProcessCounts. Count processes by state, and the ready queue.
func (c *Conn) GetProcessCounts(ctx context.Context) (out Counts, err error) {
	err = c.invoke(ctx, "kernel", "GetProcessCounts", nil, &out)
	return out, err
}

// SetQuotaDefaults calls kernel.SetQuotaDefaults. Change the default quota; only fields above zero count.
func (c *Conn) SetQuotaDefaults(ctx context.Context, quota QuotaPatch) (out Quota, err error) {
	err = c.invoke(ctx, "kernel", "SetQuotaDefaults", &SetQuotaDefaults{Quota: quota}, &out)
	return out, err
}

// GetQuotaDefaults calls kernel.GetQuotaDefaults. Show the default quota.
func (c *Conn) GetQuotaDefaults(ctx context.Context) (out Quota, err error) {
	err = c.invoke(ctx, "kernel", "GetQuotaDefaults", nil, &out)
	return out, err
}

// GetSystemStatus calls kernel.GetSystemStatus. Show processes, sessions and bus counters.
func (c *Conn) GetSystemStatus(ctx context.Context, digest bool) (out Status, err error) {
	err = c.invoke(ctx, "kernel", "GetSystemStatus", &GetSystemStatus{Digest: digest}, &out)
	return out, err
}

// Ping calls kernel.Ping. Echo a value and show the server's version, limits and extensions.
func (c *Conn) Ping(ctx context.Context, payload msgp.Raw) (out Pong, err error) {
	err = c.invoke(ctx, "kernel", "Ping", &Ping{Payload: payload}, &out)
	return out, err
}

// CreateEnvelope calls engine.CreateEnvelope. Create and store an envelope.
func (c *Conn) CreateEnvelope(ctx context.Context, in CreateEnvelope) (out msgp.Raw, err error) {
	err = c.invoke(ctx, "engine", "CreateEnvelope", &in, &out)
	return out, err
}

// CheckBounds calls engine.CheckBounds. Report whether an envelope is within its bounds.
func (c *Conn) CheckBounds(ctx context.Context, body msgp.Raw) (out Bounds, err error) {
	err = c.invoke(ctx, "engine", "CheckBounds", body, &out)
	return out, err
}

// UpdateEnvelope calls engine.UpdateEnvelope. Replace a stored envelope; sessions whose interrupt it answers go on.
func (c *Conn) UpdateEnvelope(ctx context.Context, envelope msgp.Raw) (out msgp.Raw, err error) {
	err = c.invoke(ctx, "engine", "UpdateEnvelope", &UpdateEnvelope{Envelope: envelope}, &out)
	return out, err
}

// ExecutePipeline calls engine.ExecutePipeline. Start a session named by its envelope and return what to run first.
func (c *Conn) ExecutePipeline(ctx context.Context, in ExecutePipeline) (out Instruction, err error) {
	err = c.invoke(ctx, "engine", "ExecutePipeline", &in, &out)
	return out, err
}

// CloneEnvelope calls engine.CloneEnvelope. Store a copy of an envelope under a new identifier.
func (c *Conn) CloneEnvelope(ctx context.Context, envelope msgp.Raw) (out msgp.Raw, err error) {
	err = c.invoke(ctx, "engine", "CloneEnvelope", &CloneEnvelope{Envelope: envelope}, &out)
	return out, err
}

// InitializeSession calls orchestration.InitializeSession. Start the session of a process.
func (c *Conn) InitializeSession(ctx context.Context, in InitializeSession) (out SessionState, err error) {
	err = c.invoke(ctx, "orchestration", "InitializeSession", &in, &out)
	return out, err
}

// GetNextInstruction calls orchestration.GetNextInstruction. Return what to run next.
func (c *Conn) GetNextInstruction(ctx context.Context, processID string) (out Instruction, err error) {
	err = c.invoke(ctx, "orchestration", "GetNextInstruction", &GetNextInstruction{ProcessID: processID}, &out)
	return out, err
}

// ReportAgentResult calls orchestration.ReportAgentResult. Take an agent's result and return what to run next.
func (c *Conn) ReportAgentResult(ctx context.Context, in ReportAgentResult) (out Instruction, err error) {
	err = c.invoke(ctx, "orchestration", "ReportAgentResult", &in, &out)
	return out, err
}

// GetSessionState calls orchestration.GetSessionState. Show a session.
func (c *Conn) GetSessionState(ctx context.Context, processID string) (out SessionState, err error) {
	err = c.invoke(ctx, "orchestration", "GetSessionState", &GetSessionState{ProcessID: processID}, &out)
	return out, err
}

// Publish calls commbus.Publish. Publish an event to its subscribers.
func (c *Conn) Publish(ctx context.Context, in Publish) (out Delivery, err error) {
	err = c.invoke(ctx, "commbus", "Publish", &in, &out)
	return out, err
}

// Send calls commbus.Send. Send a command to its handler.
func (c *Conn) Send(ctx context.Context, in Send) (out Sent, err error) {
	err = c.invoke(ctx, "commbus", "Send", &in, &out)
	return out, err
}

// Query calls commbus.Query. Ask the handler of a query type and wait for its answer.
func (c *Conn) Query(ctx context.Context, in Query) (out Answer, err error) {
	err = c.invoke(ctx, "commbus", "Query", &in, &out)
	return out, err
}

// Unsubscribe calls commbus.Unsubscribe. End streams of this connection, or cancel its pending query.
func (c *Conn) Unsubscribe(ctx context.Context, in Unsubscribe) (out Ended, err error) {
	err = c.invoke(ctx, "commbus", "Unsubscribe", &in, &out)
	return out, err
}

// Reply calls commbus.Reply. Answer a query given to this connection.
func (c *Conn) Reply(ctx context.Context, in Reply) (out Accepted, err error) {
	err = c.invoke(ctx, "commbus", "Reply", &in, &out)
	return out, err
}

// The maps of the protocol, as the package message describes them.
type (
	CreateProcess          = message.CreateProcess          // is the body of kernel.CreateProcess.
	GetProcess             = message.GetProcess             // is the body of kernel.GetProcess.
	ScheduleProcess        = message.ScheduleProcess        // is the body of kernel.ScheduleProcess.
	GetNextRunnable        = message.GetNextRunnable        // is the body of kernel.GetNextRunnable.
	TransitionState        = message.TransitionState        // is the body of kernel.TransitionState.
	TerminateProcess       = message.TerminateProcess       // is the body of kernel.TerminateProcess.
	CheckQuota             = message.CheckQuota             // is the body of kernel.CheckQuota.
	RecordUsage            = message.RecordUsage            // is the body of kernel.RecordUsage.
	CheckRateLimit         = message.CheckRateLimit         // is the body of kernel.CheckRateLimit.
	ListProcesses          = message.ListProcesses          // is the body of kernel.ListProcesses.
	SetQuotaDefaults       = message.SetQuotaDefaults       // is the body of kernel.SetQuotaDefaults.
	GetSystemStatus        = message.GetSystemStatus        // is the body of kernel.GetSystemStatus.
	Ping                   = message.Ping                   // is the body of kernel.Ping.
	CreateEnvelope         = message.CreateEnvelope         // is the body of engine.CreateEnvelope.
	UpdateEnvelope         = message.UpdateEnvelope         // is the body of engine.UpdateEnvelope.
	ExecutePipeline        = message.ExecutePipeline        // is the body of engine.ExecutePipeline.
	CloneEnvelope          = message.CloneEnvelope          // is the body of engine.CloneEnvelope.
	InitializeSession      = message.InitializeSession      // is the body of orchestration.InitializeSession.
	GetNextInstruction     = message.GetNextInstruction     // is the body of orchestration.GetNextInstruction.
	ReportAgentResult      = message.ReportAgentResult      // is the body of orchestration.ReportAgentResult.
	GetSessionState        = message.GetSessionState        // is the body of orchestration.GetSessionState.
	Publish                = message.Publish                // is the body of commbus.Publish.
	Send                   = message.Send                   // is the body of commbus.Send.
	Query                  = message.Query                  // is the body of commbus.Query.
	Subscribe              = message.Subscribe              // is the body of commbus.Subscribe.
	Unsubscribe            = message.Unsubscribe            // is the body of commbus.Unsubscribe.
	RegisterCommandHandler = message.RegisterCommandHandler // is the body of commbus.RegisterCommandHandler.
	RegisterQueryHandler   = message.RegisterQueryHandler   // is the body of commbus.RegisterQueryHandler.
	Reply                  = message.Reply                  // is the body of commbus.Reply.
	Frame                  = message.Frame                  // is the payload of every frame a server sends (kernel-ipc §3.5).
	Fault                  = message.Fault                  // is the error of an ERROR frame.
	Process                = message.Process                // is the process control block, the reply of every process operation (kernel-ipc §4.0).
	Usage                  = message.Usage                  // holds the five visible counters of a process.
	Quota                  = message.Quota                  // is the full set of limits of a process, or of the defaults (kernel-ipc §4.0).
	QuotaPatch             = message.QuotaPatch             // names some limits. In CreateProcess an absent one takes the default quota's value; SetQuotaDefaults uses only values above 0.
	QuotaCheck             = message.QuotaCheck             // is the reply of CheckQuota; being over quota is no error (kernel-ipc §4.7).
	RateDecision           = message.RateDecision           // is the reply of CheckRateLimit; a refusal is no error (kernel-ipc §4.9).
	ProcessPage            = message.ProcessPage            // is the reply of ListProcesses, oldest creation first.
	StateCounts            = message.StateCounts            // holds one number of processes per state.
	Counts                 = message.Counts                 // is the reply of GetProcessCounts (kernel-ipc §4.11).
	Status                 = message.Status                 // is the reply of GetSystemStatus (kernel-ipc §4.14).
	ProcessStatus          = message.ProcessStatus          // is the process part of Status.
	ServiceStatus          = message.ServiceStatus          // counts registered services by health.
	OrchestrationStatus    = message.OrchestrationStatus    // counts orchestration sessions.
	BusStatus              = message.BusStatus              // holds the bus counters: the first three since the server's start, the last one now.
	Digest                 = message.Digest                 // condenses all state into numbers of 16 hexadecimal digits.
	Pong                   = message.Pong                   // is the reply of Ping.
	PingLimits             = message.PingLimits             // holds the limits of a server that its clients have to know.
	Bounds                 = message.Bounds                 // is the reply of CheckBounds; being over them is no error (envelope §4.6).
	Instruction            = message.Instruction            // is the next step of a session's worker (envelope §3.10).
	SessionState           = message.SessionState           // is the reply of InitializeSession and GetSessionState (envelope §3.10).
	AgentMetrics           = message.AgentMetrics           // is the cost of an agent's run. Absent tokens are unknown; the duration is not kept.
	Delivery               = message.Delivery               // is the reply of Publish: how many subscriptions took the event.
	Sent                   = message.Sent                   // is the reply of Send.
	Answer                 = message.Answer                 // is the reply of Query, as its handler gave it.
	Ended                  = message.Ended                  // is the reply of Unsubscribe: how many streams it ended.
	Accepted               = message.Accepted               // is the reply of Reply: whether the query still waited.
	Event                  = message.Event                  // is one message of a Subscribe stream.
	Registered             = message.Registered             // is the first message of a handler's stream.
	Command                = message.Command                // is one message to a command handler.
	QueryCall              = message.QueryCall              // is one query to a query handler, to be answered with Reply.
)
