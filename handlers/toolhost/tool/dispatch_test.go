package tool

import (
	"strings"
	"testing"
	"unicode/utf8"

	"trunkline/codec/jsonx"
)

func TestDispatchErrorJSON(t *testing.T) {
	f := func(e DispatchError, want string) {
		t.Helper()
		got := string(e.AppendJSON([]byte("x")))
		if got != "x"+want {
			t.Errorf("%+v: %s, want %s", e, got, want)
		}
		if p := jsonx.Check([]byte(got[1:]), 1); !p.OK() {
			t.Errorf("%s: %v", got, p)
		}
	}
	f(DispatchError{"AID.EXT.PY.v1", Crash, "", false}, `{"error":true,"aid":"AID.EXT.PY.v1","type":"crash","detail":""}`) // toolhost §9H
	f(DispatchError{"A", Timeout, "d", false}, `{"error":true,"aid":"A","type":"timeout","detail":"d"}`)
	f(DispatchError{"A", ParseError, "d", false}, `{"error":true,"aid":"A","type":"parse_error","detail":"d"}`)
	f(DispatchError{"A", NotFound, "d", false}, `{"error":true,"aid":"A","type":"not_found","detail":"d"}`)
	f(DispatchError{"A", Exception, "d", false}, `{"error":true,"aid":"A","type":"exception","detail":"d"}`)
	f(DispatchError{"A\"\n", Crash, "\u00e9</\\\x01\xff", false}, `{"error":true,"aid":"A\"\n","type":"crash","detail":"é</\\\u0001`+"\ufffd"+`"}`)
}

func TestBroken(t *testing.T) {
	f := func(kind DispatchType, exit int, detail, want string) {
		t.Helper()
		r := Broken("AID.X.v1", kind, exit, detail)
		if r.Status() != ToolError || r.ErrorText() != want || r.Output != nil {
			t.Errorf("%s: %v %q, want %q", kind, r.Status(), r.ErrorText(), want)
		}
		if d := r.Dispatch(); d == nil || *d != (DispatchError{"AID.X.v1", kind, Detail(detail), false}) {
			t.Errorf("%s: dispatch error %+v", kind, d)
		}
	}
	f(Timeout, 0, "any", "toolhost timed out for AID.X.v1")
	f(Crash, 3, "", "toolhost exit 3: ") // toolhost §9H
	f(Crash, 137, "out of\nmemory", "toolhost exit 137: out of memory")
	f(ParseError, 3, "any", "toolhost invalid response JSON")
	f(NotFound, 0, "hash mismatch", "toolhost launch failed: hash mismatch")
	f(Exception, 0, "index\tout of range", "index out of range")
	f(Exception, 0, "", "exception")
}

func TestDetail(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := Detail(text); got != want {
			t.Errorf("detail of %d bytes %.40q is %d bytes %.40q, want %d bytes %.40q", len(text), text, len(got), got, len(want), want)
		}
	}
	x := strings.Repeat("x", MaxDetail)
	f("", "")
	f("plain \u00e9 \U0001f600", "plain \u00e9 \U0001f600")
	f("a\x00b\tc\r\nd\x1be\x7ff\u0085g", "a b c  d e f g")
	f("a\xffb", "a\ufffdb")
	f(x, x)
	f("y"+x, x)
	f(x+"\n", x[1:]+" ")
	// The first character that is whole.
	f("\u00e9"+x[1:], x[1:])
	f("\U0001f600"+x[1:], x[1:])
	f("\U0001f600"+x[3:], x[3:])
	f("\U0001f600"+x[4:], "\U0001f600"+x[4:])
	for _, text := range []string{strings.Repeat("\x80", 2*MaxDetail), strings.Repeat("\xff", 2*MaxDetail), strings.Repeat("\u4e16", MaxDetail)} {
		if got := Detail(text); !utf8.ValidString(got) || utf8.RuneCountInString(got) > MaxDetail || got == "" {
			t.Errorf("detail of %.10q...: %d bytes %.20q", text, len(got), got)
		}
	}
}
