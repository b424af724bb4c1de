//go:build !race

package jsonx

import (
	"crypto/sha256"
	"strings"
	"testing"
)

func TestScanDoesNotAllocate(t *testing.T) {
	n := NewNames("aid", "input_json", "idempotency_key", "request_id")
	out := make([]Member, n.Len())
	buf := make([]byte, 0, 256)
	f := func(what, text string, want ScanResult) {
		t.Helper()
		line := []byte(text)
		if got := testing.AllocsPerRun(100, func() {
			if r, _ := n.Scan(line, 32, out); r != want {
				t.Fatalf("%s: %d", what, r)
			}
			for i := range out {
				if out[i].Escaped {
					buf = AppendUnescaped(buf[:0], out[i].Raw)
				}
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations, want 0", what, got)
		}
	}
	f("request", `{"aid":"AID.TEST.ECHO.v1","input_json":"{\"x\":1}","ds_state":{"slots":{"0":{"content":[1,2.5]}}},"request_id":7}`, ScanOK)
	f("escaped name", `{"\u0061id":"E","request_id":"\ud83d\ude00"}`, ScanOK)
	f("duplicate", `{"aid":"E","\u0061id":"E"}`, ScanDuplicate)
	f("fault", `{"aid":"E","aid":"E",}`, ScanInvalid)
	f("deep", `{"x":`+strings.Repeat("[", 100), ScanInvalid)
	f("null", `null`, ScanNull)
	f("other root", `[1,"x"]`, ScanNotObject)
}

func TestStrictDoesNotAllocate(t *testing.T) {
	n := NewNames("id", "method", "params", "request_id")
	out := make([]Member, n.Len())
	var s Strict
	f := func(what, text string, want Kind) {
		t.Helper()
		line := []byte(text)
		if got := testing.AllocsPerRun(100, func() {
			if p := s.Scan(n, line, 64, out); p.Kind != want {
				t.Fatalf("%s: %v", what, p)
			}
			if p := s.Check(line, 64); p.Kind != want {
				t.Fatalf("%s: %v", what, p)
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations, want 0", what, got)
		}
	}
	f("request", postLine, Fine)
	f("escaped keys", `{"\u0061":"\u00e9","a\n":{"\u0061":1}}`, Fine)
	f("as many keys as are kept", string(manyKeys(strictKeeps-1)), Fine)
	f("duplicate", `{"aid":"E","\u0061id":"E"}`, DuplicateKey)
	f("fault", `{"aid":"E","aid":"E",}`, UnexpectedChar)
	f("deep", `{"x":`+strings.Repeat("[", 100), UnexpectedEnd)
}

func TestCanonicalDoesNotAllocate(t *testing.T) {
	var c Canonical
	h := sha256.New()
	var sum [sha256.Size]byte
	f := func(what, text string) {
		t.Helper()
		raw := []byte(text)
		write := func() {
			h.Reset()
			c.Start(h)
			c.Literal(`{"body":`)
			c.Text(raw, true)
			c.Value(raw)
			c.End()
			h.Sum(sum[:0])
		}
		write()
		if got := testing.AllocsPerRun(100, write); got != 0 {
			t.Errorf("%s: %v allocations, want 0", what, got)
		}
	}
	f("metadata", `{"n":100,"f":1.50,"z":-0,"b":[true,null],"\u0061":"\u00e9\n","x":{"y":[{"z":1e-400}]}}`)
	f("envelope", string(envelope()))
	f("a long text", `{"a":"`+strings.Repeat("lines of text\\n", 20_000)+`"}`)
	for text, n := manyKeys(0), 1; len(text) <= canonicalKeeps; n++ {
		if text = manyKeys(n); len(text) > canonicalKeeps-16 {
			f("as many keys as are kept", string(text))
		}
	}
	f("as many objects as are kept", "["+strings.Repeat("{},", canonicalKeeps/3-1)+"{}]")
	f("the longest escaped key that is kept", `{"`+strings.Repeat("x", canonicalKeeps-20)+`\n":1}`)
}
