package kernel

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLifecycleEvents is kernel-ipc §9.11 with the payloads of §4.22.
func TestLifecycleEvents(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	r.mk("p1")
	r.want("create", r.takeEvents(), `process.created {"pid":"p1","request_id":"qp1","user_id":"up1","session_id":"sp1"}`)
	r.to("p1", Running, OK)
	r.want("run", r.takeEvents(),
		`process.state_changed {"pid":"p1","old_state":"READY","new_state":"RUNNING","reason":"","session_id":"sp1"}`)
	r.k.Terminate(r.now, []byte("p1"), []byte("done"), nil)
	terminated := `process.terminated {"pid":"p1","session_id":"sp1","reason":"done"}`
	changed := `process.state_changed {"pid":"p1","old_state":"RUNNING","new_state":"TERMINATED","reason":"done","session_id":"sp1"}`
	r.want("terminate", r.takeEvents(), terminated+"\n"+changed)
	r.mk("p1x", Running)
	r.takeEvents()
	r.k.Transition(r.now, []byte("p1x"), nil, Terminated, []byte("done"), nil)
	r.want("transition", r.takeEvents(), strings.ReplaceAll(changed+"\n"+terminated, "p1", "p1x"))
	a := args("n", Normal)
	a.NoSchedule = true
	r.k.Create(r.now, a, nil)
	r.takeEvents()
	r.k.Schedule(r.now, []byte("n"), nil)
	r.want("schedule", r.takeEvents(),
		`process.state_changed {"pid":"n","old_state":"NEW","new_state":"READY","reason":"","session_id":"sn"}`)
	r.next(false)
	r.want("lease", r.takeEvents(), "")
	r.k.Schedule(r.now, []byte("n"), nil)
	r.next(true)
	r.want("start", r.takeEvents(),
		`process.state_changed {"pid":"n","old_state":"READY","new_state":"RUNNING","reason":"","session_id":"sn"}`)
}

// TestResourceExhausted is kernel-ipc §9.3.
func TestResourceExhausted(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	r.k.Create(r.now, &CreateArgs{PID: []byte("p1"), SessionID: []byte("s1"), UserID: []byte("u1")}, nil)
	r.takeEvents()
	r.reason("p1", Usage{LLMCalls: 1, TokensIn: 120, TokensOut: 300}, "")
	r.reason("p1", Usage{LLMCalls: 99}, "")
	r.want("within", r.takeEvents(), "")
	want := `resource.exhausted {"pid":"p1","session_id":"s1","reason":"Process p1 quota exceeded: llm_calls 101 > 100",` +
		`"usage":{"llm_calls":101,"tool_calls":0,"agent_hops":0,"tokens_in":120,"tokens_out":300},` +
		`"resource":"llm_calls","quota":{"max_llm_calls":100}}`
	r.reason("p1", Usage{LLMCalls: 1}, "Process p1 quota exceeded: llm_calls 101 > 100")
	r.reason("p1", Usage{}, "Process p1 quota exceeded: llm_calls 101 > 100")
	r.want("every call", r.takeEvents(), want+"\n"+want)
}

func TestUnwantedEventsAreCounted(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	r.deaf = true
	r.mk("p", Running)
	r.reason("p", Usage{LLMCalls: 101}, "Process p quota exceeded: llm_calls 101 > 100")
	r.k.Terminate(r.now, []byte("p"), nil, nil)
	if r.counted != [numEventKinds]int{1, 2, 1, 1} || r.events != nil {
		t.Errorf("counted %v, built %v", r.counted, r.events)
	}
	silent := New(Config{Defaults: unlimited()}) // no Events at all
	silent.Create(r.now, args("p", Normal), nil)
	silent.RecordUsage(r.now, []byte("p"), nil, &Usage{LLMCalls: 101}, nil)
	var c QuotaCheck
	if silent.CheckQuota(r.now, []byte("p"), nil, &c); !c.Exceeded {
		t.Error("not exceeded")
	}
	silent.Terminate(r.now, []byte("p"), nil, nil)
}

func TestEscaping(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := string(appendEscaped(nil, []byte(in))); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
	f("", "")
	f("plain", "plain")
	f(`a"b\c`, `a\"b\\c`)
	f("\n\r\t", `\n\r\t`)
	f("a\x00\x1f\x7f", `a\u0000\u001f`+"\x7f")
	f("grüße 🙂", "grüße 🙂")
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.String().Draw(t, "in")
		var out string
		if err := json.Unmarshal(appendMember(nil, "", []byte(in)), &out); err != nil || out != in {
			t.Fatalf("got %q, %v", out, err)
		}
	})
}

func TestEventsEscapeIdentifiers(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	r.mk("a\"b\n", Running)
	r.reason("a\"b\n", Usage{LLMCalls: 101}, "Process a\"b\n quota exceeded: llm_calls 101 > 100")
	for _, e := range r.events {
		if _, payload, _ := strings.Cut(e, " "); !json.Valid([]byte(payload)) {
			t.Errorf("not JSON: %s", payload)
		}
	}
}

func TestPayloadScratchIsBounded(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	r.mk("p", Running)
	r.k.Transition(r.now, []byte("p"), nil, Waiting, []byte(strings.Repeat("x", 5<<20)), nil)
	if cap(r.k.payload) > maxPayloadScratch {
		t.Errorf("kept %d bytes", cap(r.k.payload))
	}
	r.to("p", Ready, OK)
	if cap(r.k.payload) == 0 {
		t.Error("kept nothing")
	}
}
