package bus

import (
	"strings"
	"testing"
)

// fill publishes the bodies to type "a" and returns the sum of delivered.
func fill(b *Bus, bodies string) (delivered int) {
	for _, body := range strings.Fields(bodies) {
		delivered += publish(b, "a", body)
	}
	return delivered
}

func TestStreamBounds(t *testing.T) {
	f := func(why string, cfg Config, overhead int, bodies string, wantTaken int, want string) {
		t.Helper()
		b := newBus(t, cfg)
		s := b.Subscribe(&port{}, []string{"a"}, overhead)
		wantDelivered(t, why, fill(b, bodies), wantTaken)
		wantPop(t, why, s, want)
		wantBuffered(t, b, 0)
		if got, want := b.Stats().DroppedEvents, int64(len(strings.Fields(bodies))-wantTaken); got != want {
			t.Errorf("%s: DroppedEvents = %d, want %d", why, got, want)
		}
	}
	f("entries at the bound", Config{StreamBufferEvents: 3}, 0, "1 2 3", 3, "1 2 3")
	f("entries over the bound", Config{StreamBufferEvents: 3}, 0, "1 2 3 4 5", 3, "1 2 3 gap:2")
	f("one entry", Config{StreamBufferEvents: 1}, 0, "1 2", 1, "1 gap:1")
	f("bytes at the bound", Config{StreamBufferBytes: 6}, 0, "aaa bbb", 2, "aaa bbb")
	f("bytes over the bound", Config{StreamBufferBytes: 6}, 0, "aaa bbb c", 2, "aaa bbb gap:1")
	f("a smaller one after a gap fits", Config{StreamBufferBytes: 6}, 0, "aaa bbbb ccc", 2, "aaa gap:1 ccc")
	f("one body over the byte bound", Config{StreamBufferBytes: 2}, 0, "aaa b", 1, "gap:1 b")
	f("frame at the bound", Config{MaxBody: 10}, 4, "123456", 1, "123456")
	f("frame over the bound", Config{MaxBody: 10}, 4, "1234567", 0, "gap:1")
	f("too large between others", Config{MaxBody: 10}, 4, "1 2222222 3", 2, "1 gap:1 3")
	f("gaps in two places", Config{MaxBody: 10}, 4, "1234567 1 1234567 1234567 2 1234567", 2, "gap:1 1 gap:2 2 gap:1")
	f("a marker over the frame bound stays away", Config{MaxBody: 10}, 8, "1 333 2", 2, "1 2")
	f("only a marker over the frame bound", Config{MaxBody: 10}, 8, "333", 0, "")
	f("total at the bound", Config{StreamBufferTotalBytes: total(2)}, 0, "aaa bbb", 2, "aaa bbb")
	f("total just over the bound", Config{StreamBufferTotalBytes: total(2) - 1}, 0, "aaa bbb", 1, "aaa gap:1")
	f(
		"total over the bound with a backlog",
		Config{StreamBufferTotalBytes: total(2)},
		0,
		"aaa bbb c",
		2,
		"aaa bbb gap:1",
	)
	f("total over the bound without a backlog", Config{StreamBufferTotalBytes: held - 1}, 0, "aaa b", 0, "gap:2")
	f("total at the bound without a backlog", Config{StreamBufferTotalBytes: held}, 0, "aaa b", 1, "aaa gap:1")
}

func TestGapGoesWhereEventsAreMissing(t *testing.T) {
	b := newBus(t, Config{StreamBufferEvents: 2})
	p := &port{}
	s := b.Subscribe(p, []string{"a"}, 0)
	fill(b, "1 2 lost lost")
	if got := popN(s, 1); got != "1" {
		t.Fatalf("popped %q, want 1", got)
	}
	wantDelivered(t, "room for one", fill(b, "3"), 1)
	wantDelivered(t, "full again: the marker takes no entry", fill(b, "lost"), 0)
	wantPop(t, "two gaps in their places", s, "2 gap:2 3 gap:1")
	wantDelivered(t, "room again", fill(b, "4 5"), 2)
	wantPop(t, "no gap left over", s, "4 5")
	if got := p.wakes.Load(); got != 2 {
		t.Errorf("woken %d times, want 2", got)
	}
}

