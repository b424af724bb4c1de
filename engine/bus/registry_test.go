package bus

import (
	"fmt"
	"strings"
	"testing"
)

func TestFanOut(t *testing.T) {
	b := newBus(t, Config{})
	p := &port{}
	ab := b.Subscribe(p, []string{"a", "b", "a"}, 0)
	a := b.Subscribe(p, []string{"a"}, 0)
	wantDelivered(t, "a goes to both, once each", publish(b, "a", "1"), 2)
	wantDelivered(t, "b goes to one", publish(b, "b", "2"), 1)
	wantDelivered(t, "no prefix matching", publish(b, "a.b", "3"), 0)
	wantDelivered(t, "case matters", publish(b, "A", "4"), 0)
	wantPop(t, "ab", ab, "1 2")
	wantPop(t, "a", a, "1")
	wantDelivered(t, "nil message only counts", b.Publish([]byte("a"), nil), 0)
	if got := b.Stats(); got.EventsPublished != 5 || got.ActiveSubscribers != 2 || got.BufferedBytes != 0 {
		t.Errorf("stats = %+v", got)
	}
}

func TestWants(t *testing.T) {
	b := newBus(t, Config{})
	f := func(typ string, want bool) {
		t.Helper()
		if got := b.Wants(typ); got != want {
			t.Errorf("Wants(%q) = %v, want %v", typ, got, want)
		}
		if got := b.WantsBytes([]byte(typ)); got != want {
			t.Errorf("WantsBytes(%q) = %v, want %v", typ, got, want)
		}
		if got := b.HasHandler(Subscription, []byte(typ)); got != want {
			t.Errorf("HasHandler(Subscription, %q) = %v, want %v", typ, got, want)
		}
	}
	f("a", false)
	s := b.Subscribe(&port{}, []string{"a"}, 0)
	f("a", true)
	f("b", false)
	s.Detach()
	f("a", false)
}

func TestHandleIsAllOrNothing(t *testing.T) {
	b := newBus(t, Config{})
	f := func(kind Kind, types []string, wantTaken string) *Stream {
		t.Helper()
		s, taken := b.Handle(kind, &port{}, types, 0)
		if taken != wantTaken || (s == nil) != (wantTaken != "") {
			t.Errorf("Handle(%d, %v) = %v, %q, want taken %q", kind, types, s, taken, wantTaken)
		}
		return s
	}
	first := f(CommandHandler, []string{"b", "c", "b"}, "")
	f(CommandHandler, []string{"a", "c", "b"}, "c")
	if b.HasHandler(CommandHandler, []byte("a")) {
		t.Error("a refused registration left a handler behind")
	}
	f(QueryHandler, []string{"b"}, "")
	f(Subscription, []string{"b"}, "")
	first.Detach()
	f(CommandHandler, []string{"a", "c", "b"}, "")
}

// registered counts the map entries of all shards.
func registered(b *Bus) (n int) {
	for i := range b.registry.shards {
		sh := &b.registry.shards[i]
		n += len(sh.topics) + len(sh.handlers[0]) + len(sh.handlers[1])
	}
	return n
}

func TestTypesLeaveTheRegistry(t *testing.T) {
	b := newBus(t, Config{})
	var streams []*Stream
	for i := range 300 {
		for kind := Subscription; kind <= QueryHandler; kind++ {
			s, taken := b.Handle(kind, &port{}, []string{fmt.Sprint("type", i)}, 0)
			if taken != "" {
				t.Fatalf("taken %q", taken)
			}
			streams = append(streams, s)
		}
	}
	if got := registered(b); got != 900 {
		t.Errorf("registered = %d, want 900", got)
	}
	for _, s := range streams {
		s.Discard()
	}
	if got := registered(b); got != 0 {
		t.Errorf("registered = %d after the last stream left, want 0", got)
	}
	for i := range b.registry.shards {
		if sh := &b.registry.shards[i]; sh.topics != nil || sh.handlers[0] != nil || sh.handlers[1] != nil {
			t.Fatalf("shard %d keeps an empty map", i)
		}
	}
}

func TestTopicFollowsLiveSubscriptions(t *testing.T) {
	b := newBus(t, Config{})
	keeper := b.Subscribe(&port{}, []string{"a"}, 0)
	for i := range 1000 {
		b.Subscribe(&port{}, []string{"a"}, 0).Detach()
		wantDelivered(t, "churn", publish(b, "a", fmt.Sprint(i)), 1)
		if n := len(b.registry.subscriptions([]byte("a"))); n > 2 {
			t.Fatalf("topic holds %d streams for one live subscription", n)
		}
	}
	keeper.Discard()
	wantBuffered(t, b, 0)
}

// Streams that leave in any order must leave exactly the others behind.
func TestTopicRemovalOrder(t *testing.T) {
	const n = 40
	b := newBus(t, Config{})
	streams := make([]*Stream, n)
	for i := range streams {
		streams[i] = b.Subscribe(&port{}, []string{"a", "b"}, 0)
	}
	for i := range n {
		streams[i*7%n].Detach()
		wantDelivered(t, "a", publish(b, "a", "x"), n-1-i)
		wantDelivered(t, "b", publish(b, "b", "y"), n-1-i)
	}
}

func TestTypesAreCopied(t *testing.T) {
	b := newBus(t, Config{})
	types := []string{"b", "a"}
	s := b.Subscribe(&port{}, types, 0)
	types[0], types[1] = "x", "y"
	wantDelivered(t, "b", publish(b, "b", "1"), 1)
	s.Detach()
	if registered(b) != 0 {
		t.Error("the stream did not leave the types it came with")
	}
}

// TestNamesOfAllStreams: at the limit there is room, one byte more is refused, and the end of a
// stream makes room again. A name that a stream lists twice counts once.
func TestNamesOfAllStreams(t *testing.T) {
	const limit = 3*nameCost + 100
	b := New(Config{SubscriptionNameBytes: limit})
	long := strings.Repeat("x", 98)
	s := b.Subscribe(&port{}, []string{long, "y", long}, 0)
	h, _ := b.Handle(QueryHandler, &port{}, []string{"y"}, 0)
	if s == nil || h == nil || b.Stats().NameBytes != limit {
		t.Fatalf("%v, %v, %d of %d bytes", s, h, b.Stats().NameBytes, limit)
	}
	h.Detach()
	if h, taken := b.Handle(QueryHandler, &port{}, []string{"yy"}, 0); h != nil || taken != "" || b.HasHandler(QueryHandler, []byte("yy")) {
		t.Errorf("one byte above the limit: %v, %q", h, taken)
	}
	if b.Subscribe(&port{}, []string{"yy"}, 0) != nil || b.Wants("yy") || b.Stats().ActiveSubscribers != 1 {
		t.Error("a subscription one byte above the limit")
	}
	if h, _ = b.Handle(QueryHandler, &port{}, []string{"y"}, 0); h == nil {
		t.Error("a stream that ended holds its names")
	}
	s.Discard()
	s.Detach()
	h.Detach()
	if n := b.Stats().NameBytes; n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}
