package jsonx

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

var scanNames = NewNames("aid", "input_json", "idempotency_key", "idempotency_kez", "é", "")

// scanned spells the result of Scan: the result, the repeated name, and the members that are there.
func scanned(r ScanResult, which int, out []Member) string {
	text := []string{"ok", "invalid", "not an object", "null", "duplicate"}[r]
	if which >= 0 {
		text += " " + scanNames.Name(which)
	}
	for i, m := range out {
		if m.Kind == Absent {
			continue
		}
		text += fmt.Sprintf("; %s=%d:%s", scanNames.Name(i), m.Kind, m.Raw)
		if m.Escaped {
			text += " escaped"
		}
	}
	return text
}

// scan runs Scan over members that still hold something, with and without bytes behind the text
// that must not be looked at.
func scan(t *testing.T, line string) string {
	t.Helper()
	dirty := bytes.Repeat([]byte{'"'}, len(line)+32)
	copy(dirty, line)
	results := make([]string, 2)
	for k, b := range [][]byte{[]byte(line), dirty[:len(line)]} {
		out := make([]Member, scanNames.Len())
		for i := range out {
			out[i] = Member{Kind: True, Escaped: true, Raw: b}
		}
		r, which := scanNames.Scan(b, 32, out)
		results[k] = scanned(r, which, out)
	}
	if results[0] != results[1] {
		t.Errorf("Scan(%s) is %s, with bytes behind it %s", line, results[0], results[1])
	}
	return results[0]
}

func TestScan(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		if got := scan(t, line); got != want {
			t.Errorf("Scan(%s)\n got %s\nwant %s", line, got, want)
		}
	}
	f(`{}`, "ok")
	f("\t{ \n}\r", "ok")
	f(`{"aid":"E"}`, "ok; aid=6:E")
	f(`{"aid":""}`, "ok; aid=6:")
	f(` { "aid" : "E" , "x" : [ 1 ] , "input_json" : null } `, "ok; aid=6:E; input_json=10:null")
	f(`{"aid":true,"input_json":false}`, "ok; aid=8:true; input_json=9:false")
	f(`{"aid":-1.50e+2,"input_json":0}`, "ok; aid=7:-1.50e+2; input_json=7:0")
	f(`{"aid":{ "aid":[{}] },"input_json":[ ]}`, "ok; aid=1:{ \"aid\":[{}] }; input_json=3:[ ]")
	f(`{"aid":"a\"\u00e9"}`, `ok; aid=6:a\"\u00e9 escaped`)
	f(`{"x":"\n","aid":"世"}`, "ok; aid=6:世")
	f(`{"é":1,"":2}`, "ok; é=7:1; =7:2")

	// A name is exactly that name, and only at the top.
	f(`{"ai":1,"aidx":2,"Aid":3,"xaid":4,"aid ":5}`, "ok")
	f(`{"idempotency_kex":1,"idempotency_ke":1,"idempotency_keyy":1,"idempotency_kez":2}`, "ok; idempotency_kez=7:2")
	f(`{"x":{"aid":1},"y":[{"aid":1}],"aid":"E"}`, "ok; aid=6:E")

	// However it is spelled.
	f(`{"\u0061id":"E"}`, "ok; aid=6:E")
	f(`{"\u0061\u0069\u0064":"E"}`, "ok; aid=6:E")
	f(`{"a\u0069\u0064\u0064":"E","\u0061i":1,"\u0041id":1,"\"aid":1,"aid\\":1}`, "ok")
	f(`{"\u00e9":1}`, "ok; é=7:1")
	f(`{"\u0000":1,"\ud800":1}`, "ok")

	// Unknown members are checked and ignored, repeated or not.
	f(`{"x":1,"x":1e999,"y":"\ud800","aid":"E"}`, "ok; aid=6:E")
}

func TestScanOrder(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		if got := scan(t, line); got != want {
			t.Errorf("Scan(%s)\n got %s\nwant %s", line, got, want)
		}
	}
	f(`{"aid":"A","aid":"B"}`, "duplicate aid; aid=6:A")
	f(`{"aid":"A","\u0061id":"B"}`, "duplicate aid; aid=6:A")
	f(`{"\u0061id":"A","aid":"B"}`, "duplicate aid; aid=6:A")
	f(`{"aid":null,"aid":null}`, "duplicate aid; aid=10:null")
	f(`{"input_json":1,"aid":1,"aid":2,"input_json":2}`, "duplicate aid; aid=7:1; input_json=7:1")
	f(`{"aid":1,"aid":2,"é":3}`, "duplicate aid; aid=7:1; é=7:3")

	// A fault outranks a duplicate, also behind it.
	f(`{"aid":1,"aid":2`, "invalid")
	f(`{"aid":1,"aid":2,}`, "invalid")
	f(`{"aid":1,"aid":2} x`, "invalid")
	f(`{"aid":1,"aid":2,"x":"`+"\xff"+`"}`, "invalid")
	f(`{"aid":1,"aid":2,"x":`+nested(32)+`}`, "invalid")

	f(`null`, "null")
	f(" null\r", "null")
	f(`nul`, "invalid")
	f(`null x`, "invalid")
	for _, line := range []string{`[]`, `42`, `"x"`, ` true `, `false`, `[{"aid":1,"aid":2}]`, nested(32)} {
		f(line, "not an object")
	}
	f(nested(33), "invalid")
}

