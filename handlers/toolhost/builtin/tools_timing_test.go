package builtin

import (
	"strings"
	"testing"

	"trunkline/handlers/toolhost/sessionstate"
)

// fastInput is the longest input, in bytes, for which a Fast tool of this package stays below the
// 50 us of toolhost §2.3. The server runs a call with a longer one on the executor.
const fastInput = 4 << 10

// BenchmarkFast: do the tools that may run on an event loop stay below its 50 us (toolhost §2.3)
// with the longest input that may run there? Only text that is not ASCII makes the check of UTF-8
// do its work.
func BenchmarkFast(b *testing.B) {
	bench := newBench(b)
	input := []byte(`{"text":"` + strings.Repeat("ö", (fastInput-len(`{"text":""}`))/2) + `"}`)
	for _, tl := range Builtins(bench.env) {
		if !tl.Fast {
			continue
		}
		b.Run(tl.AID, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var s sessionstate.State
				tl.Run(b.Context(), callOf(tl.AID, input, &s))
			}
		})
	}
}
