package connection

import (
	"sync"
	"testing"
)

// counting is an owner that remembers how often it was woken.
type counting struct {
	mu sync.Mutex
	n  int
}

func (c *counting) Wake(*Port) {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
}

func (c *counting) woken() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func TestWakeIsOneCallUntilRearmed(t *testing.T) {
	p, o := NewPort(7, "peer"), &counting{}
	p.SetOwner(o)
	p.Wake()
	p.Wake()
	if got := o.woken(); got != 1 {
		t.Fatalf("two wakes reached the owner %d times, want 1", got)
	}
	p.Rearm()
	p.Wake()
	if got := o.woken(); got != 2 {
		t.Fatalf("a wake after Rearm: %d calls in all, want 2", got)
	}
	if p.ID() != 7 || p.Remote() != "peer" {
		t.Fatalf("got %d %q", p.ID(), p.Remote())
	}
}

func TestWakeWithoutOwnerReachesTheNextOne(t *testing.T) {
	p, o := NewPort(1, ""), &counting{}
	p.Wake()
	p.SetOwner(o)
	if got := o.woken(); got != 1 {
		t.Fatalf("the wake before there was an owner: %d calls, want 1", got)
	}
	p.Rearm()
	p.SetOwner(nil)
	p.Wake() // without an owner it does nothing
}

// TestNoWakeIsLostAcrossAChangeOfOwner lets wakes race with changes of owner: the one that owns the
// port in the end must know.
func TestNoWakeIsLostAcrossAChangeOfOwner(t *testing.T) {
	for range 2000 {
		p, first, second := NewPort(1, ""), &counting{}, &counting{}
		p.SetOwner(first)
		var wg sync.WaitGroup
		wg.Go(p.Wake)
		wg.Go(func() { p.SetOwner(second) })
		wg.Wait()
		if second.woken() == 0 {
			t.Fatal("the new owner missed the wake")
		}
	}
}

func TestNumber(t *testing.T) {
	f := func(l Listener, name string, id uint64, is bool) {
		t.Helper()
		if got, ok := l.Number(name); ok != is || is && got != id {
			t.Errorf("%+v %q: %d %v, want %d %v", l, name, got, ok, id, is)
		}
	}
	ipc := Listener{Name: "ipc"}
	f(ipc, NewPort(12, "").From(&ipc).Name(), 12, true)
	f(Listener{}, NewPort(7, "").Name(), 7, true)
	f(ipc, "ipc-18446744073709551615", 1<<64-1, true)
	for _, name := range []string{"", "ipc", "ipc-", "ipc-x", "ipc--1", "ipc-+1", "ipc-1 ", "ipc-18446744073709551616", "http-1", "1"} {
		f(ipc, name, 0, false)
	}
}
