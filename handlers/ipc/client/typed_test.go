package client

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trunkline/codec/frame"
	"trunkline/codec/wire"
)

// TestTypedCalls holds one conversation per method: what is sent, what is answered, what the caller gets.
func TestTypedCalls(t *testing.T) {
	type call = func(ctx context.Context, c *Conn) (any, error)
	f := func(method, wantBody, answer string, do call, want any) {
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
	const pcb = `{"pid":"p","request_id":"q","user_id":"u","session_id":"s","state":"READY","priority":"LOW","usage":` +
		`{"llm_calls":1,"tool_calls":2,"agent_hops":3,"tokens_in":4,"tokens_out":5},"current_stage":"st","later":[]}`
	proc := Process{
		PID: "p", RequestID: "q", UserID: "u", SessionID: "s", State: "READY", Priority: "LOW",
		Usage: Usage{1, 2, 3, 4, 5}, CurrentStage: "st",
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
	f("kernel.GetProcess", `{"pid":"p"}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetProcess(ctx, "p") }, proc)
	f("kernel.ScheduleProcess", `{"pid":"p"}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) { return c.ScheduleProcess(ctx, "p") }, proc)
	f("kernel.GetNextRunnable", `{}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetNextRunnable(ctx, false) }, proc)
	f("kernel.GetNextRunnable", `{"start":true}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetNextRunnable(ctx, true) }, proc)
	f("kernel.TransitionState", `{"pid":"p","new_state":"BLOCKED","reason":"why"}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) { return c.TransitionState(ctx, "p", "BLOCKED", "why") }, proc)
	f("kernel.TerminateProcess", `{"pid":"p"}`, pcb,
		func(ctx context.Context, c *Conn) (any, error) { return c.TerminateProcess(ctx, "p", "") }, proc)
	f("kernel.CheckQuota", `{"pid":"p"}`,
		`{"within_bounds":false,"exceeded_reason":"r","llm_calls":1,"tool_calls":2,"agent_hops":3,"tokens_in":4,"tokens_out":5}`,
		func(ctx context.Context, c *Conn) (any, error) { return c.CheckQuota(ctx, "p") },
		QuotaCheck{false, "r", 1, 2, 3, 4, 5})
	f("kernel.RecordUsage", `{"pid":"p","llm_calls":1,"inference_input_chars":9}`,
		`{"llm_calls":1,"tool_calls":2,"agent_hops":3,"tokens_in":4,"tokens_out":9223372036854775807}`,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.RecordUsage(ctx, "p", UsageDelta{LLMCalls: 1, InferenceInputChars: 9})
		}, Usage{1, 2, 3, 4, 9223372036854775807})
	f("kernel.CheckRateLimit", `{"user_id":"u","record":false}`,
		`{"allowed":false,"exceeded":true,"reason":"r","limit_type":"burst","current_count":10,"limit":60,"retry_after_seconds":10.0,"remaining":0}`,
		func(ctx context.Context, c *Conn) (any, error) { return c.CheckRateLimit(ctx, "u", false) },
		RateDecision{false, true, "r", "burst", 10, 60, 10, 0})
	f("kernel.ListProcesses", `{"state":"ready","cursor":0,"limit":1}`, `{"processes":[`+pcb+`],"next_cursor":7}`,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.ListProcesses(ctx, ListProcesses{State: "ready", Cursor: new(int64), Limit: 1})
		}, ProcessPage{[]Process{proc}, new(int64(7))})
	f("kernel.ListProcesses", `{}`, `{"processes":[]}`,
		func(ctx context.Context, c *Conn) (any, error) { return c.ListProcesses(ctx, ListProcesses{}) },
		ProcessPage{})
	f("kernel.GetProcessCounts", `{}`,
		`{"counts_by_state":{"NEW":1,"READY":2,"RUNNING":3,"WAITING":4,"BLOCKED":5,"TERMINATED":6,"ZOMBIE":7},"total":28,"queue_depth":1}`,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetProcessCounts(ctx) },
		Counts{StateCounts{1, 2, 3, 4, 5, 6, 7}, 28, 1})
	const quota = `{"max_llm_calls":1,"max_tool_calls":2,"max_agent_hops":3,"max_iterations":4,"timeout_seconds":5,` +
		`"max_input_tokens":6,"max_output_tokens":7,"max_context_tokens":8,"soft_timeout_seconds":9,"rate_limit_rpm":10,` +
		`"rate_limit_rph":11,"rate_limit_burst":12,"max_inference_requests":13,"max_inference_input_chars":14}`
	f("kernel.SetQuotaDefaults", `{"quota":{"max_tool_calls":75}}`, quota,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.SetQuotaDefaults(ctx, QuotaPatch{MaxToolCalls: new(int64(75))})
		}, Quota{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14})
	f("kernel.GetQuotaDefaults", `{}`, quota,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetQuotaDefaults(ctx) },
		Quota{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14})
	f("kernel.GetSystemStatus", `{}`,
		`{"processes":{"total":1,"by_state":{"READY":1}},"services":{"healthy":0,"degraded":0,"unhealthy":0},`+
			`"orchestration":{"active_sessions":2},"commbus":{"events_published":3,"commands_sent":4,"queries_executed":5,"active_subscribers":6}}`,
		func(ctx context.Context, c *Conn) (any, error) { return c.GetSystemStatus(ctx) },
		Status{ProcessStatus{1, StateCounts{Ready: 1}}, ServiceStatus{}, OrchestrationStatus{2}, BusStatus{3, 4, 5, 6}})
	f("commbus.Publish", `{"event_type":"a.b","payload":"{\"n\":1}","source":"t"}`, `{"success":true,"delivered":2}`,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.Publish(ctx, Publish{EventType: "a.b", Payload: `{"n":1}`, Source: "t"})
		}, int64(2))
	f("commbus.Send", `{"command_type":"job.run"}`, `{"success":true,"error":""}`,
		func(ctx context.Context, c *Conn) (any, error) { return nil, c.Send(ctx, Send{CommandType: "job.run"}) }, nil)
	f("commbus.Query", `{"query_type":"sum","payload":"[1,2]","timeout_ms":2000}`, `{"success":true,"result":3,"error":""}`,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.Query(ctx, Query{QueryType: "sum", Payload: "[1,2]", TimeoutMS: 2000})
		}, Answer{true, []byte{3}, ""})
	f("commbus.Reply", `{"query_id":"q1","success":true,"result":"3"}`, `{"success":true,"delivered":true}`,
		func(ctx context.Context, c *Conn) (any, error) {
			return c.Reply(ctx, Reply{QueryID: "q1", Success: true, Result: "3"})
		}, true)
	f("commbus.Unsubscribe", `{"subscriber_id":"w1"}`, `{"success":true,"ended":1}`,
		func(ctx context.Context, c *Conn) (any, error) { return c.Unsubscribe(ctx, "w1") }, int64(1))
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
	if err != nil || sub.SubscriberID != "w1" {
		t.Fatalf("got %+v, %v", sub, err)
	}
	var got []Event
	for e, err := range sub.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	<-ready
	want := []Event{{"a.b", "{}", 2, "t"}, {"commbus.gap", `{"dropped":5}`, 3, "commbus"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if n, ok := got[1].Gap(); !ok || n != 5 {
		t.Fatalf("gap of %d, %v", n, ok)
	}
	if _, ok := got[0].Gap(); ok {
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
	h, err := c.RegisterCommandHandler(t.Context(), "", "job.run")
	if err != nil || h.HandlerID != "ipc-hnd-1" || len(h.Types) != 1 {
		t.Fatalf("got %+v, %v", h, err)
	}
	for cmd, err := range h.Commands(t.Context()) {
		if want := (Command{"job.run", "{}", "api", 4}); err != nil || cmd != want {
			t.Fatalf("got %+v, %v", cmd, err)
		}
	}
	q, err := c.RegisterQueryHandler(t.Context(), "calc", "sum")
	if err != nil || q.HandlerID != "calc" {
		t.Fatalf("got %+v, %v", q, err)
	}
	for call, err := range q.Queries(t.Context()) {
		if want := (QueryCall{"q1", "sum", "[1]", "c", 2000}); err != nil || call != want {
			t.Fatalf("got %+v, %v", call, err)
		}
	}
	if got := string(<-answered) + string(<-answered); got != `{"command_types":["job.run"]}{"query_types":["sum"],"handler_id":"calc"}` {
		t.Fatalf("got %s", got)
	}
}
