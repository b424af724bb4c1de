//go:build !race

package threadstore

import (
	"fmt"
	"testing"
)

// TestHotMethodsDoNotAllocate: beyond segments, which are allocated as they fill, the methods of
// threads §10 allocate nothing.
func TestHotMethodsDoNotAllocate(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	h := live
	h.Runtime = []byte("codex_cli")
	r.Heartbeat(alice, &h, r.now)
	page := make([]byte, 0, 64<<10)
	var keys [4096][]byte
	for i := range keys {
		keys[i] = fmt.Append(nil, "key-", i)
	}
	n, seq := 0, uint64(0)
	p := &Post{Body: []byte("hello"), Metadata: []byte(`{"a":1}`)}
	check := func(name string, f func() Refusal) {
		t.Helper()
		f()
		if avg := testing.AllocsPerRun(1000, func() {
			if ref := f(); ref.Code != OK {
				t.Fatal(name, ref)
			}
		}); avg != 0 {
			t.Errorf("%s: %v allocations", name, avg)
		}
	}
	check("post", func() Refusal {
		p.Key = keys[n]
		n++
		_, ref := r.Post(alice, id, p, r.now)
		return ref
	})
	r.sync()
	check("poll", func() Refusal {
		_, page, ref := r.Read(bob, id, uint64(n), 50, false, page[:0])
		if page.Next != uint64(n) {
			t.Fatal(page)
		}
		return ref
	})
	check("read", func() Refusal {
		_, _, ref := r.Read(bob, id, 5, 50, false, page[:0])
		return ref
	})
	check("ack", func() Refusal {
		seq = min(seq+1, uint64(n))
		_, ref := r.Ack(bob, id, seq, r.now)
		return ref
	})
	check("heartbeat", func() Refusal {
		_, ref := r.Heartbeat(alice, &h, r.now)
		return ref
	})
}

func BenchmarkPost(b *testing.B) {
	r := newRig(b, Config{})
	id := r.create()
	p := &Post{Body: []byte("hello"), Key: make([]byte, 8)}
	b.ReportAllocs()
	for n := range b.N {
		p.Key = fmt.Append(p.Key[:0], n)
		if _, ref := r.Post(alice, id, p, r.now); ref.Code != OK {
			b.Fatal(ref)
		}
		if n%1000 == 0 {
			r.sync()
			r.store()
		}
	}
}

func BenchmarkPoll(b *testing.B) {
	r := newRig(b, Config{})
	id := r.create()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ref := r.Read(alice, id, 0, 50, false, nil); ref.Code != OK {
			b.Fatal(ref)
		}
	}
}
