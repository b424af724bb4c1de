package jsonx

import (
	"fmt"
	"strings"
	"testing"
)

// Question: what does reading one request line cost, and how much of it is more than Check? (bench/peers/jsonscan has the
// comparison with other libraries.)
func BenchmarkScan(b *testing.B) {
	n := NewNames("aid", "input_json", "inputs", "ds_state", "idempotency_key", "_lease_token", "request_id", "run_id")
	out := make([]Member, n.Len())
	lines := map[string]string{
		"noop": `{"aid":"AID.NOOP.v1"}`,
		"echo": `{"aid":"AID.TEST.ECHO.v1","input_json":"{\"x\":1}"}`,
		"keyed": `{"aid":"AID.EMBED.TEXT.v1","input_json":"the quick brown fox jumps over the lazy dog","ds_state":{},` +
			`"idempotency_key":"0f3c9d1e-77aa-4b52-9f0e-3d5b8a6c2e11","_lease_token":"lease_00112233445566778899aabbccddeeff","request_id":42}`,
		"large": `{"aid":"AID.HASH.v1","inputs":{"text":"` + strings.Repeat("plain text without an end ", 640) + `"}}`,
	}
	for _, name := range []string{"noop", "echo", "keyed", "large"} {
		line := []byte(lines[name])
		b.Run(fmt.Sprintf("scan/%s%d", name, len(line)), func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if r, _ := n.Scan(line, 32, out); r != ScanOK {
					b.Fatal(r)
				}
			}
		})
		b.Run(fmt.Sprintf("check/%s%d", name, len(line)), func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				Check(line, 32)
			}
		})
	}
}
