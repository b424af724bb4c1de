package idem

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
)

// Question: for how long does a snapshot of a full table hold all of its locks?

func BenchmarkSnapshotMoment(b *testing.B) {
	var clock atomic.Int64
	h := New(Config{Now: func() int64 { return clock.Add(1) }})
	for i := range DefaultMaxEntries {
		h.Begin(h.Now(), benchKey(uint64(i)), in(""), nil)
		h.Finish(benchKey(uint64(i)), sized(200))
	}
	b.ReportAllocs()
	for b.Loop() {
		if list, _ := h.moment(); len(list) != DefaultMaxEntries {
			b.Fatal(len(list))
		}
	}
}

// benchKey spreads i over the shards as a hash would.
func benchKey(i uint64) (key Key) {
	binary.LittleEndian.PutUint64(key.Hash[:], i*0x9e3779b97f4a7c15>>7)
	binary.LittleEndian.PutUint64(key.Hash[8:], i)
	return key
}
