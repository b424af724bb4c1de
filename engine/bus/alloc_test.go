//go:build !race && !invariants

package bus

import "testing"

func wantNoAllocs(t *testing.T, why string, f func()) {
	t.Helper()
	f()
	if n := testing.AllocsPerRun(200, f); n != 0 {
		t.Errorf("%s: %v allocations per run, want 0", why, n)
	}
}

func TestPublishDoesNotAllocate(t *testing.T) {
	f := func(why string, subscribers, burst int, cfg Config) {
		t.Helper()
		b := newBus(t, cfg)
		streams := make([]*Stream, subscribers)
		for i := range streams {
			streams[i] = b.Subscribe(&port{}, []string{"process.created"}, 20)
		}
		typ, body := []byte("process.created"), make([]byte, 200)
		wantNoAllocs(t, why, func() {
			for range burst {
				m := b.NewMessage(len(body))
				m.Body = append(m.Body, body...)
				b.Publish(typ, m)
			}
			for _, s := range streams {
				for m := s.Pop(); m != nil; m = s.Pop() {
					m.Release()
				}
			}
		})
	}
	f("0 subscribers", 0, 1, Config{})
	f("1 subscriber", 1, 1, Config{})
	f("100 subscribers", 100, 1, Config{})
	f("bursts that grow the ring", 4, 1000, Config{})
	f("gap markers", 4, 10, Config{StreamBufferEvents: 4})
}

func TestLookupsDoNotAllocate(t *testing.T) {
	b := newBus(t, Config{})
	b.Subscribe(&port{}, []string{"process.created"}, 0)
	typ, other := []byte("process.created"), []byte("process.terminated")
	wantNoAllocs(t, "Wants, HasHandler, Publish of nil, Stats", func() {
		b.Wants("process.created")
		b.WantsBytes(typ)
		b.WantsBytes(other)
		b.HasHandler(CommandHandler, typ)
		b.Publish(other, nil)
		b.Stats()
	})
}

// TestPatternsDoNotAllocate: neither where they match, nor where they do not.
func TestPatternsDoNotAllocate(t *testing.T) {
	b := newBus(t, Config{})
	streams := make([]*Stream, 8)
	for i := range streams {
		streams[i], _ = b.subscribePatterns(&port{}, []string{"process.created"}, []string{"process.*", ">", "a.*.c"}, 20)
	}
	wantNoAllocs(t, "Publish and Pop", func() {
		for _, typ := range [...]string{"process.created", "process.state_changed", "other"} {
			m := b.NewMessage(10)
			m.Body = append(m.Body, typ...)
			var buf [64]byte
			if !b.Wants(typ) || b.Publish(append(buf[:0], typ...), m) != len(streams) {
				t.Fatal("not delivered")
			}
		}
		for _, s := range streams {
			for m := s.Pop(); m != nil; m = s.Pop() {
				m.Release()
			}
		}
	})
	none := newBus(t, Config{})
	_, _ = none.subscribePatterns(&port{}, nil, []string{"process.*", "*.x"}, 20)
	typ := []byte("job.done")
	wantNoAllocs(t, "no pattern matches", func() {
		if none.WantsBytes(typ) || none.Wants("process.a.b") {
			t.Fatal("wanted")
		}
		none.Publish(typ, none.NewMessage(10))
	})
}

func TestSendDoesNotAllocate(t *testing.T) {
	b := newBus(t, Config{})
	h, _ := b.Handle(CommandHandler, &port{}, []string{"job.run"}, 20)
	typ, nobody, body := []byte("job.run"), []byte("job.stop"), make([]byte, 200)
	send := func(typ []byte) {
		m := b.NewMessage(len(body))
		m.Body = append(m.Body, body...)
		b.Send(typ, m)
	}
	wantNoAllocs(t, "Send and Pop", func() {
		send(typ)
		send(nobody)
		for m := h.Pop(); m != nil; m = h.Pop() {
			m.Release()
		}
	})
}
