package workers

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/handlers/toolhost/tool"
)

// TestMaxIsOfProcesses: a tool that must be alone, with Max 1, is so while one worker follows
// another. Idle and MaxRequests retire politely, and the worker takes its time to end.
func TestMaxIsOfProcesses(t *testing.T) {
	f := func(pool tool.Pool, behaviour string) {
		t.Helper()
		var mu sync.Mutex
		last := 0
		r := newRig(t, func(c *ProcessConfig) {
			record := c.Started
			c.Pool = pool
			c.Started = func(pid int) {
				record(pid)
				mu.Lock()
				defer mu.Unlock()
				if last != 0 && !errors.Is(syscall.Kill(last, 0), syscall.ESRCH) {
					t.Errorf("%s: process %d was started while %d was there", behaviour, pid, last)
				}
				last = pid
			}
		}, behaviour)
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() {
				for range 3 {
					r.call(20*time.Second, "{}", nil)
				}
			})
		}
		callers.Wait()
		if r.started() < 3 {
			t.Errorf("%s: %d processes, nothing was tried", behaviour, r.started())
		}
	}
	f(tool.Pool{Max: 1, MaxRequests: 1, Idle: time.Minute}, "linger")
	f(tool.Pool{Max: 1, MaxRequests: 2, Idle: time.Minute}, "linger")
	f(tool.Pool{Max: 1, Idle: time.Minute}, "garbage")
}

// TestForsaken: Max processes that do not end though they were killed do not keep their tool from
// running; one more does, so that their number is bounded, until the kernel ends one of them.
func TestForsaken(t *testing.T) {
	r := newRig(t, func(c *ProcessConfig) { c.Pool.Max = 1 }, "good")
	p := &r.pool
	stuck := func() *worker { // as after a kill that does not work
		t.Helper()
		w, err := p.take(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		w.retired = true
		p.ending++
		p.mu.Unlock()
		return w
	}
	full := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if _, err := p.take(ctx); err != errNoWorker {
			t.Errorf("%v, want no worker", err)
		}
	}
	first := stuck()
	full()
	p.forsake(first)
	second := stuck()
	p.forsake(second)
	full()
	if n := r.Workers(); n != 2 {
		t.Errorf("%d processes", n)
	}
	first.kill(reasonClosed)
	r.ended(1)
	p.forsake(first) // too late: nothing happens
	full()
	p.forsake(second)
	r.want(good)
	second.kill(reasonClosed)
	r.ended(2)
	first.closePipes()
	second.closePipes()
	r.want(good)
	if n := r.Workers(); n != 1 {
		t.Errorf("%d processes", n)
	}
}
