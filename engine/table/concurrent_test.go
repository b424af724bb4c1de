package table

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// TestConcurrentLimits runs all operations at once and watches the counters the whole time: the
// limits hold at every moment, and what was inserted is afterwards either there or was dropped
// exactly once.
func TestConcurrentLimits(t *testing.T) {
	const (
		maxEntries, maxBytes = 20, 500
		workers, ops         = 4, 4000
	)
	var inserted, dropped, over atomic.Int64
	h := New(Config[int]{MaxEntries: maxEntries, MaxBytes: maxBytes, Shards: 8, OnEvict: func(string, *int) { dropped.Add(1) }})
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for now := range int64(ops) {
				key := fmt.Appendf(nil, "k%d", r.IntN(40))
				size, class := r.Int64N(60), Class(r.IntN(2))
				switch r.IntN(10) {
				case 0, 1, 2:
					if h.Insert(key, new(int), size, class, now, evictAged) == Inserted {
						inserted.Add(1)
					}
				case 3:
					if _, o := h.Put(key, new(int), size, class, now, evictEnded); o == Inserted {
						inserted.Add(1)
					}
				case 4:
					if _, ok := h.Remove(key); ok {
						dropped.Add(1)
					}
				case 5:
					h.MakeRoom(key, size, now, evictAged)
				case 6:
					h.Sweep(now-200, func(_ *int, class Class, _ int64) bool { return class == Ended })
				case 7:
					h.Get(key)
				default:
					h.Do(key, func(e *Entry[int]) {
						*e.Value()++
						e.Resize(size)
						e.SetClass(class)
						e.Touch(now)
					})
				}
				if h.Len() > maxEntries || h.Bytes() > maxBytes {
					over.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if over.Load() != 0 {
		t.Fatalf("a limit was exceeded %d times", over.Load())
	}
	if got, want := int64(h.Len()), inserted.Load()-dropped.Load(); got != want {
		t.Fatalf("%d entries, want %d inserted - %d dropped", got, inserted.Load(), dropped.Load())
	}
	checkCounters(t, h)
}

func checkCounters(t *testing.T, h *Table[int]) {
	t.Helper()
	var entries int
	var bytes, ended int64
	h.Walk(func(e *Entry[int]) {
		entries++
		bytes += e.Size()
		if e.Class() == Ended {
			ended += e.Size()
		}
	})
	if entries != h.Len() || bytes != h.Bytes() || ended != h.ended.Load() {
		t.Fatalf("counters %d, %d, %d; content %d, %d, %d", h.Len(), h.Bytes(), h.ended.Load(), entries, bytes, ended)
	}
	if err := checkLists(h); err != nil {
		t.Fatal(err)
	}
}

// TestOneOfManyInserts: of many that insert the same key at once, one does, and steps under Acquire
// are not interleaved.
func TestOneOfManyInserts(t *testing.T) {
	h := New(Config[int]{})
	const workers, steps = 8, 500
	var first atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			if h.Insert([]byte("k"), new(int), 1, Live, 0, Policy{}) == Inserted {
				first.Add(1)
			}
			for range steps {
				e := h.Acquire([]byte("k"))
				*e.Value()++
				e.Release()
			}
		})
	}
	wg.Wait()
	if v, _ := h.Get([]byte("k")); first.Load() != 1 || *v != workers*steps {
		t.Fatalf("%d inserted it, counted to %d", first.Load(), *v)
	}
}

// TestSearchDoesNotWait: a victim in one shard is found and dropped while another shard is locked
// for long.
func TestSearchDoesNotWait(t *testing.T) {
	h := New(Config[int]{MaxEntries: 2, Shards: 64})
	keys := distinctShards(h, 3)
	h.Insert(keys[0], new(int), 1, Live, 0, Policy{})
	h.Insert(keys[1], new(int), 1, Ended, 0, Policy{})
	e := h.Acquire(keys[0])
	if o := h.Insert(keys[2], new(int), 1, Live, 1, evictEnded); o != Inserted {
		t.Fatal(o)
	}
	e.Release()
}

// TestVictimIsCheckedAgain: one that was touched between the search and the lock is spared.
func TestVictimIsCheckedAgain(t *testing.T) {
	h := New(Config[int]{Shards: 1})
	h.Insert([]byte("k"), new(int), 1, Live, 5, Policy{})
	s, reading := h.longest(Live, []byte("x"))
	h.Touch([]byte("k"), 6)
	if e := s.evict(Live, nil, reading); e != nil {
		t.Fatalf("dropped %s of %d, searched at %d", e.key, e.touched, reading)
	}
	if e := s.evict(Live, nil, 6); e == nil || h.Len() != 0 {
		t.Fatal("not dropped")
	}
}

// TestOnEvictMayUseTheTable: the callback runs with no lock held.
func TestOnEvictMayUseTheTable(t *testing.T) {
	var h *Table[int]
	told := 0
	h = New(Config[int]{MaxEntries: 1, Shards: 1, OnEvict: func(key string, _ *int) {
		told++
		if _, ok := h.Get([]byte(key)); ok {
			t.Error("evicted, but still there")
		}
		h.Walk(func(*Entry[int]) {})
	}})
	h.Insert([]byte("a"), new(int), 1, Ended, 0, evictEnded)
	h.Insert([]byte("b"), new(int), 1, Ended, 1, evictEnded)
	h.Sweep(5, func(*int, Class, int64) bool { return true })
	if told != 2 || h.Len() != 0 {
		t.Fatalf("told %d times, %d left", told, h.Len())
	}
}

// distinctShards returns n keys that live in n different shards.
func distinctShards(h *Table[int], n int) (keys [][]byte) {
	seen := map[*shard[int]]bool{}
	for i := 0; len(keys) < n; i++ {
		key := fmt.Append(nil, i)
		if s := h.shardOf(key); !seen[s] {
			seen[s] = true
			keys = append(keys, key)
		}
	}
	return keys
}
