package ipc

import "testing"

// Question: what does a pipelined burst cost whose requests are of one method, of four in turn, or
// of four whose every second one is refused?

func BenchmarkMixedKinds(b *testing.B) {
	r := newRig(b)
	p := r.connect()
	p.call("c", "kernel", "CreateProcess", `{"pid":"p1","user_id":"u"}`)
	k := func(method, body string) []byte { return request("id-1", "kernel", method, body) }
	get, check, ghost := k("GetProcess", `{"pid":"p1"}`), k("CheckQuota", `{"pid":"p1"}`), k("GetProcess", `{"pid":"ghost"}`)
	counts, rate := k("GetProcessCounts", `{}`), k("CheckRateLimit", `{"user_id":"u"}`)
	f := func(name string, kinds ...[]byte) {
		const burst = 16
		var in []byte
		for i := range burst {
			in = append(in, kinds[i%len(kinds)]...)
		}
		out := make([]byte, 0, 64<<10)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.now.Mono += 20e9
				if used, _, _ := p.s.Feed(in, out, r.now); used != len(in) {
					b.Fatalf("%d of %d bytes are taken", used, len(in))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/burst, "ns/request")
		})
	}
	f("one", get)
	f("mixed", get, check, counts, rate)
	f("refused", get, ghost, check, ghost)
}
