package connection

import (
	"sync"
	"sync/atomic"
	"testing"
)

// member is the owner of a port on a loop.
type member struct {
	counting
	loop *Loop
}

func (m *member) Loop() *Loop { return m.loop }

// bells is a loop that counts its wake-ups, with n ports.
func bells(n int) (l *Loop, rung *atomic.Int64, ports []*Port, owners []*member) {
	rung = new(atomic.Int64)
	l = NewLoop(func() { rung.Add(1) })
	for i := range n {
		p, o := NewPort(uint64(i), "peer"), &member{loop: l}
		p.SetOwner(o)
		ports, owners = append(ports, p), append(owners, o)
	}
	return l, rung, ports, owners
}

func wantWoken(t *testing.T, owners []*member, want ...int) {
	t.Helper()
	for i, o := range owners {
		if got := o.woken(); got != want[i] {
			t.Fatalf("port %d was woken %d times, want %d", i, got, want[i])
		}
	}
}

func TestALoopIsWokenOnceForAllItsPorts(t *testing.T) {
	var w Watermark
	l, rung, ports, owners := bells(3)
	ports[0].Await(&w, 5)
	ports[1].Await(&w, 4)
	ports[2].Await(&w, 9)
	ports[1].Await(&w, 6) // the last call counts
	if w.Reach(3); rung.Load() != 0 {
		t.Fatal("woken although no port waits for so little")
	}
	if w.Reach(7); rung.Load() != 1 {
		t.Fatalf("%d wake-ups, want 1", rung.Load())
	}
	wantWoken(t, owners, 0, 0, 0)
	l.BeginRound()
	l.EndRound()
	wantWoken(t, owners, 1, 1, 0)
	w.Reach(8)
	l.BeginRound()
	l.EndRound()
	wantWoken(t, owners, 1, 1, 0)
	w.Reach(9)
	l.BeginRound()
	l.EndRound()
	wantWoken(t, owners, 1, 1, 1)
	if rung.Load() != 2 || len(l.waiting) != 0 || len(w.loops) != 0 {
		t.Fatalf("%d wake-ups, %d ports and %d loops left, want 2, 0, 0", rung.Load(), len(l.waiting), len(w.loops))
	}
}

func TestAwaitOfAReachedIndexWakes(t *testing.T) {
	var w Watermark
	l, rung, ports, owners := bells(1)
	w.Reach(5)
	ports[0].Await(&w, 5)
	if rung.Load() != 1 {
		t.Fatal("a port waits for what has come")
	}
	l.BeginRound()
	wantWoken(t, owners, 1)
	w.Reach(2) // a late report
	if w.At() != 5 {
		t.Fatalf("the number fell to %d", w.At())
	}
}

func TestAPortThatLeavesItsLoopWaitsNoMore(t *testing.T) {
	var w Watermark
	l, _, ports, owners := bells(3)
	for i, p := range ports {
		p.Await(&w, uint64(i+1))
	}
	ports[0].SetOwner(nil)
	alone := &counting{}
	ports[1].SetOwner(alone)
	w.Reach(1)
	l.BeginRound()
	l.EndRound()
	wantWoken(t, owners, 0, 0, 0)
	ports[1].Await(&w, 2)
	ports[1].Await(&w, 4)
	w.Reach(3)
	l.BeginRound()
	wantWoken(t, owners, 0, 0, 1)
	if alone.woken() != 0 {
		t.Fatal("woken before the last index it waits for")
	}
	if w.Reach(4); alone.woken() != 1 {
		t.Fatal("a port without a loop was not woken")
	}
}

// endings counts the ends of rounds.
type endings struct {
	n    int
	soon bool
}

func (e *endings) RoundEnded() (soon bool) {
	e.n++
	return e.soon
}

func TestHooksRunOnceAtTheEndOfARound(t *testing.T) {
	l, rung, ports, _ := bells(2)
	var a, b endings
	for _, p := range ports {
		p.AtRoundEnd(&a)
		p.AtRoundEnd(&b)
	}
	if a.n+b.n != 0 || rung.Load() == 0 {
		t.Fatalf("ran %d and %d times before the end, with %d wake-ups", a.n, b.n, rung.Load())
	}
	before := rung.Load()
	l.BeginRound()
	ports[0].AtRoundEnd(&a) // in a round: no wake-up is needed
	l.EndRound()
	if a.n != 1 || b.n != 1 || rung.Load() != before {
		t.Fatalf("ran %d and %d times, want 1 and 1, with %d more wake-ups", a.n, b.n, rung.Load()-before)
	}
	l.BeginRound()
	l.EndRound()
	ports[0].AtRoundEnd(&a)
	if a.n != 1 || rung.Load() != before+1 {
		t.Fatal("a hook ran again unasked, or a later one was not heard")
	}
	ports[1].SetOwner(&counting{})
	if ports[1].AtRoundEnd(&b); b.n != 2 {
		t.Fatal("without a loop the round is the call")
	}
}

func TestEndRoundReportsWhatComesSoon(t *testing.T) {
	l, _, ports, _ := bells(2)
	for _, c := range []struct {
		hooks []*endings
		want  bool
	}{{nil, false}, {[]*endings{{}}, false}, {[]*endings{{soon: true}, {}}, true}, {[]*endings{{}, {soon: true}}, true}} {
		for _, e := range c.hooks {
			ports[0].AtRoundEnd(e)
		}
		if l.EndRound() != c.want {
			t.Errorf("%d hooks: soon is not %t", len(c.hooks), c.want)
		}
	}
	var w Watermark
	ports[0].Await(&w, 1)
	ports[1].Await(&w, 2)
	ports[1].Await(&w, 3)
	if n := l.Awaits(); n != 3 {
		t.Errorf("%d calls of Await, want 3", n)
	}
}

func TestRoundsDoNotAllocate(t *testing.T) {
	var w Watermark
	l, _, ports, _ := bells(8)
	var e endings
	n := uint64(0)
	round := func() {
		n++
		for _, p := range ports {
			p.AtRoundEnd(&e)
			p.Await(&w, n)
		}
		w.Reach(n)
		l.BeginRound()
		l.EndRound()
		for _, p := range ports {
			p.Rearm()
		}
	}
	round()
	if got := testing.AllocsPerRun(100, round); got != 0 {
		t.Fatalf("%v allocations a round, want 0", got)
	}
}

// TestNoWakeUpIsLost has loops wait for every index that a writer reaches, one after the other.
func TestNoWakeUpIsLost(t *testing.T) {
	const loops, last = 4, 5000
	var w Watermark
	var asked atomic.Uint64
	news := make(chan struct{}, 1)
	var done sync.WaitGroup
	for range loops {
		rung := make(chan struct{}, 1)
		l := NewLoop(func() {
			select {
			case rung <- struct{}{}:
			default:
			}
		})
		o := &member{loop: l}
		p := NewPort(1, "peer")
		p.SetOwner(o)
		done.Go(func() {
			for n := asked.Add(1); n <= last; n = asked.Add(1) {
				p.Await(&w, n)
				select {
				case news <- struct{}{}:
				default:
				}
				for before := o.woken(); o.woken() == before; {
					<-rung
					l.BeginRound()
					l.EndRound()
				}
				p.Rearm()
				if w.At() < n {
					t.Errorf("woken at %d for %d", w.At(), n)
				}
			}
		})
	}
	stop := make(chan struct{})
	go func() { done.Wait(); close(stop) }()
	for {
		select {
		case <-news:
			w.Reach(asked.Load())
		case <-stop:
			return
		}
	}
}
