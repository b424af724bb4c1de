package ipcclient

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trunkline/codec/frame"
	"trunkline/codec/wire"
)

// call is a call of a method, as tests make it.
type call = func(ctx context.Context, c *Conn) (any, error)

// talk holds one conversation: what is sent, what is answered, what the caller gets.
func talk(t *testing.T, method, wantBody, answer string, do call, want any) {
	t.Helper()
	c, p := dialPipe(t)
	type result struct {
		got any
		err error
	}
	done := make(chan result, 1)
	go func() {
		got, err := do(t.Context(), c)
		done <- result{got, err}
	}()
	req := p.want(method)
	if string(req.Body) != wantBody {
		t.Errorf("%s sends %s, want %s", method, req.Body, wantBody)
	}
	p.respond(req.ID, answer)
	r := <-done
	if r.err != nil {
		t.Fatalf("%s: %v", method, r.err)
	}
	if diff := cmp.Diff(want, r.got); diff != "" {
		t.Errorf("%s: %s", method, diff)
	}
}

// TestTypedCalls holds one conversation per method: what is sent, what is answered, what the caller
// gets.
func TestTypedCalls(t *testing.T) {
	f := func(method, wantBody, answer string, do call, want any) {
		t.Helper()
		talk(t, method, wantBody, answer, do, want)
	}
	const pcb = `{"pid":"p","request_id":"q","user_id":"u","session_id":"s","state":"READY","priority":"LOW","usage":` +
		`{"llm_calls":1,"tool_calls":2,"agent_hops":3,"tokens_in":4,"tokens_out":5},"current_stage":"st","later":[]}`
	proc := Process{
		PID: "p", RequestID: "q", UserID: "u", SessionID: "s", State: "READY", Priority: "LOW",
		Usage: Usage{LLMCalls: 1, ToolCalls: 2, AgentHops: 3, TokensIn: 4, TokensOut: 5}, CurrentStage: "st",
	}
	f("kernel.CreateProcess", `{"pid":"p"}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) { return c.CreateProcess(ctx, CreateProcess{PID: "p"}) }, proc)
	f("kernel.CreateProcess",
		`{"pid":"p","request_id":"q","user_id":"u","session_id":"s","priority":"low","quota":{"max_llm_calls":0},"schedule":false}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.CreateProcess(ctx, CreateProcess{
				PID: "p", RequestID: "q", UserID: "u", SessionID: "s", Priority: "low",
				Quota: &QuotaPatch{MaxLLMCalls: new(int64)}, Schedule: new(bool),
			})
		}, proc)
	f("kernel.CreateProcess", `{"pid":"p","idempotency_key":"0123456789abcdef0123456789abcdef"}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.CreateProcess(WithIdempotencyKey(ctx, "0123456789abcdef0123456789abcdef"), CreateProcess{PID: "p"})
		}, proc)
	f("kernel.GetNextRunnable", `{"idempotency_key":"0123456789abcdef0123456789abcdef"}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.GetNextRunnable(WithIdempotencyKey(ctx, "0123456789abcdef0123456789abcdef"), false)
		}, proc)
	f("kernel.GetProcess", `{"pid":"p"}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetProcess(ctx, "p") }, proc)
	f("kernel.ScheduleProcess", `{"pid":"p"}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) { return c.ScheduleProcess(ctx, "p") }, proc)
	f("kernel.GetNextRunnable", `{}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetNextRunnable(ctx, false) }, proc)
	f("kernel.GetNextRunnable", `{"start":true}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetNextRunnable(ctx, true) }, proc)
	f("kernel.TransitionState", `{"pid":"p","new_state":"BLOCKED","reason":"why"}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.TransitionState(ctx, TransitionState{PID: "p", NewState: "BLOCKED", Reason: "why"})
		}, proc)
	f("kernel.TerminateProcess", `{"pid":"p"}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.TerminateProcess(ctx, TerminateProcess{PID: "p"})
		}, proc)
	f("kernel.CheckQuota", `{"pid":"p"}`,
		`{"within_bounds":false,"exceeded_reason":"r","llm_calls":1,"tool_calls":2,"agent_hops":3,"tokens_in":4,"tokens_out":5}`,
		func(ctx context.Context, c *Conn) (any, error) { return c.CheckQuota(ctx, "p") },
		QuotaCheck{WithinBounds: false, ExceededReason: "r", LLMCalls: 1, ToolCalls: 2, AgentHops: 3, TokensIn: 4, TokensOut: 5})
	f("kernel.RecordUsage", `{"pid":"p","llm_calls":1,"inference_input_chars":9}`,
		`{"llm_calls":1,"tool_calls":2,"agent_hops":3,"tokens_in":4,"tokens_out":9223372036854775807}`,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.RecordUsage(ctx, RecordUsage{PID: "p", LLMCalls: 1, InferenceInputChars: 9})
		}, Usage{LLMCalls: 1, ToolCalls: 2, AgentHops: 3, TokensIn: 4, TokensOut: 9223372036854775807})
	f("kernel.CheckRateLimit", `{"user_id":"u","record":false}`,
		`{"allowed":false,"exceeded":true,"reason":"r","limit_type":"burst","current_count":10,"limit":60,"retry_after_seconds":10.0,"remaining":0}`,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.CheckRateLimit(ctx, CheckRateLimit{UserID: "u"})
		},
		RateDecision{Allowed: false, Exceeded: true, Reason: "r", LimitType: "burst", CurrentCount: 10, Limit: 60, RetryAfterSeconds: 10})
	f("kernel.ListProcesses", `{"state":"ready","cursor":0,"limit":1}`, `{"processes":[`+pcb+`],"next_cursor":7}`,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.ListProcesses(ctx, ListProcesses{State: "ready", Cursor: new(int64), Limit: 1})
		}, ProcessPage{Processes: []Process{proc}, NextCursor: new(int64(7))})
	f("kernel.ListProcesses", `{}`, `{"processes":[]}`,
		func(ctx context.Context, c *Conn) (any, error) { return c.ListProcesses(ctx, ListProcesses{}) },
		ProcessPage{})
	f("kernel.GetProcessCounts", `{}`,
		`{"counts_by_state":{"NEW":1,"READY":2,"RUNNING":3,"WAITING":4,"BLOCKED":5,"TERMINATED":6,"ZOMBIE":7},"total":28,"queue_depth":1}`,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetProcessCounts(ctx) },
		Counts{CountsByState: StateCounts{New: 1, Ready: 2, Running: 3, Waiting: 4, Blocked: 5, Terminated: 6, Zombie: 7}, Total: 28, QueueDepth: 1})
	const quota = `{"max_llm_calls":1,"max_tool_calls":2,"max_agent_hops":3,"max_iterations":4,"timeout_seconds":5,` +
		`"max_input_tokens":6,"max_output_tokens":7,"max_context_tokens":8,"soft_timeout_seconds":9,"rate_limit_rpm":10,` +
		`"rate_limit_rph":11,"rate_limit_burst":12,"max_inference_requests":13,"max_inference_input_chars":14}`
	f("kernel.SetQuotaDefaults", `{"quota":{"max_tool_calls":75}}`, quota,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.SetQuotaDefaults(ctx, QuotaPatch{MaxToolCalls: new(int64(75))})
		}, Quota{MaxLLMCalls: 1, MaxToolCalls: 2, MaxAgentHops: 3, MaxIterations: 4, TimeoutSeconds: 5, MaxInputTokens: 6, MaxOutputTokens: 7, MaxContextTokens: 8, SoftTimeoutSeconds: 9, RateLimitRPM: 10, RateLimitRPH: 11, RateLimitBurst: 12, MaxInferenceRequests: 13, MaxInferenceInputChars: 14})
	f("kernel.GetQuotaDefaults", `{}`, quota,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetQuotaDefaults(ctx) },
		Quota{MaxLLMCalls: 1, MaxToolCalls: 2, MaxAgentHops: 3, MaxIterations: 4, TimeoutSeconds: 5, MaxInputTokens: 6, MaxOutputTokens: 7, MaxContextTokens: 8, SoftTimeoutSeconds: 9, RateLimitRPM: 10, RateLimitRPH: 11, RateLimitBurst: 12, MaxInferenceRequests: 13, MaxInferenceInputChars: 14})
	f("kernel.GetSystemStatus", `{}`,
		`{"processes":{"total":1,"by_state":{"READY":1}},"services":{"healthy":0,"degraded":0,"unhealthy":0},`+
			`"orchestration":{"active_sessions":2},"commbus":{"events_published":3,"commands_sent":4,"queries_executed":5,"active_subscribers":6}}`,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetSystemStatus(ctx, false) },
		Status{Processes: ProcessStatus{Total: 1, ByState: StateCounts{Ready: 1}}, Orchestration: OrchestrationStatus{ActiveSessions: 2}, Commbus: BusStatus{EventsPublished: 3, CommandsSent: 4, QueriesExecuted: 5, ActiveSubscribers: 6}})
	f("commbus.Publish", `{"event_type":"a.b","payload":"{\"n\":1}","source":"t"}`, `{"success":true,"delivered":2}`,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.Publish(ctx, Publish{EventType: "a.b", Payload: `{"n":1}`, Source: "t"})
		}, Delivery{Success: true, Delivered: 2})
	f("commbus.Send", `{"command_type":"job.run"}`, `{"success":true,"error":""}`,
		func(ctx context.Context, c *Conn) (any, error) { return c.Send(ctx, Send{CommandType: "job.run"}) }, Sent{Success: true})
	f("commbus.Query", `{"query_type":"sum","payload":"[1,2]","timeout_ms":2000}`, `{"success":true,"result":3,"error":""}`,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.Query(ctx, Query{QueryType: "sum", Payload: "[1,2]", TimeoutMS: 2000})
		}, Answer{Success: true, Result: []byte{3}})
	f("commbus.Reply", `{"query_id":"q1","success":true,"result":"3"}`, `{"success":true,"delivered":true}`,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.Reply(ctx, Reply{QueryID: "q1", Success: true, Result: "3"})
		}, Accepted{Success: true, Delivered: true})
	f("commbus.Unsubscribe", `{"subscriber_id":"w1"}`, `{"success":true,"ended":1}`,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.Unsubscribe(ctx, Unsubscribe{SubscriberID: "w1"})
		}, Ended{Success: true, Ended: 1})
}

