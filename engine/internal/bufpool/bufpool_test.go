package bufpool

import (
	"testing"

	"trunkline/engine/internal/poison"
)

func TestPutKeepsUpToTheCap(t *testing.T) {
	p := New(4096)
	f := func(size int, want bool) {
		t.Helper()
		b := p.Get()
		b.B = make([]byte, size)
		if got := p.Put(b); got != want {
			t.Errorf("Put of %d bytes kept=%v, want %v", size, got, want)
		}
	}
	f(0, true)
	f(4096, true)
	f(4097, false)
}

func TestGetIsEmpty(t *testing.T) {
	p := New(0)
	for range 10 {
		b := p.Get()
		if len(b.B) != 0 {
			t.Fatalf("Get returned %d bytes", len(b.B))
		}
		b.B = append(b.B, "used"...)
		p.Put(b)
	}
}

func TestPutPoisons(t *testing.T) {
	if !poison.On {
		t.Skip("poison is off in this build")
	}
	p := New(0)
	b := p.Get()
	b.B = append(b.B, "secret"...)
	view := b.B
	p.Put(b)
	for i, c := range view {
		if c != poison.Byte {
			t.Fatalf("byte %d is %#x after Put, want %#x", i, c, poison.Byte)
		}
	}
}
