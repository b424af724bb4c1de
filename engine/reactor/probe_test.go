package reactor

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/engine/connection"
)

// stuck is a session whose Feed does not return before it is let go.
type stuck struct {
	entered, leave chan struct{}
	done           atomic.Bool
}

func (s *stuck) Feed(in, out []byte, _ connection.Instant) (int, []byte, connection.Verdict) {
	close(s.entered)
	<-s.leave
	return len(in), out, connection.More
}

func (s *stuck) Pump(out []byte, _ int, _ connection.Instant) ([]byte, bool) { return out, false }
func (s *stuck) EOF(connection.Instant)                                      { s.done.Store(true) }
func (s *stuck) Drain(connection.Instant)                                    { s.done.Store(true) }
func (s *stuck) Load() connection.Load                                       { return connection.Load{Done: s.done.Load()} }
func (s *stuck) Closed()                                                     {}

func TestProbeFindsALoopThatIsStuck(t *testing.T) {
	sess := &stuck{entered: make(chan struct{}), leave: make(chan struct{})}
	s := start(t, "tcp", func(c *Config) {
		c.Loops = 1
		c.Open = func(*connection.Port) connection.Session { return sess }
	})
	for range 3 {
		if err := s.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p := s.dial()
	p.send([]byte("x"))
	<-sess.entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Probe(ctx); err == nil || !strings.Contains(err.Error(), "event loop 1 of 1") {
		t.Errorf("a loop that is stuck: %v", err)
	}
	close(sess.leave)
	if err := s.Probe(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheLimitOfConnectionsChanges(t *testing.T) {
	s := start(t, "tcp", func(c *Config) {
		c.MaxConnections = 1
		c.Refuse = func(dst []byte) []byte { return append(dst, "full"...) }
	})
	first := s.dial()
	first.session()
	refused := func() {
		t.Helper()
		b := make([]byte, 4)
		if n, err := s.dial().c.Read(b); err != nil || string(b[:n]) != "full" {
			t.Errorf("one too many: %q, %v", b[:n], err)
		}
	}
	refused()
	s.SetMaxConnections(2)
	s.dial().session()
	refused()
	s.SetMaxConnections(1)
	first.session() // what is there stays
	refused()
}