func TestSharedBodyCountsOnce(t *testing.T) {
	b := newBus(t, Config{StreamBufferTotalBytes: total(2)})
	s1 := b.Subscribe(&port{}, []string{"a"}, 0)
	s2 := b.Subscribe(&port{}, []string{"a"}, 0)
	wantDelivered(t, "first", publish(b, "a", "12345"), 2)
	wantBuffered(t, b, held)
	wantDelivered(t, "at the total", publish(b, "a", "67890"), 2)
	wantBuffered(t, b, 2*held)
	wantDelivered(t, "beyond it", publish(b, "a", "x"), 0)
	wantPop(t, "first reader", s1, "12345 67890 gap:1")
	wantBuffered(t, b, 2*held)
	wantDelivered(t, "a stream without backlog takes no more either", publish(b, "a", "y"), 0)
	wantPop(t, "second reader", s2, "12345 67890 gap:2")
	wantPop(t, "first reader again", s1, "gap:1")
	wantBuffered(t, b, 0)
}

// TestTheReserveIsForStreamsWithoutBacklog: slow readers do not cost the others their events, and
// the bound is one for them too.
func TestTheReserveIsForStreamsWithoutBacklog(t *testing.T) {
	f := func(bound int64, want int) {
		t.Helper()
		b := newBus(t, Config{StreamBufferTotalBytes: bound})
		b.Subscribe(&port{}, []string{"a"}, 0)
		for range 30 {
			wantDelivered(t, "the slow one", publish(b, "a", "x"), 1)
		}
		fast := b.Subscribe(&port{}, []string{"a"}, 0)
		for range 3 {
			wantDelivered(t, "the one without a backlog", publish(b, "a", "y"), 1)
			wantPop(t, "the one without a backlog", fast, "y")
		}
		idle := 0
		for _, typ := range []string{"b", "c", "d"} { // each with a message of its own, which it does not pop
			b.Subscribe(&port{}, []string{typ}, 0)
			idle += publish(b, typ, "z")
		}
		if idle != want {
			t.Errorf("with a bound of %d, %d of three streams took a message, want %d", bound, idle, want)
		}
		wantBuffered(t, b, int64(30+want)*held)
	}
	f(32*held, 2)
	f(32*held+held-1, 2)
	f(33*held, 3)
}

func TestWakeOncePerBacklog(t *testing.T) {
	b := newBus(t, Config{})
	p := &port{}
	s := b.Subscribe(p, []string{"a"}, 0)
	wantWakes := func(why string, want int64) {
		t.Helper()
		if got := p.wakes.Load(); got != want {
			t.Errorf("%s: woken %d times, want %d", why, got, want)
		}
	}
	wantWakes("nothing yet", 0)
	fill(b, "1 2 3")
	wantWakes("three events", 1)
	popN(s, 3)
	fill(b, "4")
	wantWakes("drained but nil not seen", 1)
	wantPop(t, "the fourth", s, "4")
	fill(b, "5")
	wantWakes("re-armed", 2)
}

func TestGapAloneWakes(t *testing.T) {
	b := newBus(t, Config{MaxBody: 8})
	p := &port{}
	s := b.Subscribe(p, []string{"a"}, 0)
	fill(b, "123456789")
	if p.wakes.Load() != 1 || !s.Pending() {
		t.Errorf("woken %d times, pending %v, want 1, true", p.wakes.Load(), s.Pending())
	}
	wantPop(t, "only the gap", s, "gap:1")
}

func TestDetachFlushesDiscardDrops(t *testing.T) {
	b := newBus(t, Config{StreamBufferEvents: 2})
	ending := b.Subscribe(&port{}, []string{"a"}, 0)
	evicted := b.Subscribe(&port{}, []string{"a"}, 0)
	fill(b, "1 2 lost")
	ending.Detach()
	ending.Detach()
	evicted.Discard()
	evicted.Discard()
	wantDelivered(t, "nobody is live", fill(b, "3"), 0)
	wantPop(t, "ending stream flushes", ending, "1 2 gap:1")
	wantPop(t, "evicted stream is empty", evicted, "")
	wantBuffered(t, b, 0)
	if got := b.Stats().ActiveSubscribers; got != 0 {
		t.Errorf("ActiveSubscribers = %d, want 0", got)
	}
}

// callbackPort calls the bus from Wake, which must not deadlock because no bus lock is held.
type callbackPort struct {
	b *Bus
	s *Stream
}

func (p *callbackPort) Wake() {
	popAll(p.s)
	p.s.Detach()
	p.s = p.b.Subscribe(p, []string{"a"}, 0)
}

func TestWakeMayUseTheBus(t *testing.T) {
	b := newBus(t, Config{})
	p := &callbackPort{b: b}
	p.s = b.Subscribe(p, []string{"a"}, 0)
	wantDelivered(t, "one", publish(b, "a", "1"), 1)
	wantDelivered(t, "two", publish(b, "a", "2"), 1)
}
