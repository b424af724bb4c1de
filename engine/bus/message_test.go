package bus

import (
	"bytes"
	"testing"
)

func TestMessagePoolCapsBuffers(t *testing.T) {
	f := func(size int, wantKept bool) {
		t.Helper()
		b := newBus(t, Config{})
		m := b.NewMessage(size)
		if cap(m.Body) < size || cap(m.Body) > max(128, 4*size) {
			t.Errorf("a body of %d bytes gets a buffer of %d", size, cap(m.Body))
		}
		m.Release()
		kept := false
		for i := range b.messages {
			kept = kept || b.messages[i].Get() != nil
		}
		if kept != wantKept && !raceBuild { // race builds drop pooled values at random
			t.Errorf("a buffer of %d bytes kept: %v, want %v", size, kept, wantKept)
		}
		if len(m.Body) != 0 {
			t.Errorf("Body has %d bytes after Release", len(m.Body))
		}
	}
	for _, size := range []int{0, 1, 128, 129, 512, 513, 5000, 8 << 10, 64 << 10} {
		f(size, true)
	}
	f(64<<10+1, false)
}

func TestDoubleReleasePanics(t *testing.T) {
	b := newBus(t, Config{})
	m := b.NewMessage(0)
	m.Release()
	defer func() {
		if recover() == nil {
			t.Error("a second Release did not panic")
		}
	}()
	m.Release()
}

func TestBodyLivesUntilLastRelease(t *testing.T) {
	b := newBus(t, Config{})
	s1 := b.Subscribe(&port{}, []string{"a"}, 0)
	s2 := b.Subscribe(&port{}, []string{"a"}, 0)
	publish(b, "a", "shared")
	m1, m2 := s1.Pop(), s2.Pop()
	if m1 != m2 {
		t.Fatal("two streams got different messages")
	}
	m1.Release()
	if !bytes.Equal(m2.Body, []byte("shared")) {
		t.Errorf("body = %q after the first of two releases", m2.Body)
	}
	wantBuffered(t, b, held)
	m2.Release()
	wantBuffered(t, b, 0)
}

func TestNilGapBody(t *testing.T) {
	b := New(Config{MaxBody: 1})
	defer b.Close()
	s := b.Subscribe(&port{}, []string{"a"}, 0)
	publish(b, "a", "22")
	m := s.Pop()
	if m == nil || len(m.Body) != 0 {
		t.Fatalf("popped %v, want an empty marker", m)
	}
	m.Release()
}

func TestDefaults(t *testing.T) {
	c := New(Config{StreamBufferEvents: -1}).cfg
	if c.StreamBufferEvents != 16384 || c.StreamBufferBytes != 16777216 || c.StreamBufferTotalBytes != 268435456 ||
		c.MaxBody != 5242880 ||
		c.QueryCapacity != 2049 {
		t.Errorf("defaults = %+v", c)
	}
}
