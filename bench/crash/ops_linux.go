package crash

import (
	"context"
	"fmt"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/transcode"
	"trunkline/codec/wire"
	"trunkline/handlers/ipc/client"
)

// op is one request that changes an actor's world.
type op struct {
	name   string
	effect func(w *world)
	send   func(ctx context.Context, c *client.Conn) error
	// agrees is a refusal that reports that the effect is there already; wire.OK is none.
	agrees wire.Code
	// again allows to send it a second time without knowing what came of the first; already is the
	// refusal by which a server then reports that it has it, wire.OK if it reports nothing.
	again   bool
	already wire.Code
	// anew: a second one is another one with the same effect.
	anew    bool
	session bool // changes the session: what was shown of it is out of date
	ready   bool // puts the process into the ready queue
}

func createOp(pid, user, priority string, schedule bool) op {
	state := stateNew
	in := client.CreateProcess{PID: pid, UserID: user, Priority: priority, Schedule: &schedule}
	if schedule {
		state = stateReady
	}
	return op{name: "CreateProcess", again: true, already: wire.FailedPrecondition, ready: schedule,
		effect: func(w *world) { *w = world{pid: pid, state: state, priority: priority, quota: w.quota} },
		send:   func(ctx context.Context, c *client.Conn) error { _, err := c.CreateProcess(ctx, in); return err }}
}

func scheduleOp(pid string) op {
	return op{name: "ScheduleProcess", ready: true, effect: func(w *world) { w.state = stateReady },
		send: func(ctx context.Context, c *client.Conn) error { _, err := c.ScheduleProcess(ctx, pid); return err }}
}

// moveOp is TransitionState. To RUNNING another client that took the process off the queue may have
// come first.
func moveOp(pid, to string) op {
	o := op{name: "TransitionState " + to, ready: to == stateReady, effect: func(w *world) { w.state = to },
		send: func(ctx context.Context, c *client.Conn) error {
			_, err := c.TransitionState(ctx, client.TransitionState{PID: pid, NewState: to, Reason: "moved"})
			return err
		}}
	switch to {
	case stateRunning:
		o.agrees = wire.FailedPrecondition
	case stateTerminated:
		o.effect, o.session = (*world).terminate, true
	}
	return o
}

func terminateOp(pid string) op {
	return op{name: "TerminateProcess", again: true, session: true, effect: (*world).terminate,
		send: func(ctx context.Context, c *client.Conn) error {
			_, err := c.TerminateProcess(ctx, client.TerminateProcess{PID: pid, Reason: "over"})
			return err
		}}
}

func usageOp(pid string, llm, tokens int64) op {
	return op{name: "RecordUsage", effect: func(w *world) { w.llm, w.tokens = w.llm+llm, w.tokens+tokens },
		send: func(ctx context.Context, c *client.Conn) error {
			_, err := c.RecordUsage(ctx, client.RecordUsage{PID: pid, LLMCalls: llm, TokensIn: tokens})
			return err
		}}
}

func quotaOp(limit int64) op {
	return op{name: "SetQuotaDefaults", again: true, effect: func(w *world) { w.quota = limit },
		send: func(ctx context.Context, c *client.Conn) error {
			_, err := c.SetQuotaDefaults(ctx, client.QuotaPatch{MaxLLMCalls: &limit})
			return err
		}}
}

const pipeline = `{"name":"ring","max_iterations":2000000000,"max_llm_calls":2000000000,"max_agent_hops":2000000000,"agents":[` +
	`{"name":"s1","agent":"a1","default_next":"s2","error_next":"end","routing":[{"condition":"stop","value":true,"target":"end"}]},` +
	`{"name":"s2","agent":"a2","default_next":"s1","error_next":"end","routing":[{"condition":"stop","value":true,"target":"end"}]}]}`

// beginOp is InitializeSession, over an older session if there is one. A session that waits holds
// the stored envelope.
func beginOp(w *world, envelope string, waiting bool) op {
	generation := w.session.generation + 1
	text := fmt.Sprintf(`{"envelope_id":%q,"request_context":{"generation":%d}}`, fmt.Sprintf("%s/%d", w.pid, generation), generation)
	if waiting {
		text = fmt.Sprintf(`{"envelope_id":%q,"interrupt_pending":true,"interrupt":{"kind":"checkpoint","id":"int_1"},"request_context":{"generation":%d}}`,
			envelope, generation)
	}
	in := client.InitializeSession{ProcessID: w.pid, PipelineConfig: encoded(pipeline), Envelope: encoded(text), Force: generation > 1}
	return op{name: "InitializeSession", again: true, already: wire.InvalidArgument, anew: in.Force, session: true,
		effect: func(w *world) { w.session.begin(waiting) },
		send:   func(ctx context.Context, c *client.Conn) error { _, err := c.InitializeSession(ctx, in); return err }}
}

// executeOp is ExecutePipeline, which begins the first session of a process under its envelope's
// identifier.
func executeOp(w *world) op {
	envelope := encoded(fmt.Sprintf(`{"envelope_id":%q,"request_context":{"generation":1}}`, w.pid))
	return op{name: "ExecutePipeline", again: true, already: wire.InvalidArgument, session: true,
		effect: func(w *world) { w.session.begin(false) },
		send: func(ctx context.Context, c *client.Conn) error {
			_, err := c.ExecutePipeline(ctx, client.ExecutePipeline{Envelope: envelope, PipelineConfig: encoded(pipeline)})
			return err
		}}
}

// reportOp is ReportAgentResult for the stage the session is at.
func reportOp(w *world, n, tokens int64, r result, pad string) op {
	in := agentResult(w.pid, agents[w.session.turn()], n, tokens, r, pad)
	return op{name: "ReportAgentResult", again: true, already: wire.FailedPrecondition, session: true,
		effect: func(w *world) { w.session.report(n, tokens, r) },
		send:   func(ctx context.Context, c *client.Conn) error { _, err := c.ReportAgentResult(ctx, in); return err }}
}

// updateOp replaces the stored envelope by one without an interrupt, which lets a session that
// waits go on.
func updateOp(w *world, envelope string, n int64) op {
	in := encoded(fmt.Sprintf(`{"envelope_id":%q,"interrupt_pending":false,"raw_input":"%d"}`, envelope, n))
	return op{name: "UpdateEnvelope", again: true, session: w.session.waiting, effect: func(w *world) { w.session.waiting = false },
		send: func(ctx context.Context, c *client.Conn) error { _, err := c.UpdateEnvelope(ctx, in); return err }}
}

// encoded is JSON that is part of this program as MessagePack.
func encoded(text string) msgp.Raw {
	b, err := transcode.EncodeJSON([]byte(text))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}
