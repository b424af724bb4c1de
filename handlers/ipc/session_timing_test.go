package ipc

import (
	"fmt"
	"testing"
)

// What does one request cost through the whole session, frame in to reply bytes out, without the socket?
func BenchmarkSession(b *testing.B) {
	const rows = 10_000
	r := newRig(b, Config{})
	p := r.connect()
	for i := range rows {
		p.send(request("c", "kernel", "CreateProcess", fmt.Sprintf(`{"pid":"00000000-0000-4000-8000-%012d","request_id":"q","user_id":"u%d","session_id":"s"}`, i, i)))
		p.out = p.out[:0]
	}
	for _, m := range []struct{ name, service, method, body string }{
		{"GetProcess", "kernel", "GetProcess", `{"pid":"%s"}`},
		{"RecordUsage", "kernel", "RecordUsage", `{"pid":"%s","llm_calls":1,"tokens_in":120,"tokens_out":300}`},
		{"CheckQuota", "kernel", "CheckQuota", `{"pid":"%s"}`},
		{"CheckRateLimit", "kernel", "CheckRateLimit", `{"user_id":"%s"}`},
		{"TransitionState", "kernel", "TransitionState", `{"pid":"%s","new_state":"WAITING"}`},
		{"GetNextRunnable", "kernel", "GetNextRunnable", `{"start":false}`},
	} {
		b.Run(m.name, func(b *testing.B) {
			const depth = 64
			var in [][]byte
			for i := range rows / depth {
				var frames []byte
				for j := range depth {
					body := m.body
					if m.name != "GetNextRunnable" {
						body = fmt.Sprintf(m.body, fmt.Sprintf("00000000-0000-4000-8000-%012d", (i*depth+j)*7919%rows))
					}
					frames = append(frames, request("00000001", m.service, m.method, body)...)
				}
				in = append(in, frames)
			}
			out := make([]byte, 0, 1<<20)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += depth {
				r.now.Mono += 1000
				_, out, _ = p.s.Feed(in[n/depth%len(in)], out[:0], r.now)
			}
		})
	}
}