func TestScanInvalid(t *testing.T) {
	f := func(line string) {
		t.Helper()
		if got := scan(t, line); got != "invalid" {
			t.Errorf("Scan(%q) is %s, want invalid", line, got)
		}
	}
	for _, line := range []string{
		``, ` `, `nope`, `{'aid':'E'}`, `{"aid":"E",}`, `{"aid":"E"} x`, `{"aid":"E"}{}`, `{"aid":"E","n":NaN}`, `{/**/}`, "\ufeff{}",
		`{`, `{"`, `{"aid`, `{"aid"`, `{"aid":`, `{"aid":"`, `{"aid":"E"`, `{"aid":"E",`, `{,}`, `{"aid"}`, `{"aid",1}`, `{"aid":}`, `{"aid":1:2}`,
		`{aid:1}`, `{1:1}`, `{"aid":1 "x":2}`, `{"aid":01}`, `{"aid":-}`, `{"aid":+1}`, `{"aid":1.}`, `{"aid":.5}`, `{"aid":tru}`, `{"aid":[}`,
		`{"aid":[1,]}`, `{"aid":[1}`, `{"aid":{]}`, `{"aid":1]`, `{"a\x":1}`, `{"\u00":1}`, `{"aid":"\q"}`, `{"aid":"` + "\n" + `"}`, `{"a` + "\x00" + `":1}`,
		"{\"aid\":\"\xff\"}", "{\"\xff\":1}", "{\"aid\":\"\xed\xa0\x80\"}", "{\"aid\":\"\xc0\xaf\"}", "{\"aid\":\"\xe4\xb8\"}", "\xff", "{}\xff", "{}\x00",
	} {
		f(line)
	}
	// Every cut of a good line, and every byte of it replaced.
	whole := `{"aid":"a\"b","x":{"y":[1,true,"z"]},"input_json":-1.5e3}`
	for i := range whole {
		f(whole[:i])
		f(whole[:i] + "\x01" + whole[i+1:])
	}
}

// nested returns n arrays, one in the other.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestScanDepth(t *testing.T) {
	f := func(line string, maxDepth int, want ScanResult) {
		t.Helper()
		out := make([]Member, scanNames.Len())
		if got, _ := scanNames.Scan([]byte(line), maxDepth, out); got != want {
			t.Errorf("%.20s... of %d bytes, limit %d: %d, want %d", line, len(line), maxDepth, got, want)
		}
	}
	f(`{"x":`+nested(31)+`}`, 32, ScanOK) // toolhost §8
	f(`{"x":`+nested(32)+`}`, 32, ScanInvalid)
	f(`{"aid":`+nested(31)+`,"x":`+nested(31)+`}`, 32, ScanOK)
	f(`{"aid":`+nested(31)+`,"x":`+nested(32)+`}`, 32, ScanInvalid)
	f(`{"x":`+strings.Repeat(`{"y":`, 31)+"1"+strings.Repeat("}", 32), 32, ScanOK)
	f(`{"x":`+strings.Repeat(`{"y":`, 31)+"{}"+strings.Repeat("}", 32), 32, ScanInvalid)
	f(`{}`, 1, ScanOK)
	f(`{"x":1}`, 1, ScanOK)
	f(`{"x":[]}`, 1, ScanInvalid)
	f(`{}`, 0, ScanInvalid)
	f(`{}`, -1, ScanInvalid)
	f(`1`, 0, ScanNotObject)
	f(`{"x":`+nested(MaxDepth-1)+`}`, MaxDepth+100, ScanOK)
	f(`{"x":`+nested(MaxDepth)+`}`, MaxDepth+100, ScanInvalid)
}

func TestScanLendsWithoutCapacity(t *testing.T) {
	line := []byte(`{"aid":"abc","input_json":{}}`)
	out := make([]Member, scanNames.Len()+3)
	scanNames.Scan(line, 32, out)
	if m := out[0]; &m.Raw[0] != &line[8] || cap(m.Raw) != 3 {
		t.Error("a member must be the line's own bytes and must not reach into the next one")
	}
	if m := out[1]; cap(m.Raw) != 2 {
		t.Error("so must an object")
	}
}

func TestScanOfALargeLine(t *testing.T) {
	const size = 10 << 20 // the longest line of toolhost §2.2
	head, tail := `{"aid":"E","x":"`, `","input_json":"{}"}`
	line := []byte(head + strings.Repeat("x", size-len(head)-len(tail)) + tail)
	out := make([]Member, scanNames.Len())
	if r, which := scanNames.Scan(line, 32, out); scanned(r, which, out) != "ok; aid=6:E; input_json=6:{}" {
		t.Error(scanned(r, which, out))
	}
	line[size/2] = 0xff
	if r, _ := scanNames.Scan(line, 32, out); r != ScanInvalid {
		t.Errorf("with a bad byte in its middle: %d", r)
	}
}
