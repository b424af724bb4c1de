//go:build !race

package jsonx

import (
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
