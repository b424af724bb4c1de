//go:build !race

package load

import (
	"bytes"
	"testing"
)

// TestClosedLoopDoesNotAllocate: a batch of replies and the requests after it, by every framing.
func TestClosedLoopDoesNotAllocate(t *testing.T) {
	f := func(cfg Config, reply string, most float64) {
		t.Helper()
		tape := new(Tape)
		tape.AddFresh([]byte("create " + Placeholder))
		tape.Add([]byte("end " + Placeholder))
		tape.seal(64)
		w := &worker{s: &Session{cfg: cfg}}
		w.s.recording.Store(true)
		c := &pipeline{tape: tape, batches: make([]batch, 65)}
		replies := bytes.Repeat([]byte(reply), 64)
		n := testing.AllocsPerRun(100, func() {
			c.push(batch{at: 1, n: 64})
			tape.take(64)
			c.inflight += 64
			if used, n, _, err := w.s.cfg.Protocol(&w.s.cfg, replies); used != len(replies) || n != 64 || err != nil {
				t.Fatal(used, n, err)
			}
			w.settle(c, 64, 100)
		})
		if n > most {
			t.Errorf("%v allocations per batch of 64 replies %q, want %v", n, reply, most)
		}
	}
	f(Config{Protocol: Kernel}, "\x00\x00\x00\x0c\x02\x83\xa2id\xa2r1\xa2ok\xc3", 0)
	f(Config{Protocol: Lines, Reply: 3}, "ok\n", 0)
	f(Config{Protocol: Lines, Good: "ok", Greeted: "hi", Event: "x"}, "ok\n", 0)
	f(Config{Protocol: RESP}, "$2\r\nok\r\n", 0)
	f(Config{Protocol: NATS}, "MSG _INBOX.3 1 2\r\nok\r\n", 0)
	f(Config{Protocol: HTTP}, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 1)
}
