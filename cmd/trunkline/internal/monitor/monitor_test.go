package monitor

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/engine/connection"
)

// seenFrame is a frame as a tap holds it.
func seenFrame(out bool, whole []byte, keep int) *connection.Seen {
	return &connection.Seen{At: 1000, Out: out, Size: len(whole), Head: whole[:min(keep, len(whole))]}
}

func requestFrame(t *testing.T, id, service, method, body string) []byte {
	t.Helper()
	b, err := transcode.EncodeJSON([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	out := mpack.AppendRequest(frame.Begin(nil, frame.Request), id, service, method, b)
	frame.Finish(out, 0)
	return out
}

func TestMonitorCutsPayloads(t *testing.T) {
	const body = `{"a":"0123456789","b":["x","y"]}`
	whole := requestFrame(t, "7", "kernel", "Ping", body)
	f := func(payload, keep int, want, cut string) {
		t.Helper()
		m := &monitored{read: readFrame, payload: payload, asked: map[string]request{}}
		got := m.decode(seenFrame(false, whole, keep))
		if got.Method != "kernel.Ping" || got.ID != "7" || got.Bytes != len(whole) || string(got.Payload) != want || got.PayloadCut != cut {
			t.Errorf("%d bytes of %d: %+v, payload %s, want %q or %q", payload, keep, got, got.Payload, want, cut)
		}
	}
	f(0, 1000, "", "")
	f(len(body), 1000, body, "")
	f(len(body)-1, 1000, "", body[:len(body)-1])
	f(5, 1000, "", body[:5])
	f(1000, len(whole)-1, "", `{"a":"0123456789","b":["x",`)
}

// TestMonitorOfLines: those of tools, threads and projects, however long they are.
func TestMonitorOfLines(t *testing.T) {
	f := func(out bool, line, want, payload string) {
		t.Helper()
		m := &monitored{read: readLine, payload: 40, asked: map[string]request{"7": {"create_thread", 500}}}
		got := m.decode(seenFrame(out, []byte(line), 100))
		text := strings.Join(strings.Fields(got.Direction+" "+got.Type+" "+got.Method+" "+got.ID+" "+got.Code), " ")
		if text != want || got.Bytes != len(line) || string(got.Payload)+got.PayloadCut != payload {
			t.Errorf("%s\n%q, want %q\n%s%s, want %s", line, text, want, got.Payload, got.PayloadCut, payload)
		}
	}
	f(false, `{"aid":"AID.NOOP.v1","request_id":"r4"}`+"\n", "in request AID.NOOP.v1 r4", `{"aid":"AID.NOOP.v1","request_id":"r4"}`)
	f(true, `{"ok":false,"error":"no tool","request_id":3}`+"\r\n", "out error 3", `{"ok":false,"error":"no tool","request_i`)
	f(true, `{"id":7,"ok":false,"error":{"code":"NOT_FOUND"}}`+"\n", "out error create_thread 7 NOT_FOUND", `{"id":7,"ok":false,"error":{"code":"NOT_`)
	f(false, `{"id":1,"method":"auth","token":"abcd1"}`+"\n", "in request auth 1", `{"id":1,"method":"auth","token":"[REDACT`)
	f(true, `{"type":"event","event":"Done","seq":1}`+"\n", "out event Done", `{"type":"event","event":"Done","seq":1}`)
	f(false, `{"type":"subscribe"}`+"\n", "in request subscribe", `{"type":"subscribe"}`)
	f(false, `{"id":{"a":"b"},"method":5}`+"\n", "in request", `{"id":{"a":"b"},"method":5}`)
	f(false, `{"aid":"A","inputs":"`+strings.Repeat("x", 200)+`"}`+"\n", "in request A", `{"aid":"A","inputs":"[REDACTED]"`)
	f(false, "{\"aid\":\"A\"} x\n", "in request A", `{"aid":"A"} x`)
	f(false, "{\"aid\":\"A\xff\"}\n", "in request A\ufffd", `{"aid":"A"}`)
	f(false, "[1]\n", "in unreadable", "")
	f(false, "\n", "in unreadable", "")
	f(true, `x","request_id":3}`+"\n", "out unreadable", "")
}

func TestLineSizes(t *testing.T) {
	for text, want := range map[string]int{"": 0, "\n": 1, "{}\n{}\n": 3, "{}": 2} {
		if got := lineSize(true, []byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// TestMonitorForgets: requests without an answer are bounded.
func TestMonitorForgets(t *testing.T) {
	m := &monitored{read: readFrame, asked: map[string]request{}}
	for n := range maxAsked {
		m.decode(seenFrame(false, requestFrame(t, fmt.Sprint(n), "kernel", "Ping", `{}`), 1000))
	}
	if len(m.asked) != maxAsked {
		t.Errorf("%d are remembered", len(m.asked))
	}
	m.decode(seenFrame(false, requestFrame(t, "one more", "kernel", "Ping", `{}`), 1000))
	if len(m.asked) != 1 {
		t.Errorf("%d are remembered behind the limit", len(m.asked))
	}
	long := m.decode(seenFrame(false, requestFrame(t, strings.Repeat("i", maxName+1), "s", "m", `{}`), 1000))
	if len(long.ID) != maxName {
		t.Errorf("an id of %d bytes", len(long.ID))
	}
}

func TestFrameSizes(t *testing.T) {
	size := frameSize(100)
	f := func(out bool, b string, want int) {
		t.Helper()
		if got := size(out, []byte(b)); got != want {
			t.Errorf("%v %q: %d, want %d", out, b, got, want)
		}
	}
	f(false, "\x00\x00\x00\x01\x01", 5)
	f(false, "\x00\x00\x00\x01\x77", 5)
	f(true, "\x00\x00\x00\x01\x77", 0)
	f(true, "\x00\x00\x00\x01\x01", 0)
	f(true, "\x00\x00\x00\x64\x02", 104)
	f(true, "\x00\x00\x00\x65\x02", 0)
	f(true, "\x00\x00\x00\x00\x02", 0)
	f(true, "\x00\x00\x00\x01", 0)
	f(true, "", 0)
}

func TestHideSecrets(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := string(hideSecrets(nil, []byte(text), 0)); got != want {
			t.Errorf("%s\nbecame %s\nwant   %s", text, got, want)
		}
	}
	same := func(text string) { t.Helper(); f(text, text) }
	same(`{"pid":"p1","usage":{"tokens_in":5,"max_tokens":100.5},"a":[true,null,"x"]}`)
	same(`{"payload":"{\"n\":1}"}`)
	same(`{"cut":[1,`)
	same(``)
	f(`{"token":"abcd","n":1}`, `{"token":"[REDACTED]","n":1}`)
	f(`{"\u0074oken":"abcd","n":1}`, `{"\u0074oken":"[REDACTED]","n":1}`)
	f(`{"api_key":{"a":["]"],"b":"}"},"n":1}`, `{"api_key":"[REDACTED]","n":1}`)
	f(`{"Authorization":["Basic x"]}`, `{"Authorization":"[REDACTED]"}`)
	f(`{"client_secret":{"a":`, `{"client_secret":"[REDACTED]"`)
	f(`{"text":"use Bearer abcdefgh1234 here"}`, `{"text":"use [REDACTED] here"}`)
	f(`{"payload":"{\"password\": \"x\",\"n\":1}"}`, `{"payload":"{\"password\":\"[REDACTED]\",\"n\":1}"}`)
	f(`{"payload":"[{\"p\":\"{\\\"token\\\":\\\"x\\\"}\"}]"}`, `{"payload":"[{\"p\":\"{\\\"token\\\":\\\"[REDACTED]\\\"}\"}]"}`)
	f(`{"payload":"{token=abcdefgh"}`, `{"payload":"{[REDACTED]"}`)
	f(`{"a":"not who`, `{"a":"[REDACTED]"`)
}

func FuzzMonitoredFrame(f *testing.F) {
	f.Add(true, []byte("\x00\x00\x00\x03\x02\x81\xa2"), 100)
	f.Add(false, []byte("\x00\x00\x00\x20\x01\x84\xa2id\xa11\xa7service\xa1k\xa6method\xa1m\xa4body\x81\xa5token\xa4abcd"), 10)
	f.Add(true, []byte("\x00\x00\x00\x20\xff\x83\xa2id\xa11\xa2ok\xc2\xa5error\x82\xa4code\xa1C\xa7message\xa1m"), 1000)
	f.Add(true, []byte(`{"id":7,"ok":false,"error":{"code":"C"},"type":"event"} x`), 100)
	f.Add(false, []byte("{\"aid\":\"A\xff\",\"inputs\":{\"token\":\"x"), 100)
	f.Fuzz(func(t *testing.T, out bool, b []byte, payload int) {
		for i, size := range []int{len(b), 2 * len(b), len(b), 2 * len(b)} {
			m := &monitored{read: readFrame, payload: payload & 0xffff, asked: map[string]request{}}
			if i > 1 {
				m.read = readLine
			}
			fr := m.decode(&connection.Seen{Out: out, Size: size, Head: b})
			if _, err := json.Marshal(&fr); err != nil {
				t.Fatalf("%x: %v", b, err)
			}
			if len(fr.Payload) > m.payload || len(fr.PayloadCut) > m.payload {
				t.Fatalf("%d and %d bytes of %d", len(fr.Payload), len(fr.PayloadCut), m.payload)
			}
		}
	})
}
