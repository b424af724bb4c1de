package workers

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

func stateOf(contents ...string) *sessionstate.State {
	s := new(sessionstate.State)
	for i, c := range contents {
		if c != "" {
			s.Set(i, sessionstate.Artifact{Content: c})
		}
	}
	clone := s.Clone()
	return &clone
}

func TestParseReply(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		r, bad := parseReply([]byte(line), &tool.Call{AID: "A", State: stateOf()}, false)
		got := "no reply"
		if bad == "" {
			got = short(r)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	const no = "no reply"
	f(`{"status":"OK"}`, `OK  ""`)
	f(` {"status":"OK","output_json":null,"ds_state":null} `, `OK  ""`)
	f(`{"status":"O\u004b","output_json":"\u00e9\n\ud800"}`, "OK é\n\ufffd \"\"")
	f(`{"ok":false,"status":"OK","error":"what","output_json":""}`, `OK  ""`)
	f(`{"ok":true,"status":"INVALID_PICK","error":"no","output_json":"{}"}`, `INVALID_PICK  "no"`)
	f(`{"status":"TOOL_ERROR"}`, `TOOL_ERROR  "TOOL_ERROR"`)
	f(`{"status":"BREAKER_TRIP","error":""}`, `BREAKER_TRIP  "BREAKER_TRIP"`)
	f(`{"status":"FINE","error":"e"}`, `TOOL_ERROR  "e"`)
	f(`{"status":1,"error":"e"}`, `TOOL_ERROR  "e"`)
	f(`{"error":"missing aid","ok":false}`, `TOOL_ERROR  "missing aid"`)
	f(`{"error":"","unknown":[1]}`, `TOOL_ERROR  "TOOL_ERROR"`)
	f(`{}`, no)
	f(`{"status":null}`, no)
	f(`{"ok":true,"output_json":"{}"}`, no)
	f(`{"status":"OK","output_json":{}}`, no)
	f(`{"status":"OK","error":7}`, no)
	f(`{"status":"OK","status":"OK"}`, no)
	f(`{"status":"OK"}{}`, no)
	f(`{"status":"`+"\xff"+`"}`, no)
	f(`{'status':'OK'}`, no)
	f(`[]`, no)
	f(`null`, no)
	f(``, no)
	f(`{"status":"OK","x":`+strings.Repeat("[", 31)+strings.Repeat("]", 31)+`}`, `OK  ""`)
	f(`{"status":"OK","x":`+strings.Repeat("[", 32)+strings.Repeat("]", 32)+`}`, no)
	f(`{"status":"OK","ds_state":[]}`, no)
	f(`{"status":"OK","ds_state":"{}"}`, no)
	f(`{"status":"OK","ds_state":{"slots":{"8":{}}}}`, no)
	f(`{"status":"OK","ds_state":{"slots":{"0":{"content_json":1}}}}`, no)
}

func TestReplyState(t *testing.T) {
	f := func(stateless bool, line, want string) {
		t.Helper()
		c := &tool.Call{State: stateOf("a", "", "c")}
		if _, bad := parseReply([]byte(line), c, stateless); bad != "" {
			t.Errorf("%s: no reply", line)
		}
		got := ""
		for n := range sessionstate.Slots {
			if a, ok := c.State.Get(n); ok {
				got += fmt.Sprint(n, a.Content, " ")
			}
		}
		if got != want {
			t.Errorf("stateless %v, %s: %s, want %s", stateless, line, got, want)
		}
	}
	for _, stateless := range []bool{false, true} {
		f(stateless, `{"status":"OK"}`, "0a 2c ")
		f(stateless, `{"status":"OK","ds_state":{}}`, "0a 2c ")
		f(stateless, `{"status":"OK","ds_state":{"delta":true,"slots":{"1":{"content_json":"b"}},"removed_slots":[0]}}`, "1b 2c ")
		f(stateless, `{"status":"TOOL_ERROR","ds_state":{"delta":true,"slots":{"0":{"content_json":"x"}}}}`, "0x 2c ")
	}
	f(false, `{"status":"OK","ds_state":{"slots":{"1":{"content_json":"b"}}}}`, "1b ")
	f(true, `{"status":"OK","ds_state":{"slots":{"1":{"content_json":"b"}}}}`, "0a 1b 2c ")
	f(false, `{"status":"OK","ds_state":{"slots":{}}}`, "")
	f(true, `{"status":"OK","ds_state":{"slots":{}}}`, "0a 2c ")

	if _, bad := parseReply([]byte(`{"status":"OK","ds_state":{"slots":{}}}`), &tool.Call{}, false); bad != "" {
		t.Error("a call without a state")
	}
}

func FuzzParseReply(f *testing.F) {
	f.Add([]byte(strings.TrimSpace(okReply)), false)
	f.Add([]byte(`{"status":"TOOL_ERROR","error":"e\ud83d\ude00"}`), true)
	f.Add([]byte(`{"error":"x","ds_state":{"slots":{"0":{"type":"t","size_bytes":3}}}}`), true)
	f.Add([]byte(`{"status":"OK","output_json":"\u0000","ds_state":{"delta":true,"removed_slots":[0,1]}}`), false)
	f.Fuzz(func(t *testing.T, line []byte, stateless bool) {
		c := &tool.Call{AID: "A", Input: []byte("{}"), State: stateOf("a", "b")}
		before := string(c.State.AppendSnapshot(nil))
		r, bad := parseReply(line, c, stateless)
		after := string(c.State.AppendSnapshot(nil))
		if bad != "" {
			if before != after {
				t.Errorf("the state changed: %s", after)
			}
			return
		}
		if (r.Status() == tool.OK) != (r.ErrorText() == "") || !utf8.ValidString(r.ErrorText()) || !utf8.Valid(r.Output) || r.Dispatch() != nil {
			t.Errorf("%s", short(r))
		}
		if c.State.Bytes() > sessionstate.MaxBytes || !jsonx.Check([]byte(after), maxDepth).OK() || !jsonx.Check(line, maxDepth).OK() {
			t.Errorf("accepted, state %s", after)
		}
		request := appendRequest(nil, c, stateless)
		if i := strings.IndexByte(string(request), '\n'); i != len(request)-1 || !jsonx.Check(request, maxDepth).OK() {
			t.Errorf("request %q", request)
		}
	})
}

func TestTail(t *testing.T) {
	f := func(want string, writes ...string) {
		t.Helper()
		var tl tail
		for range 2 {
			for _, w := range writes {
				if n, err := tl.Write([]byte(w)); n != len(w) || err != nil {
					t.Errorf("%d %v", n, err)
				}
			}
			if got := tl.String(); got != want {
				t.Errorf("%d bytes %.20q, want %d bytes %.20q", len(got), got, len(want), want)
			}
			tl.reset()
		}
	}
	x := strings.Repeat("x", tailSize)
	f("")
	f("", "")
	f("ab", "a", "b")
	f(x, x)
	f(x[1:]+"y", x, "y")
	f(x[:tailSize-3]+"abc", strings.Repeat("w", 5000), x, "abc")
	f(x, "w"+x)
	f(x[10:]+"0123456789", x+"0123456789")
}
