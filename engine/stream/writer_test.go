package stream

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/internal/linktest"
	"trunkline/engine/link"
)

// frameLen reads linktest's prefix.
func frameLen(b []byte) int {
	if len(b) < linktest.HeaderBytes {
		return 0
	}
	return linktest.HeaderBytes + int(binary.BigEndian.Uint32(b))
}

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
	serveSlowlyWith(t, s, func(*link.Limits) {}, f)
}

func serveSlowlyWith(t *testing.T, s *slowTaker, change func(*link.Limits), f func(h *Host)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.closed = make(chan struct{}) // of the bubble
		h, _ := newHost(t, func(c *Config) {
			withTimers(&c.Limits)
			c.Limits.FrameLen = frameLen
			change(&c.Limits)
		})
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

func TestDribblingFrameIsCut(t *testing.T) {
	s := newSlowTaker(16<<10, linktest.Frame('e', "small"), linktest.Sized('b', 5<<20))
	serveSlowly(t, s, func(h *Host) {
		start := time.Now()
		<-s.closed
		if d := time.Since(start); d < write || d > write+time.Second {
			t.Errorf("cut after %v, want [T, T+1 s] for T = %v", d, write)
		}
		synctest.Wait()
		if n := h.Snapshot().Closed[ReasonWrite]; n != 1 {
			t.Errorf("closed %v", h.Snapshot().Closed)
		}
	})
}

// TestEachLargeFrameHasItsOwnTime sends frames that take 8 s each.
func TestEachLargeFrameHasItsOwnTime(t *testing.T) {
	const size = 80_000
	s := newSlowTaker(10_000, bytes.Repeat(linktest.Sized('b', size), 5))
	serveSlowly(t, s, func(h *Host) {
		time.Sleep(42 * time.Second)
		if n, want := s.bytes(), 5*(linktest.HeaderBytes+1+size); n != want {
			t.Errorf("%d of %d bytes; closed: %v", n, want, h.Snapshot().Closed)
		}
	})
}

// TestPieces says where the socket's pieces end.
func TestPieces(t *testing.T) {
	h, _ := newHost(t, func(c *Config) { c.Limits.FrameLen = frameLen })
	f := func(front int, want []int, sizes ...int) {
		t.Helper()
		b := make([]byte, front)
		for _, n := range sizes {
			b = linktest.Append(b, 'b', make([]byte, n-linktest.HeaderBytes-1))
		}
		c := h.bareConn(newSlowTaker(1), h.NewPort(""))
		c.front = front
		for i, w := range want {
			n := c.piece(b)
			if n != w {
				t.Fatalf("piece %d of %v after %d bytes has %d bytes, want %d", i, sizes, front, n, w)
			}
			c.took(b, n)
			b = b[n:]
		}
		if len(b) > 0 || c.front != 0 {
			t.Fatalf("%d bytes left, %d of a frame", len(b), c.front)
		}
	}
	f(0, []int{30}, 10, 20)
	f(0, []int{sendPiece}, sendPiece)
	f(0, []int{sendPiece}, sendPiece-10, 10)
	f(0, []int{sendPiece - 10, 11}, sendPiece-10, 11)
	f(0, []int{10, sendPiece, 21}, 10, sendPiece+1, 20)
	f(7, []int{17}, 10)
	f(sendPiece+7, []int{sendPiece, 17}, 10)
	f(7, []int{7, sendPiece, 1}, sendPiece+1)
}

// TestAShortWriteKeepsTheFrame: a transport that takes less than it was given is followed wherever it stops.
func TestAShortWriteKeepsTheFrame(t *testing.T) {
	h, _ := newHost(t, func(c *Config) { c.Limits.FrameLen = frameLen })
	b := append(linktest.Frame('e', "one"), linktest.Frame('e', "three")...)
	one := len(linktest.Frame('e', "one"))
	for n := 1; n <= len(b); n++ {
		c := h.bareConn(newSlowTaker(1), h.NewPort(""))
		c.sendFrom = 1
		c.piece(b)
		c.took(b, n)
		want := one - n
		if n > one {
			want = len(b) - n
		}
		if c.front != want || (c.sendFrom == 0) != (n >= one) {
			t.Errorf("%d taken: %d of the frame left, timer from %d", n, c.front, c.sendFrom)
		}
	}
}

func TestAdoptedCutFrameIsOneFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, book := newHost(t, func(c *Config) {
			withTimers(&c.Limits)
			c.Limits.FrameLen = frameLen
		})
		s := newSlowTaker(10_000) // 85,000 bytes of a cut frame, then as much again: 8.5 s each
		whole := linktest.Append(nil, 'b', make([]byte, 84_995))
		h.cfg.Gate.Admit()
		port := h.NewPort("loop")
		cut := make([]byte, 85_000)
		for i := range cut {
			cut[i] = 0xff // read as a prefix it would tell nonsense
		}
		h.Adopt(s, Adopted{Port: port, Session: book.Open(port), Unsent: append(cut, whole...), Cut: len(cut)})
		time.Sleep(18 * time.Second)
		if n := s.bytes(); n != len(cut)+len(whole) {
			t.Errorf("%d of %d bytes; closed: %v", n, len(cut)+len(whole), h.Snapshot().Closed)
		}
		_ = h.Close(context.Background())
	})
}
