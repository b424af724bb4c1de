package stream

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit/linktest"
)

// slowTaker is a peer that takes rate bytes per second and sends one batch of requests.
type slowTaker struct {
	rate   int
	in     io.Reader
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	taken []byte
}

func newSlowTaker(rate int, requests ...[]byte) *slowTaker {
	return &slowTaker{rate: rate, in: bytes.NewReader(bytes.Join(requests, nil)), closed: make(chan struct{})}
}

func (s *slowTaker) Read(p []byte) (int, error) {
	if n, err := s.in.Read(p); err == nil {
		return n, nil
	}
	<-s.closed
	return 0, io.ErrClosedPipe
}

func (s *slowTaker) Write(p []byte) (int, error) {
	select {
	case <-s.closed:
		return 0, io.ErrClosedPipe
	case <-time.After(time.Duration(len(p)) * time.Second / time.Duration(s.rate)):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(s.taken, p...)
	return len(p), nil
}

func (s *slowTaker) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *slowTaker) bytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.taken)
}

func serveSlowly(t *testing.T, s *slowTaker, f func(h *Host)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.closed = make(chan struct{}) // of the bubble
		h, _ := newHost(t, func(c *Config) { withTimers(&c.Limits) })
		time.Sleep(137 * time.Millisecond) // off the janitor's beat
		go func() { _ = h.Serve(s, "slow") }()
		f(h)
		_ = h.Close(context.Background())
	})
}

func TestSlowReaderOfSmallFramesSurvives(t *testing.T) {
	const frames = 100
	s := newSlowTaker(2<<10, bytes.Repeat(linktest.Sized('b', 1000), frames)) // 64 KiB take 32 s
	serveSlowly(t, s, func(h *Host) {
		want := frames * (linktest.HeaderBytes + 1 + 1000)
		time.Sleep(time.Duration(want/s.rate+1) * time.Second)
		synctest.Wait()
		if n := s.bytes(); n != want {
			t.Errorf("a steady reader got %d of %d bytes; closed: %v", n, want, h.Snapshot().Closed)
		}
	})
}

// TestAPeerThatTakesNothingIsCut: this one takes a piece in longer than the time.
func TestAPeerThatTakesNothingIsCut(t *testing.T) {
	s := newSlowTaker(1<<10, linktest.Sized('b', 5<<20))
	serveSlowly(t, s, func(h *Host) {
		start := time.Now()
		<-s.closed
		if d := time.Since(start); d < write || d > write+time.Second {
			t.Errorf("cut after %v, want [T, T+1 s] for T = %v", d, write)
		}
		synctest.Wait()
		if n := h.Snapshot().Closed[connection.ReasonWrite]; n != 1 {
			t.Errorf("closed %v", h.Snapshot().Closed)
		}
	})
}

// TestALargeFrameMayTakeItsTime sends frames that take 8 s each, and one that takes 30.
func TestALargeFrameMayTakeItsTime(t *testing.T) {
	const size = 80_000
	const large = 300_000
	s := newSlowTaker(10_000, bytes.Repeat(linktest.Sized('b', size), 5), linktest.Sized('b', large))
	serveSlowly(t, s, func(h *Host) {
		time.Sleep(72 * time.Second)
		if n, want := s.bytes(), 6*(linktest.HeaderBytes+1)+5*size+large; n != want {
			t.Errorf("%d of %d bytes; closed: %v", n, want, h.Snapshot().Closed)
		}
	})
}
