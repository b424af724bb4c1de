//go:build !race

package toolhost

import (
	"context"
	"strings"
	"testing"

	"trunkline/engine/connection"
	"trunkline/handlers/toolhost/tool"
)

// From the line to the reply, on a connection that is warm (toolhost §10).
func TestNoAllocs(t *testing.T) {
	r := newRig(t, func(c *Config) { c.EnforceLeases, c.Events = EnforceOn, nil })
	p := r.open(Unix)
	op := r.open(Stdin)
	token, spent, small := op.lease(`"tool_aid":"AID.EXEC.v1"`), op.lease(`"tool_aid":"AID.WRITE.v1"`), op.lease(`"tool_aid":"*","tier":0`)
	setup := keyed("AID.INPUT.v1", "k", `,"inputs":{"a":1}`)
	op.ask(`{"aid":"AID.WRITE.v1","_lease_token":"` + spent + `","idempotency_key":"w"}`)
	p.ask(setup)
	shared := r.openAs(Stdin, "somebody") // the scope of both

	f := func(what string, line string, want string) {
		t.Helper()
		in, out := []byte(line+"\n"), make([]byte, 0, 4096)
		s := shared.s
		if n := testing.AllocsPerRun(200, func() {
			var used int
			var v connection.Verdict
			if used, out, v = s.Feed(in, out[:0], connection.Instant{}); used != len(in) || v != connection.More {
				t.Fatal(used, v)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations, want 0", what, n)
		}
		if !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: %s", what, out)
		}
	}
	f("noop", `{"aid":"AID.NOOP.v1"}`, okReply)
	f("noop with all that may be absent", `{"aid":"AID.NOOP.v1","input_json":"{\"a\": \"\\n\"}","ds_state":null,"idempotency_key":"","_lease_token":null,"request_id":"r"}`, okReply[:len(okReply)-1])
	f("hit", setup, `{"ok":true,"status":"OK","output_json":"{\"a\":1}","error":"","idempotent_hit":true`)
	f("hit with another spelling", `{"request_id":1,"idempotency_key":"\u006b","aid":"AID.INPUT.v1","input_json":"{ \"a\" : 1 }"}`, `{"ok":true,"status":"OK"`)
	f("hit with the spent token", keyed("AID.WRITE.v1", "w", `,"_lease_token":"`+spent+`"`), hitReply)
	f("hit without a token", keyed("AID.WRITE.v1", "w", ""), `{"ok":false,"error":"lease_required","tier":1`)
	f("conflict", keyed("AID.INPUT.v1", "k", ""), `{"ok":false,"error":"idempotency_conflict"`)
	f("health", `{"aid":"_health","request_id":5}`, `{"ok":true,"spec_version":"1.4.2"`)
	f("no tool", `{"aid":"AID.NOPE.v1"}`, fault("tool not found: AID.NOPE.v1"))
	f("lease required", `{"aid":"AID.EXEC.v1"}`, `{"ok":false,"error":"lease_required","tier":2,"aid":"AID.EXEC.v1"}`)
	rejected := func(aid, token, reason string) {
		t.Helper()
		f(reason, `{"aid":"`+aid+`","_lease_token":"`+token+`"}`, `{"ok":false,"error":"lease_rejected","reason":"`+reason+`"}`)
	}
	rejected("AID.WRITE.v1", "lease_no", "not found")
	rejected("AID.WRITE.v1", spent, "already consumed")
	rejected("AID.WRITE.v1", token, "tool mismatch: expected=AID.EXEC.v1 got=AID.WRITE.v1")
	rejected("AID.EXEC.v1", small, "tier mismatch: lease=0 tool=2")
	for line, text := range map[string]string{
		`nope`: "invalid JSON", `[]`: "missing aid", `{"request_id":"r"}`: "missing aid", `{"aid":"a","aid":"b"}`: "duplicate key: aid",
		`{"aid":"AID.NOOP.v1","inputs":5}`:           "invalid field: inputs: must be an object",
		`{"aid":"AID.NOOP.v1","input_json":"[]"}`:    "invalid field: input_json: not a JSON object",
		`{"aid":"AID.NOOP.v1","idempotency_key":5}`:  "invalid field: idempotency_key: must be a string",
		`{"aid":"AID.NOOP.v1","run_id":"r"}`:         "no open run",
		`{"aid":"AID.NOOP.v1","request_id":[]}`:      "invalid field: request_id: must be a string or integer",
		`{"aid":"AID.NOOP.v1","ds_state":"x"}`:       "invalid ds_state: must be an object",
		`{"aid":"_health","request_id":1e999999}`:    "invalid field: request_id: must be a string or integer",
		`{"aid":"AID.COUNT.v1","_lease_token":{}}`:   "invalid field: _lease_token: must be a string",
		`{"aid":"AID.NOOP.v1","x":"` + "\xff" + `"}`: "invalid JSON",
		`{"aid":"AID.NOOP.v1","x":[[[[[[[[[[1,]]]]]`: "invalid JSON",
	} {
		f(text, line, `{"ok":false,"error":"`+text)
	}
	shared.s.Drain(connection.Now())
	f("draining", `{"aid":"AID.NOOP.v1"}`, fault("shutting_down"))
}

// A tool on the loop costs what the tool costs.
func TestNoAllocsOfOutput(t *testing.T) {
	output := []byte(`{"n":1}`)
	r := newRig(t, func(c *Config) {
		c.Events, c.Now = nil, nil
		c.Registry, _ = NewRegistry([]Entry{{Descriptor: tool.Descriptor{AID: "AID.OUT.v1", Fast: true},
			Tool: toolFunc(func(context.Context, *tool.Call) tool.Result { return tool.Result{Output: output} })}})
	})
	s := r.open(Unix).s
	in, out := []byte(strings.Repeat(`{"aid":"AID.OUT.v1","inputs":{"a":[1,2,3]}}`+"\r\n", 16)), make([]byte, 0, 1<<14)
	if n := testing.AllocsPerRun(100, func() { _, out, _ = s.Feed(in, out[:0], connection.Instant{}) }); n != 0 {
		t.Errorf("%v allocations for 16 lines, want 0", n)
	}
}
