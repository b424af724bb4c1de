package conformance

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/codec/wire"
	"trunkline/fuzz/kit/ipctest"
	"trunkline/handlers/ipc/ipcclient"
)

// crowd starts a server and n connections to it.
func crowd(t *testing.T, n int, opts ...ipctest.Option) []*ipcclient.Conn {
	t.Helper()
	srv := ipctest.Start(t, opts...)
	conns := make([]*ipcclient.Conn, n)
	for i := range conns {
		c, err := ipcclient.Dial(t.Context(), srv.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		conns[i] = c
	}
	return conns
}

// code returns the code a call was refused with, wire.OK without an error.
func code(t *testing.T, err error) wire.Code {
	t.Helper()
	var said *ipcclient.Error
	if err != nil && !errors.As(err, &said) {
		t.Errorf("not an answer: %v", err)
		return wire.Internal
	}
	if err == nil {
		return wire.OK
	}
	return said.Code
}

// atOnce runs f for every connection side by side and returns the codes, sorted.
func atOnce(t *testing.T, conns []*ipcclient.Conn, f func(i int, c *ipcclient.Conn) error) []wire.Code {
	t.Helper()
	codes := make([]wire.Code, len(conns))
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() {
			<-begin
			codes[i] = code(t, f(i, c))
		})
	}
	close(begin)
	wg.Wait()
	slices.Sort(codes)
	return codes
}

// TestOneOfManyTransitionsSucceeds: of N simultaneous READY → RUNNING exactly one succeeds
// (kernel-ipc §5.1).
func TestOneOfManyTransitionsSucceeds(t *testing.T) {
	conns := crowd(t, 16)
	for round := range 10 {
		pid := fmt.Sprint("p", round)
		if _, err := conns[0].CreateProcess(t.Context(), ipcclient.CreateProcess{PID: pid, UserID: pid}); err != nil {
			t.Fatal(err)
		}
		codes := atOnce(t, conns, func(_ int, c *ipcclient.Conn) error {
			_, err := c.TransitionState(t.Context(), ipcclient.TransitionState{PID: pid, NewState: "RUNNING"})
			return err
		})
		if codes[0] != wire.OK || codes[1] != wire.FailedPrecondition || codes[len(codes)-1] != wire.FailedPrecondition {
			t.Fatalf("got %v", codes)
		}
	}
}

// TestOneOfManyCreatesSucceeds: a create is never merged with an existing process (kernel-ipc D19).
func TestOneOfManyCreatesSucceeds(t *testing.T) {
	conns := crowd(t, 16)
	codes := atOnce(t, conns, func(i int, c *ipcclient.Conn) error {
		_, err := c.CreateProcess(t.Context(), ipcclient.CreateProcess{PID: "p", UserID: fmt.Sprint("u", i)})
		return err
	})
	if codes[0] != wire.OK || codes[1] != wire.FailedPrecondition {
		t.Fatalf("got %v", codes)
	}
}

// TestExactlyTheLimitSucceeds: for N concurrent callers exactly the limit is allowed (kernel-ipc
// §4.9).
func TestExactlyTheLimitSucceeds(t *testing.T) {
	now := new(clock)
	conns := crowd(t, 16, ipctest.With(func(c *ipctest.Config) { c.Now = now.now }))
	var allowed atomic.Int64
	atOnce(t, conns, func(_ int, c *ipcclient.Conn) error {
		for range 5 {
			d, err := c.CheckRateLimit(t.Context(), ipcclient.CheckRateLimit{UserID: "u", Record: true})
			if err != nil {
				return err
			}
			if d.Allowed {
				allowed.Add(1)
			}
		}
		return nil
	})
	if got := allowed.Load(); got != 10 {
		t.Fatalf("%d were allowed, want 10", got)
	}
}

// TestEveryProcessIsHandedOutOnce: concurrent takers never get the same process, and all processes
// are taken (kernel-ipc §4.4).
func TestEveryProcessIsHandedOutOnce(t *testing.T) {
	conns := crowd(t, 8)
	const each = 9 // below the burst limit
	atOnce(t, conns, func(i int, c *ipcclient.Conn) error {
		for k := range each {
			if _, err := c.CreateProcess(t.Context(), ipcclient.CreateProcess{PID: fmt.Sprint(i, "-", k), UserID: fmt.Sprint("u", i)}); err != nil {
				return err
			}
		}
		return nil
	})
	var mu sync.Mutex
	taken := map[string]int{}
	atOnce(t, conns, func(_ int, c *ipcclient.Conn) error {
		for {
			p, err := c.GetNextRunnable(t.Context(), true)
			if err != nil {
				return err
			}
			mu.Lock()
			taken[p.PID]++
			mu.Unlock()
		}
	})
	if len(taken) != each*len(conns) {
		t.Fatalf("%d of %d processes were handed out", len(taken), each*len(conns))
	}
	for pid, n := range taken {
		if n != 1 {
			t.Errorf("%s was handed out %d times", pid, n)
		}
	}
}

// TestUsageAddsUp: concurrent RecordUsage calls lose nothing (kernel-ipc §4.8).
func TestUsageAddsUp(t *testing.T) {
	conns := crowd(t, 8)
	if _, err := conns[0].CreateProcess(t.Context(), ipcclient.CreateProcess{PID: "p"}); err != nil {
		t.Fatal(err)
	}
	atOnce(t, conns, func(_ int, c *ipcclient.Conn) error {
		for range 50 {
			if _, err := c.RecordUsage(t.Context(), ipcclient.RecordUsage{PID: "p", LLMCalls: 1, TokensIn: 3}); err != nil {
				return err
			}
		}
		return nil
	})
	p, err := conns[0].GetProcess(t.Context(), "p")
	if err != nil || p.Usage.LLMCalls != 400 || p.Usage.TokensIn != 1200 {
		t.Fatalf("got %+v, %v", p.Usage, err)
	}
}

// TestAnnouncedLengthReservesNothing: a hundred connections that announce five megabytes and send
// one byte cost next to nothing (kernel-ipc D9).
func TestAnnouncedLengthReservesNothing(t *testing.T) {
	srv := ipctest.Start(t)
	before := heap()
	const n = 100
	for range n {
		nc, err := net.Dial("tcp", srv.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		if err := whole(nc, []byte{0x00, 0x50, 0x00, 0x00, 0x01}); err != nil {
			t.Fatal(err)
		}
	}
	probe, err := ipcclient.Dial(t.Context(), srv.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { probe.Close() })
	for range 50 { // let every loop come round
		if _, err := probe.GetProcessCounts(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	const perConn = 64 << 10
	if grown := heap() - before; grown > n*perConn {
		t.Fatalf("the heap grew by %d bytes for %d announced frames", grown, n)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
