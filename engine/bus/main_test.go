package bus

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// port counts its wake-ups.
type port struct{ wakes atomic.Int64 }

func (p *port) Wake() { p.wakes.Add(1) }

func gapText(dst []byte, dropped uint64) []byte { return fmt.Appendf(dst, "gap:%d", dropped) }

func newBus(t testing.TB, cfg Config) *Bus {
	t.Helper()
	cfg.GapBody = gapText
	b := New(cfg)
	t.Cleanup(b.Close)
	return b
}

// held is what a message with one of the small bodies of these tests is charged.
const held = 128 + perMessage

// total is a bound of which streams with a backlog may hold n messages, and not another byte.
func total(n int64) int64 {
	bound := n * held
	for bound-bound/reserved < n*held {
		bound++
	}
	return bound
}

func message(b *Bus, body string) *Message {
	m := b.NewMessage(len(body))
	m.Body = append(m.Body, body...)
	return m
}

func publish(b *Bus, typ, body string) int { return b.Publish([]byte(typ), message(b, body)) }

// popN pops up to n messages and joins their bodies by blanks.
func popN(s *Stream, n int) string {
	var bodies []string
	for range n {
		m := s.Pop()
		if m == nil {
			break
		}
		bodies = append(bodies, string(m.Body))
		m.Release()
	}
	return strings.Join(bodies, " ")
}

func popAll(s *Stream) string { return popN(s, 1<<30) }

func wantPop(t *testing.T, why string, s *Stream, want string) {
	t.Helper()
	if got := popAll(s); got != want {
		t.Errorf("%s: popped %q, want %q", why, got, want)
	}
	if s.Pending() {
		t.Errorf("%s: still pending after Pop returned nil", why)
	}
}

func wantDelivered(t *testing.T, why string, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%s: delivered %d, want %d", why, got, want)
	}
}

func wantBuffered(t *testing.T, b *Bus, want int64) {
	t.Helper()
	if got := b.Stats().BufferedBytes; got != want {
		t.Errorf("BufferedBytes = %d, want %d", got, want)
	}
}
