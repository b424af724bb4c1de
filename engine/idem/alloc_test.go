//go:build !race

package idem

import "testing"

func TestNoAllocs(t *testing.T) {
	clock := int64(0)
	h := New(Config{MaxEntries: 4, MaxWaiters: 1, Now: func() int64 { return clock }, Journal: func(*Change) uint64 { return 0 }})
	scope, aid, key := make([]byte, 256), make([]byte, 256), make([]byte, 256)
	input, w := in("1"), &sleeper{}
	for _, name := range []string{"hit", "other hit"} {
		h.Begin(h.Now(), k(name), input, nil)
		h.Finish(k(name), out("x"))
	}
	hit, other, flight := k("hit"), k("other hit"), k("flight")
	h.Begin(h.Now(), flight, input, nil)
	h.Begin(h.Now(), flight, input, w)
	f := func(what string, op func()) {
		t.Helper()
		if got := testing.AllocsPerRun(200, op); got != 0 {
			t.Errorf("%s: %v allocations, want 0", what, got)
		}
	}
	f("KeyOf", func() { hit.Hash[0] ^= KeyOf(scope, aid, key).Hash[0] &^ 0xff })
	f("hit", func() {
		if o, _ := h.Begin(h.Now(), hit, input, w); o != Done {
			t.Fatal(o)
		}
	})
	f("hits by turns", func() { h.Begin(h.Now(), hit, input, w); h.Begin(h.Now(), other, input, w) })
	f("conflict", func() { h.Begin(h.Now(), hit, [32]byte{}, w) })
	f("in flight, nobody waits", func() { h.Begin(h.Now(), flight, input, nil) })
	f("crowded", func() { h.Begin(h.Now(), flight, input, w) })
	f("nothing to sweep", func() { clock++; h.Sweep() })
	f("Index", func() { h.Index(hit) })
	f("Cancel of nobody", func() { h.Cancel(hit, w) })
	h.Cancel(flight, w)
	f("wait again", func() { h.Begin(h.Now(), flight, input, w); h.Cancel(flight, w) })
}
