package idem

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
)

// The benchmarks answer one question: is the table ever what a request waits for? A hit, a reservation with its end in a table that is
// full all the time, and both from all processors at once, over one shard and over the default; a snapshot's hold of all locks.

func benchTable(b *testing.B, shards int) *Table {
	var clock atomic.Int64
	h := New(Config{Shards: shards, Now: func() int64 { return clock.Add(1) }})
	for i := range DefaultMaxEntries {
		h.Begin(benchKey(uint64(i)), in(""), nil)
		h.Finish(benchKey(uint64(i)), sized(200))
	}
	b.ReportAllocs()
	b.ResetTimer()
	return h
}

// benchKey spreads i over the shards as a hash would.
func benchKey(i uint64) (key Key) {
	binary.LittleEndian.PutUint64(key.Hash[:], i*0x9e3779b97f4a7c15>>7)
	binary.LittleEndian.PutUint64(key.Hash[8:], i)
	return key
}

func BenchmarkKeyOf(b *testing.B) {
	scope, aid, key := []byte("uid:1000"), []byte("AID.MEMORY.APPEND.v1"), []byte("0123456789abcdef0123456789abcdef0123")
	b.ReportAllocs()
	for b.Loop() {
		KeyOf(scope, aid, key)
	}
}

func BenchmarkHit(b *testing.B) {
	h, input := benchTable(b, 0), in("")
	for i := uint64(0); b.Loop(); i++ {
		if o, _ := h.Begin(benchKey(i%DefaultMaxEntries), input, nil); o != Done {
			b.Fatal(o)
		}
	}
}

func BenchmarkMissAndFinish(b *testing.B) {
	h, input, r := benchTable(b, 0), in(""), sized(200)
	for i := uint64(DefaultMaxEntries); b.Loop(); i++ {
		h.Begin(benchKey(i), input, nil)
		if h.Finish(benchKey(i), r) == nil {
			b.Fatal("it is gone")
		}
	}
}

func BenchmarkContention(b *testing.B) {
	for _, shards := range []int{1, DefaultShards} {
		name := map[bool]string{true: "one shard", false: "default shards"}[shards == 1]
		b.Run("hits/"+name, func(b *testing.B) {
			h, input := benchTable(b, shards), in("")
			b.RunParallel(func(pb *testing.PB) {
				for i := uint64(0); pb.Next(); i++ {
					h.Begin(benchKey(i%DefaultMaxEntries), input, nil)
				}
			})
		})
		b.Run("misses/"+name, func(b *testing.B) {
			h, input, r := benchTable(b, shards), in(""), sized(200)
			var next atomic.Uint64
			next.Store(DefaultMaxEntries)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					key := benchKey(next.Add(1))
					h.Begin(key, input, nil)
					h.Finish(key, r)
				}
			})
		})
	}
}

func BenchmarkSnapshotMoment(b *testing.B) {
	h := benchTable(b, 0)
	for b.Loop() {
		if list, _ := h.moment(); len(list) != DefaultMaxEntries {
			b.Fatal(len(list))
		}
	}
}
