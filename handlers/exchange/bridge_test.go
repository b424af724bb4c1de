package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"trunkline/codec/jsonx"
)

func bridge(t testing.TB, stdin string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	exit := Bridge(strings.NewReader(stdin), &stdout, &stderr, testOptions())
	return finish(t, exit, &stdout, &stderr)
}

func TestBridgeCommands(t *testing.T) {
	may := `{"can_continue":true,"terminal_reason":null,"iteration":0,"llm_call_count":0,"agent_hop_count":0}` + "\n"
	for _, name := range []string{"can-continue", "can_continue", `can\u005fcontinue`} {
		if o := bridge(t, `{"command":"`+name+`","envelope":{"envelope_id":"e"}}`); o.exit != 0 || o.stdout != may {
			t.Errorf("%s: exit %d, %s", name, o.exit, o.stdout)
		}
	}
	bridge(t, `{"command":"create","raw_input":"hi","stage_order":["a"]}`).want(t, "raw_input", "hi")
	bridge(t, `{"command":"create","envelope":{"raw_input":"hi"},"raw_input":"other"}`).want(t, "raw_input", "hi")
	bridge(t, `{"command":"process","raw_input":"hi","stage_order":["a"]}`).want(t, "current_stage", "a")
	bridge(t, `{"comm\u0061nd":"process","envelope":{"raw_input":"hi"}}`).want(t, "current_stage", "perception")
	bridge(t, `{"command":"get_result","envelope":{"envelope_id":"e"}}`).want(t, "envelope_id", "e")
	bridge(t, `{"command":"result","envelope_id":"e"}`).want(t, "envelope_id", "e")
	bridge(t, `{"command":"validate","raw_input":"x"}`).want(t, "valid", true)
	bridge(t, `{"command":"validate"}`).want(t, "valid", false)
	bridge(t, ` {"command":"version","raw_input":7}`+"\n").want(t, "version", "1.0.0")
}

func TestBridgeReportsFailuresAtExitZero(t *testing.T) {
	f := func(stdin, code, field string) {
		t.Helper()
		bridge(t, stdin).wantError(t, 0, code, field)
	}
	f(`{"command":"frobnicate","raw_input":"x"}`, "unknown_command", "")
	f(`{"command":""}`, "unknown_command", "")
	f(`{"command":"process"}`, "invalid_envelope", "")
	f(`{"command":"process","envelope":{}}`, "invalid_envelope", "")
	f(`{"command":"process","raw_input":"a","iteration":2.5}`, "invalid_envelope", "iteration")
	f(`{"command":"process","raw_input":"a","llm_call_count":10}`, "bounds_exceeded", "")
}

func TestBridgeWithoutCommand(t *testing.T) {
	for _, stdin := range []string{"", " \r\n\t", "{}", `{"command":7,"raw_input":"x"}`, `{"command":null}`, `{"command":"version","command":1}`, "[1]", `"process"`, "null"} {
		if o := bridge(t, stdin); o.exit != 1 || o.stdout != "" || !strings.Contains(o.stderr, "Usage") {
			t.Errorf("%q: %+v", stdin, o)
		}
	}
}

func TestBridgeInputThatIsNotRead(t *testing.T) {
	for _, stdin := range []string{"{not json", `{"command":"version"} {}`, "\ufeff\ufeff{}", "NaN"} {
		bridge(t, stdin).wantError(t, 1, "parse_error", "")
	}
	var stdout, stderr bytes.Buffer
	o := finish(t, Bridge(iotest.ErrReader(errors.New("gone")), &stdout, &stderr, testOptions()), &stdout, &stderr)
	o.wantError(t, 1, "read_error", "")
	opt := testOptions()
	opt.MaxBodyBytes = 21
	for _, end := range []string{"", " "} {
		stdout.Reset()
		o = finish(t, Bridge(strings.NewReader(`{"command":"version"}`+end), &stdout, &stderr, opt), &stdout, &stderr)
		if end == "" {
			o.want(t, "version", "1.0.0")
		} else {
			o.wantError(t, 1, "too_large", "")
		}
	}
}

func TestBridgePanic(t *testing.T) {
	var stdout, stderr bytes.Buffer
	o := finish(t, Bridge(strings.NewReader(`{"command":"create"}`), &stdout, &stderr, Options{MaxBodyBytes: defaultMaxBodyBytes}), &stdout, &stderr)
	o.wantError(t, 0, "internal", "")
}

func TestOrderPayload(t *testing.T) {
	f := func(src, name, payload string) {
		t.Helper()
		n, p, ok := parseOrder([]byte(src))
		if !ok || n != name || string(p) != payload {
			t.Errorf("%s: %q %s %v, want %q %s", src, n, p, ok, name, payload)
		}
	}
	f(`{"command":"x"}`, "x", `{}`)
	f(`{"a" : 1.00, "command":"x", "b\u0041": { "c" : [ 1 ] } }`, "x", `{"a":1.00,"b\u0041":{ "c" : [ 1 ] }}`)
	f(`{"command":"x","envelope": { "a": 1 } ,"b":2}`, "x", `{ "a": 1 }`)
	f(`{"command":"x","envelope":[1],"b":2}`, "x", `{"envelope":[1],"b":2}`)
	f(`{"command":"x","envelope":null}`, "x", `{"envelope":null}`)
	f(`{"command":"x","envelope":{"a":1},"envelope":{"a":2}}`, "x", `{"a":2}`)
	f(`{"command":"x","command":"y\n"}`, "y\n", `{}`)
	f(`{"command":"x","a":{"command":"z"}}`, "x", `{"a":{"command":"z"}}`)
}

func FuzzBridge(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "[", `{"command":"create","raw_input":"hi"}`, `{"command":"process","envelope":{"raw_input":"a","llm_call_count":10}}`,
		`{"command":"validate","x":[{"command":1}]}`, `{"command":"version"}`, `{"command":"nope"}`, `{"comm\u0061nd":"get_result","envelope_id":"e"}`,
		`{"command":"process","raw_input":"x","error":true,"code":1,"message":[ ]}`, "{\"command\":\"process\",\n\"outputs\":{\"a\":{ }}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stdin string) {
		o := bridge(t, stdin)
		if o.exit != 0 && o.exit != 1 || o.stdout == "" && (o.exit != 1 || o.stderr == "") {
			t.Errorf("%q: %+v", stdin, o)
		}
		if o.object["code"] == "internal" && o.object["error"] == true {
			t.Errorf("%q: %s", stdin, o.stderr)
		}
		if !jsonx.Check([]byte(stdin), jsonx.MaxDepth).OK() {
			return
		}
		_, payload, ok := parseOrder([]byte(stdin))
		if ok && (!json.Valid(payload) || len(payload) > len(stdin)) {
			t.Errorf("%q: payload %q", stdin, payload)
		}
	})
}
