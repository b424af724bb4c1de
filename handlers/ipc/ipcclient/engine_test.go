package ipcclient

import (
	"context"
	"testing"

	"trunkline/codec/transcode"

	"github.com/tinylib/msgp/msgp"
)

// encoded returns the MessagePack of JSON text.
func encoded(t *testing.T, text string) msgp.Raw {
	t.Helper()
	b, err := transcode.EncodeJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestEngineCalls holds one conversation per method of the services engine and orchestration.
func TestEngineCalls(t *testing.T) {
	f := func(method, wantBody, answer string, do call, want any) {
		t.Helper()
		talk(t, method, wantBody, answer, do, want)
	}
	const flat = `{"envelope_id":"e","x":[1.0,null]}`
	env := encoded(t, flat)
	pipeline := encoded(t, `{"name":"n","agents":[{"name":"s"}]}`)

	f("engine.CreateEnvelope", `{"metadata":null}`, flat,
		func(ctx context.Context, c *Conn) (any, error) { return c.CreateEnvelope(ctx, CreateEnvelope{}) }, env)
	f("engine.CreateEnvelope",
		`{"raw_input":"i","request_id":"r","user_id":"u","session_id":"s","stage_order":["a"],"metadata":{"k":1}}`, flat,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.CreateEnvelope(ctx, CreateEnvelope{
				RawInput: "i", RequestID: "r", UserID: "u", SessionID: "s", StageOrder: []string{"a"}, Metadata: encoded(t, `{"k":1}`),
			})
		}, env)
	f("engine.CheckBounds", flat,
		`{"can_continue":false,"terminal_reason":"MAX_LLM_CALLS_EXCEEDED","llm_calls_remaining":0,"agent_hops_remaining":2,"iterations_remaining":3}`,
		func(ctx context.Context, c *Conn) (any, error) { return c.CheckBounds(ctx, env) },
		Bounds{CanContinue: false, TerminalReason: "MAX_LLM_CALLS_EXCEEDED", AgentHopsRemaining: 2, IterationsRemaining: 3})
	f("engine.UpdateEnvelope", `{"envelope":`+flat+`}`, flat,
		func(ctx context.Context, c *Conn) (any, error) { return c.UpdateEnvelope(ctx, env) }, env)
	f("engine.CloneEnvelope", `{"envelope":`+flat+`}`, flat,
		func(ctx context.Context, c *Conn) (any, error) { return c.CloneEnvelope(ctx, env) }, env)

	const run = `{"kind":"RUN_AGENT","agent_name":"a","envelope":` + flat +
		`,"terminal_reason":"","termination_message":"","interrupt_pending":false,"interrupt":null,"later":1}`
	const wait = `{"kind":"WAIT_INTERRUPT","agent_name":"","envelope":` + flat +
		`,"terminal_reason":"","termination_message":"","interrupt_pending":true,"interrupt":{"kind":"clarification"}}`
	runs := Instruction{Kind: RunAgent, AgentName: "a", Envelope: env}
	f("engine.ExecutePipeline", `{"envelope":`+flat+`,"pipeline_config":{"name":"n","agents":[{"name":"s"}]}}`, run,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.ExecutePipeline(ctx, ExecutePipeline{Envelope: env, PipelineConfig: pipeline})
		}, runs)
	f("orchestration.GetNextInstruction", `{"process_id":"p"}`, wait,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetNextInstruction(ctx, "p") },
		Instruction{Kind: WaitInterrupt, Envelope: env, InterruptPending: true, Interrupt: encoded(t, `{"kind":"clarification"}`)})
	f("orchestration.ReportAgentResult", `{"process_id":"p","agent_name":"a","success":false,"error":"e","output":null,"metrics":{"llm_calls":0,"tool_calls":0,"duration_ms":0}}`, run,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.ReportAgentResult(ctx, ReportAgentResult{ProcessID: "p", AgentName: "a", Error: "e"})
		}, runs)
	f("orchestration.ReportAgentResult", `{"process_id":"p","agent_name":"a","success":true,"output":{"v":1},"metrics":`+
		`{"llm_calls":1,"tool_calls":2,"tokens_in":0,"duration_ms":9}}`, run,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.ReportAgentResult(ctx, ReportAgentResult{
				ProcessID: "p", AgentName: "a", Success: true, Output: encoded(t, `{"v":1}`),
				Metrics: AgentMetrics{LLMCalls: 1, ToolCalls: 2, TokensIn: new(int64), DurationMS: 9},
			})
		}, runs)

	const state = `{"process_id":"p","current_stage":"s","stage_order":["s","t"],"envelope":` + flat +
		`,"edge_traversals":{"s->t":2},"terminated":true,"terminal_reason":"COMPLETED"}`
	ended := SessionState{
		ProcessID: "p", CurrentStage: "s", StageOrder: []string{"s", "t"}, Envelope: env,
		EdgeTraversals: map[string]int64{"s->t": 2}, Terminated: true, TerminalReason: "COMPLETED",
	}
	f("orchestration.GetSessionState", `{"process_id":"p"}`, state,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetSessionState(ctx, "p") }, ended)
	f("orchestration.InitializeSession", `{"process_id":"p","pipeline_config":{"name":"n","agents":[{"name":"s"}]},"envelope":`+flat+`,"force":true}`,
		state, func(ctx context.Context, c *Conn) (any, error) {
			return c.InitializeSession(ctx, InitializeSession{ProcessID: "p", PipelineConfig: pipeline, Envelope: env, Force: true})
		}, ended)
}

// TestEnvelopesOutliveTheFrame: what a reply hands out is the caller's own.
func TestEnvelopesOutliveTheFrame(t *testing.T) {
	c, p := dialPipe(t)
	go func() {
		for range 2 {
			req := p.want("engine.CloneEnvelope")
			p.respond(req.ID, string(req.Body))
		}
	}()
	first, err := c.CloneEnvelope(t.Context(), encoded(t, `{"envelope_id":"first"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CloneEnvelope(t.Context(), encoded(t, `{"envelope_id":"second"}`)); err != nil {
		t.Fatal(err)
	}
	if got, want := twin(t, first), `{"envelope":{"envelope_id":"first"}}`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// TestCheckBoundsOfNothing: the envelope is the body, so it must be a map.
func TestCheckBoundsOfNothing(t *testing.T) {
	c, _ := dialPipe(t)
	if _, err := c.CheckBounds(t.Context(), nil); err == nil {
		t.Fatal("a body that is no map went out")
	}
}
