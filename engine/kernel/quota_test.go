package kernel

import (
	"math"
	"testing"
	"time"
)

// TestQuotaDefaults is kernel-ipc §9.5.
func TestQuotaDefaults(t *testing.T) {
	r := newRig(t, Config{})
	if r.k.Defaults() != BuiltinQuota() {
		t.Error("not built-in")
	}
	want := BuiltinQuota()
	f := func(p QuotaPatch) {
		t.Helper()
		if got := r.k.SetDefaults(r.now, &p); got != want || r.k.Defaults() != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	f(QuotaPatch{})
	var p QuotaPatch
	p.Put(MaxLLMCalls, 200)
	p.Put(MaxToolCalls, 0)
	want[MaxLLMCalls] = 200
	f(p)
	p = QuotaPatch{}
	p.Put(MaxToolCalls, 75)
	p.Put(MaxIterations, -3)
	want[MaxToolCalls] = 75
	f(p)
	p = QuotaPatch{}
	p.Values[MaxAgentHops] = 5 // not present
	f(p)
}

// TestProcessQuota: missing fields come from the defaults in force at creation (D18), 0 is a real
// limit, later defaults do not reach existing processes.
func TestProcessQuota(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	var d QuotaPatch
	d.Put(MaxLLMCalls, 2)
	r.k.SetDefaults(r.now, &d)
	a := args("p", Normal)
	a.Quota.Put(MaxToolCalls, 0)
	r.k.Create(r.now, a, nil)
	d.Put(MaxLLMCalls, 1)
	r.k.SetDefaults(r.now, &d)
	r.reason("p", Usage{LLMCalls: 2}, "")
	r.reason("p", Usage{ToolCalls: 1}, "Process p quota exceeded: tool_calls 1 > 0")
	r.reason("p", Usage{LLMCalls: 1}, "Process p quota exceeded: llm_calls 3 > 2")
}

// reason books delta and checks pid.
func (r *rig) reason(pid string, delta Usage, want string) {
	r.t.Helper()
	var total Usage
	var c QuotaCheck
	r.k.RecordUsage(r.now, []byte(pid), nil, &delta, &total)
	if res := r.k.CheckQuota(r.now, []byte(pid), nil, &c); res != OK {
		r.t.Fatal(res)
	}
	if c.Usage != total {
		r.t.Errorf("usage %+v, want %+v", c.Usage, total)
	}
	r.want("reason", string(c.AppendReason(nil, []byte(pid))), want)
	if c.Exceeded != (want != "") {
		r.t.Errorf("exceeded %v, resource %q", c.Exceeded, c.counter)
	}
}

// TestExactlyAtTheLimitIsWithinBounds holds for every row of kernel-ipc §4.7.
func TestExactlyAtTheLimitIsWithinBounds(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	f := func(pid string, limit, one Usage, want string) {
		t.Helper()
		r.mk(pid)
		r.reason(pid, limit, "")
		r.reason(pid, one, "Process "+pid+" quota exceeded: "+want)
	}
	f("a", Usage{LLMCalls: 100}, Usage{LLMCalls: 1}, "llm_calls 101 > 100")
	f("b", Usage{ToolCalls: 50}, Usage{ToolCalls: 1}, "tool_calls 51 > 50")
	f("c", Usage{AgentHops: 10}, Usage{AgentHops: 1}, "agent_hops 11 > 10")
	f("d", Usage{Iterations: 20}, Usage{Iterations: 1}, "iterations 21 > 20")
	f("e", Usage{TokensIn: 100000}, Usage{TokensIn: 1}, "tokens_in 100001 > 100000")
	f("f", Usage{TokensOut: 50000}, Usage{TokensOut: 1}, "tokens_out 50001 > 50000")
	f("g", Usage{InferenceRequests: 50}, Usage{InferenceRequests: 1}, "inference_requests 51 > 50")
	f("h", Usage{InferenceInputChars: 500000}, Usage{InferenceInputChars: 1}, "inference_input_chars 500001 > 500000")
}

func TestFirstViolatedRowWins(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	r.mk("p", Running)
	f := func(delta Usage, want string) {
		t.Helper()
		r.reason("p", delta, "Process p quota exceeded: "+want)
	}
	f(Usage{InferenceInputChars: 500001}, "inference_input_chars 500001 > 500000")
	f(Usage{InferenceRequests: 51}, "inference_requests 51 > 50")
	r.after(300500 * time.Millisecond)
	f(Usage{}, "elapsed_seconds 300.5 > 300")
	f(Usage{TokensOut: 50001}, "tokens_out 50001 > 50000")
	f(Usage{TokensIn: 100001}, "tokens_in 100001 > 100000")
	f(Usage{Iterations: 21}, "iterations 21 > 20")
	f(Usage{AgentHops: 11}, "agent_hops 11 > 10")
	f(Usage{ToolCalls: 51}, "tool_calls 51 > 50")
	f(Usage{LLMCalls: 101}, "llm_calls 101 > 100")
	r.want("state", r.state("p"), "RUNNING")
}

// TestElapsedSumsRunning is D26: only RUNNING time counts, over all stints.
func TestElapsedSumsRunning(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	a := args("p", Normal)
	a.Quota.Put(TimeoutSeconds, 1)
	r.k.Create(r.now, a, nil)
	p := func(d time.Duration, want string) {
		t.Helper()
		r.after(d)
		r.reason("p", Usage{}, want)
	}
	p(time.Hour, "")
	r.to("p", Running, OK)
	p(600*time.Millisecond, "")
	r.to("p", Waiting, OK)
	p(time.Hour, "")
	r.to("p", Ready, OK)
	r.to("p", Running, OK)
	p(400*time.Millisecond, "")
	p(time.Millisecond, "Process p quota exceeded: elapsed_seconds 1.001 > 1")
	p(9*time.Millisecond, "Process p quota exceeded: elapsed_seconds 1.01 > 1")
	p(time.Hour, "Process p quota exceeded: elapsed_seconds 3601.01 > 1")
	r.to("p", Terminated, OK)
	p(time.Hour, "Process p quota exceeded: elapsed_seconds 3601.01 > 1")
}

func TestRecordUsageTotals(t *testing.T) {
	r := newRig(t, Config{})
	r.mk("p", Terminated) // allowed in every state
	var total Usage
	one := Usage{1, 2, 3, 4, 5, 6, 7, 8}
	r.k.RecordUsage(r.now, []byte("p"), nil, &one, &total)
	r.k.RecordUsage(r.now, []byte("p"), nil, &one, &total)
	if want := (Usage{2, 4, 6, 8, 10, 12, 14, 16}); total != want {
		t.Errorf("got %+v", total)
	}
	r.k.RecordUsage(r.now, []byte("p"), nil, &Usage{TokensIn: math.MaxInt64, LLMCalls: 1}, &total)
	if total[TokensIn] != math.MaxInt64 || total[LLMCalls] != 3 {
		t.Errorf("got %+v", total)
	}
	n := len(r.journal)
	r.k.RecordUsage(r.now, []byte("p"), nil, &Usage{}, &total)
	if len(r.journal) != n || total[LLMCalls] != 3 {
		t.Error("nothing used, yet a change")
	}
}

func TestAppendSeconds(t *testing.T) {
	f := func(ms int64, want string) {
		t.Helper()
		if got := string(appendSeconds(nil, ms)); got != want {
			t.Errorf("%d ms: got %s, want %s", ms, got, want)
		}
	}
	f(0, "0")
	f(1, "0.001")
	f(10, "0.01")
	f(300500, "300.5")
	f(301000, "301")
	f(86400123, "86400.123")
}

// TestExceededAnswerWaitsForWhatItShows: the second look at a process that is over its quota may
// find a change that the first one did not, and the reply has to wait for that one's record.
func TestExceededAnswerWaitsForWhatItShows(t *testing.T) {
	r := newRig(t, Config{})
	pid := []byte("p")
	r.k.Create(r.now, args("p", Normal), nil)
	r.k.RecordUsage(r.now, pid, nil, &Usage{LLMCalls: 101}, nil)
	var out QuotaCheck
	r.k.CheckQuota(r.now, pid, nil, &out)
	before := out.Recorded
	r.k.RecordUsage(r.now, pid, nil, &Usage{LLMCalls: 1}, nil)
	if r.k.checkExceeded(r.now, pid, &out) != OK || out.Usage[LLMCalls] != 102 || out.Recorded <= before {
		t.Errorf("%d calls are shown, of record %d; the one before was %d", out.Usage[LLMCalls], out.Recorded, before)
	}
}
