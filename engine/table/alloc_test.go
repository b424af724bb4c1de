//go:build !race

package table

import "testing"

func TestNoAllocs(t *testing.T) {
	h := New(Config[int]{MaxEntries: 100})
	key, nobody := []byte("envelope-0123456789abcdef-0123456789abcdef"), []byte("nobody")
	h.Insert(key, new(int), 10, Live, 0, Policy{})
	h.Insert([]byte("other"), new(int), 10, Live, 0, Policy{})
	now, n := int64(0), 0
	f := func(what string, op func()) {
		t.Helper()
		if got := testing.AllocsPerRun(200, op); got != 0 {
			t.Errorf("%s: %v allocations, want 0", what, got)
		}
	}
	f("Get", func() { h.Get(key) })
	f("Get of nobody", func() { h.Get(nobody) })
	f("Touch", func() { now++; h.Touch(key, now) })
	f("Touch of nobody", func() { h.Touch(nobody, now) })
	f("Do", func() {
		h.Do(key, func(e *Entry[int]) { now++; n++; e.Touch(now); e.Resize(int64(n % 50)); e.SetClass(Class(n & 1)) })
	})
	f("Acquire", func() {
		e := h.Acquire(key)
		*e.Value()++
		e.Release()
	})
	f("Insert of what exists", func() { h.Insert(key, nil, 10, Live, now, evictAged) })
	f("Put of what exists", func() { h.Put(key, nil, 10, Live, now, evictAged) })
	f("Sweep of nothing", func() { h.Sweep(-1, func(*int, Class, int64) bool { n++; return false }) })
}