func TestTypedReplyOfTheWrongShape(t *testing.T) {
	c, p := dialPipe(t)
	p.serve(func(req request) (frame.Type, string) {
		return frame.Response, `{"id":"` + req.ID + `","ok":true,"body":{"pid":7}}`
	})
	if _, err := c.GetProcess(t.Context(), "p"); !errors.Is(err, ErrProtocol) {
		t.Fatalf("got %v", err)
	}
	if c.Err() != nil {
		t.Fatal("one odd reply ended the connection")
	}
}

func TestSubscription(t *testing.T) {
	c, p := dialPipe(t)
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		req := p.want("commbus.Subscribe")
		if want := `{"event_types":["a.b"],"subscriber_id":"w1","ack":true}`; string(req.Body) != want {
			t.Errorf("got %s, want %s", req.Body, want)
		}
		p.chunk(req.ID, `{"event_type":"commbus.subscribed","payload":"{\"subscriber_id\":\"w1\",\"event_types\":[\"a.b\"]}","timestamp_ms":1,"source":"commbus"}`)
		p.chunk(req.ID, `{"event_type":"a.b","payload":"{}","timestamp_ms":2,"source":"t"}`)
		p.chunk(req.ID, `{"event_type":"commbus.gap","payload":"{\"dropped\":5}","timestamp_ms":3,"source":"commbus"}`)
		p.end(req.ID)
	}()
	sub, err := c.Subscribe(t.Context(), Subscribe{EventTypes: []string{"a.b"}, SubscriberID: "w1"})
	if err != nil || sub.Name != "w1" {
		t.Fatalf("got %+v, %v", sub, err)
	}
	var got []Event
	for e, err := range sub.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	<-ready
	want := []Event{
		{EventType: "a.b", Payload: "{}", TimestampMS: 2, Source: "t"},
		{EventType: "commbus.gap", Payload: `{"dropped":5}`, TimestampMS: 3, Source: "commbus"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if n, ok := Gap(&got[1]); !ok || n != 5 {
		t.Fatalf("gap of %d, %v", n, ok)
	}
	if _, ok := Gap(&got[0]); ok {
		t.Fatal("an ordinary event is no gap")
	}
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRefusedSubscription(t *testing.T) {
	c, p := dialPipe(t)
	p.serve(func(req request) (frame.Type, string) {
		return frame.Error, `{"id":"` + req.ID + `","ok":false,"error":{"code":"INVALID_ARGUMENT","message":"m"}}`
	})
	var said *Error
	if _, err := c.Subscribe(t.Context(), Subscribe{}); !errors.As(err, &said) || said.Code != wire.InvalidArgument {
		t.Fatalf("got %v", err)
	}
}

// TestSubscriptionOfPatterns: a server that knows them names them in its acknowledgement; from one
// that does not, the subscription fails instead of being silent.
func TestSubscriptionOfPatterns(t *testing.T) {
	f := func(in Subscribe, wantBody, payload string, want error) {
		t.Helper()
		c, p := dialPipe(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			req := p.want("commbus.Subscribe")
			if string(req.Body) != wantBody {
				t.Errorf("got %s, want %s", req.Body, wantBody)
			}
			if payload == "" {
				p.refuse(req.ID, `{"code":"INVALID_ARGUMENT","message":"event_types is required (non-empty array)"}`)
				return
			}
			p.chunk(req.ID, `{"event_type":"commbus.subscribed","payload":`+payload+`,"timestamp_ms":1,"source":"commbus"}`)
			if want != nil {
				p.want("commbus.Unsubscribe")
			}
		}()
		sub, err := c.Subscribe(t.Context(), in)
		<-done
		if !errors.Is(err, want) || (err == nil) != (want == nil) || (sub == nil) != (want != nil) {
			t.Errorf("%v, %v, want %v", sub, err, want)
		}
	}
	only, both := Subscribe{EventPatterns: []string{"a.*"}}, Subscribe{EventTypes: []string{"b"}, EventPatterns: []string{"a.*"}}
	const onlyBody = `{"event_types":[],"ack":true,"event_patterns":["a.*"]}`
	f(only, onlyBody, `"{\"subscriber_id\":\"x\",\"event_types\":[],\"event_patterns\":[\"a.*\"]}"`, nil)
	f(only, onlyBody, "", ErrNoPatterns)
	f(both, `{"event_types":["b"],"ack":true,"event_patterns":["a.*"]}`, `"{\"subscriber_id\":\"x\",\"event_types\":[\"b\"]}"`, ErrNoPatterns)
}

func TestSubscriptionWithoutAcknowledgement(t *testing.T) {
	c, p := dialPipe(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		req := p.want("commbus.Subscribe")
		p.chunk(req.ID, `{"event_type":"a.b","payload":"{}","timestamp_ms":2,"source":"t"}`)
		p.want("commbus.Unsubscribe")
	}()
	if _, err := c.Subscribe(t.Context(), Subscribe{EventTypes: []string{"a.b"}}); !errors.Is(err, ErrProtocol) {
		t.Fatalf("got %v", err)
	}
	<-ended
}

func TestHandlers(t *testing.T) {
	c, p := dialPipe(t)
	answered := make(chan json.RawMessage, 2)
	go func() {
		req := p.want("commbus.RegisterCommandHandler")
		answered <- req.Body
		p.chunk(req.ID, `{"registered":["job.run"],"handler_id":"ipc-hnd-1"}`)
		p.chunk(req.ID, `{"command_type":"job.run","payload":"{}","source":"api","timestamp_ms":4}`)
		p.end(req.ID)
		req = p.want("commbus.RegisterQueryHandler")
		answered <- req.Body
		p.chunk(req.ID, `{"registered":["sum"],"handler_id":"calc"}`)
		p.chunk(req.ID, `{"query_id":"q1","query_type":"sum","payload":"[1]","source":"c","timeout_ms":2000}`)
		p.end(req.ID)
	}()
	h, err := c.RegisterCommandHandler(t.Context(), RegisterCommandHandler{CommandTypes: []string{"job.run"}})
	if err != nil || h.Name != "ipc-hnd-1" || len(h.Types) != 1 {
		t.Fatalf("got %+v, %v", h, err)
	}
	for cmd, err := range h.All(t.Context()) {
		if want := (Command{CommandType: "job.run", Payload: "{}", Source: "api", TimestampMS: 4}); err != nil || cmd != want {
			t.Fatalf("got %+v, %v", cmd, err)
		}
	}
	q, err := c.RegisterQueryHandler(t.Context(), RegisterQueryHandler{QueryTypes: []string{"sum"}, HandlerID: "calc"})
	if err != nil || q.Name != "calc" {
		t.Fatalf("got %+v, %v", q, err)
	}
	for call, err := range q.All(t.Context()) {
		if want := (QueryCall{QueryID: "q1", QueryType: "sum", Payload: "[1]", Source: "c", TimeoutMS: 2000}); err != nil || call != want {
			t.Fatalf("got %+v, %v", call, err)
		}
	}
	if got := string(<-answered) + string(<-answered); got != `{"command_types":["job.run"]}{"query_types":["sum"],"handler_id":"calc"}` {
		t.Fatalf("got %s", got)
	}
}
