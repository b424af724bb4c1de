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

// What does it cost to create a process and end it, in a full table where each creation evicts the oldest ended one?
func BenchmarkCreateTerminate(b *testing.B) {
	const rows, pairs = 10_000, 32
	r := newRig(b, Config{MaxProcesses: rows, MaxRateLimitUsers: rows})
	p := r.connect()
	var in [][]byte
	for i := range 2 * rows / pairs {
		var frames []byte
		for j := range pairs {
			n := i*pairs + j
			frames = append(frames, request("00000001", "kernel", "CreateProcess",
				fmt.Sprintf(`{"pid":"00000000-0000-4000-8000-%012d","request_id":"q","user_id":"u%d","session_id":"s"}`, n, n))...)
			frames = append(frames, request("00000002", "kernel", "TerminateProcess",
				fmt.Sprintf(`{"pid":"00000000-0000-4000-8000-%012d"}`, n))...)
		}
		in = append(in, frames)
	}
	out := make([]byte, 0, 1<<20)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += pairs {
		r.now.Mono += 1e9
		_, out, _ = p.s.Feed(in[n/pairs%len(in)], out[:0], r.now)
	}
}

// What does an event cost on its way from its publisher's frame to each subscriber's chunk?
func BenchmarkPublish(b *testing.B) {
	for _, subscribers := range []int{0, 1, 10, 100} {
		b.Run(fmt.Sprint(subscribers), func(b *testing.B) {
			r := newRig(b, Config{})
			pub := r.connect()
			var subs []*peer
			for range subscribers {
				s := r.connect()
				s.send(request("s1", "commbus", "Subscribe", `{"event_types":["a.b"]}`))
				subs = append(subs, s)
			}
			const depth = 16
			var in []byte
			for range depth {
				in = append(in, request("00000001", "commbus", "Publish", `{"event_type":"a.b","payload":"{\"n\":1}","source":"t"}`)...)
			}
			out := make([]byte, 0, 1<<20)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += depth {
				_, out, _ = pub.s.Feed(in, out[:0], r.now)
				for _, s := range subs {
					s.port.Rearm()
					s.out, _ = s.s.Pump(s.out[:0], r.now)
				}
			}
			if subscribers > 0 {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(subscribers), "ns/chunk")
			}
		})
	}
}
