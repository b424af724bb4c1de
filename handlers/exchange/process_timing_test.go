package exchange

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// envelopeOf returns an envelope with about n bytes of outputs.
func envelopeOf(n int) string {
	return `{"envelope_id":"env_00000000000000a1","request_id":"req_00000000000000b2","user_id":"u1","session_id":"sess_00000000000000c3",` +
		`"raw_input":"trace login","received_at":"2025-12-10T10:00:00Z","current_stage":"start","terminated":false,` +
		`"outputs":{"perception":{"normalized_input":"` + strings.Repeat("x", n) + `"}}}`
}

var sizes = []int{0, 4 << 10, 64 << 10, 1 << 20}

// BenchmarkHTTP: what does one engine step cost over one kept connection, both ends of the socket
// included?
func BenchmarkHTTP(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			_, addr := start(b, HTTPConfig{}, nil)
			p := dial(b, addr)
			if err := p.SetDeadline(time.Time{}); err != nil {
				b.Fatal(err)
			}
			body := envelopeOf(n)
			request := fmt.Appendf(nil, "POST /api/v1/process HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			p.post(body)
			first := p.wantEnvelope("warm-up", "intent")
			buf := make([]byte, 64<<10)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Write(request); err != nil {
					b.Fatal(err)
				}
				skipReply(b, p, len(first.body), buf)
			}
		})
	}
}

// skipReply reads one reply with a body of n bytes without allocating.
func skipReply(b *testing.B, p *peer, n int, buf []byte) {
	for {
		line, err := p.in.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		if len(line) == len("\r\n") {
			break
		}
	}
	for n > 0 {
		m, err := p.in.Read(buf[:min(n, len(buf))])
		if err != nil {
			b.Fatal(err)
		}
		n -= m
	}
}

// BenchmarkCommand: what does the process command cost apart from starting a process?
func BenchmarkCommand(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			body := []byte(envelopeOf(n))
			opt := testOptions()
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if Command("process", bytes.NewReader(body), io.Discard, io.Discard, opt) != 0 {
					b.Fatal("failed")
				}
			}
		})
	}
}
