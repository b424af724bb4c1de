package toolhost

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

func single(r *rig, exec bool, aid, stdin string) (string, int) {
	line, code := (&Single{Registry: r.srv.cfg.Registry, Exec: exec}).Run(aid, strings.NewReader(stdin))
	return string(line), code
}

func TestSingle(t *testing.T) {
	r := newRig(t, nil)
	f := func(exec bool, aid, stdin, want string, wantCode int) {
		t.Helper()
		if line, code := single(r, exec, aid, stdin); line != want+"\n" || code != wantCode {
			t.Errorf("%v %s %.100s\n got %d %.300s\nwant %d %.300s", exec, aid, stdin, code, line, wantCode, want)
		}
	}
	both := func(aid, stdin, want string, code int) {
		t.Helper()
		f(false, aid, stdin, want, code)
		f(true, aid, stdin, want, code)
	}
	state := func(slots string) string { return `,"ds_state":{"slots":{` + slots + `}}` }
	slot := func(n, kind string) string {
		return `"` + n + `":{"type":"` + kind + `","provenance":"","content_json":"","size_bytes":0}`
	}
	ok := func(slots string) string { return toolReply("true", "OK", "{}", "", state(slots)) }
	both("AID.NOOP.v1", `{}`, ok(""), 0)
	both("AID.NOOP.v1", "{\"aid\":\"AID.NOOP.v1\",\"request_id\":3,\"run_id\":\"any\",\"_lease_token\":\"x\",\"idempotency_key\":\"k\"} \r\n\t\n",
		strings.TrimSuffix(ok(""), "}")+`,"request_id":3}`, 0)
	both("AID.EXEC.v1", `{"ds_state":{"slots":{"2":{"type":"mine"}}}}`, ok(slot("2", "mine")), 0)
	both("AID.SET.v1", `{"inputs":{"x":1}}`, ok(`"6":{"type":"text","provenance":"set","content_json":"{\"x\":1}","size_bytes":7}`), 0)
	// What a tool that failed has left is shown.
	both("AID.FAIL.v1", `{}`, toolReply("false", "TOOL_ERROR", "{}", "no", state(slot("3", "half"))), 0)
	both("AID.PANIC.v1", `{}`, toolReply("false", "TOOL_ERROR", "{}", "panic: boom",
		state("")+`,"dispatch_error":{"error":true,"aid":"AID.PANIC.v1","type":"exception","detail":"panic: boom"}`), 0)

	for _, bad := range []string{"", "nope", "[]", "null", "5", "{} {}", "\ufeff\ufeff{}"} {
		f(false, "AID.NOOP.v1", bad, fault("invalid JSON request on stdin"), 5)
		f(true, "AID.NOOP.v1", bad, fault("invalid JSON on stdin"), 5)
	}
	for _, aid := range []string{`"AID.SET.v1"`, `5`, `""`, `null`} {
		both("AID.NOOP.v1", `{"request_id":"r","aid":`+aid+`}`, `{"ok":false,"error":"invalid field: aid: does not match command line","request_id":"r"}`, 5)
	}
	both("AID.NOOP.v1", `{"inputs":{},"inputs":{}}`, fault("duplicate key: inputs"), 5)
	both("AID.NOOP.v1", `{"inputs":[]}`, fault("invalid field: inputs: must be an object"), 5)
	both("AID.NOOP.v1", `{"ds_state":{"slots":{"9":{}}}}`, fault(`invalid ds_state: bad slot \"9\"`), 5)

	f(false, "AID.NOPE.v1", "nope", fault("tool not found in plugin: AID.NOPE.v1"), 4)
	f(true, "AID.NOPE.v1", "nope", fault("invalid JSON on stdin"), 5)
	f(true, "AID.NOPE.v1", `{"ds_state":{"slots":{"2":{"type":"mine"}}},"request_id":1}`,
		toolReply("false", "TOOL_ERROR", "{}", "MISSING_TOOL: AID.NOPE.v1", state(slot("2", "mine"))+`,"request_id":1`), 0)

	at := `{"x":"` + strings.Repeat("x", MaxLine-8) + `"}`
	both("AID.NOOP.v1", at, ok(""), 0)
	both("AID.COUNT.v1", at+"\n", fault("stdin exceeds 10MB limit"), 5)
	// Too long for a line: the caller keeps the state that it has.
	both("AID.INPUT.v1", `{"inputs":{"x":"`+strings.Repeat("x", maxReply)+`"}}`, toolReply("false", "TOOL_ERROR", "{}", "output exceeds 1MB limit", ""), 0)
	r.wantRuns(2)
	if _, code := (&Single{Registry: r.srv.cfg.Registry}).Run("AID.NOOP.v1", io.MultiReader(strings.NewReader("{}"), iotest.ErrReader(errors.New("lost")))); code != 5 {
		t.Errorf("a read error: %d", code)
	}
}

// A built-in that misses its deadline is abandoned, with what it wrote.
func TestSingleDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		got, code := single(r, false, "AID.WAIT.v1", `{"ds_state":{"slots":{"2":{}}}}`)
		want := toolReply("false", "TOOL_ERROR", "{}", "toolhost timed out for AID.WAIT.v1", `,"ds_state":{"slots":{"2":{"type":"","provenance":"","content_json":"","size_bytes":0}}}`+
			`,"dispatch_error":{"error":true,"aid":"AID.WAIT.v1","type":"timeout","detail":""}`)
		if got != want+"\n" || code != 0 {
			t.Errorf("%d %s", code, got)
		}
		close(r.gate)
		synctest.Wait()
	})
}
