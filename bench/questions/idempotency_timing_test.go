package questions

// Question: is the idempotency table ever what a request waits for: by its key, a hit, a
// reservation with its end in a table that is full all the time, or both from all processors at
// once, over one shard and over the default?

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"

	"trunkline/engine/idem"
)

func BenchmarkIdempotency(b *testing.B) {
	measure(b, []question{{name: "key", prepare: keyWork}, {name: "hit", prepare: hitWork}, {name: "miss-and-finish", prepare: missWork}})
}

func BenchmarkIdempotencyParallel(b *testing.B) {
	for _, shards := range []int{1, idem.DefaultShards} {
		b.Run(fmt.Sprintf("hit/shards=%d", shards), func(b *testing.B) {
			t, input := fullKeys(shards), inputOf(0)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := uint64(0); pb.Next(); i++ {
					if o, _ := t.Begin(t.Now(), keyAt(i%idem.DefaultMaxEntries), input, nil); o != idem.Done {
						b.Errorf("a hit is %v", o)
						return
					}
				}
			})
		})
		b.Run(fmt.Sprintf("miss-and-finish/shards=%d", shards), func(b *testing.B) {
			t, input, result := fullKeys(shards), inputOf(0), outcome()
			var next atomic.Uint64
			next.Store(idem.DefaultMaxEntries)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					key := keyAt(next.Add(1))
					t.Begin(t.Now(), key, input, nil)
					if t.Finish(key, result) == nil {
						b.Error("it is gone")
						return
					}
				}
			})
		})
	}
}

func keyWork(tb testing.TB) work {
	scope, aid, key := []byte("uid:1000"), []byte("AID.MEMORY.APPEND.v1"), []byte("0123456789abcdef0123456789abcdef0123")
	if idem.KeyOf(scope, aid, key) == idem.KeyOf(scope, aid, key[1:]) {
		tb.Fatal("two keys are one")
	}
	return work{run: func() { idem.KeyOf(scope, aid, key) }}
}

func hitWork(tb testing.TB) work {
	t, input, i := fullKeys(0), inputOf(0), uint64(0)
	if o, r := t.Begin(t.Now(), keyAt(1), input, nil); o != idem.Done || len(r.Output) != 200 {
		tb.Fatalf("a hit is %v", o)
	}
	return work{run: func() { i++; t.Begin(t.Now(), keyAt(i%idem.DefaultMaxEntries), input, nil) }}
}

func missWork(tb testing.TB) work {
	t, input, result, i := fullKeys(0), inputOf(0), outcome(), uint64(idem.DefaultMaxEntries)
	run := func() (idem.Outcome, *idem.Stored) {
		i++
		o, _ := t.Begin(t.Now(), keyAt(i), input, nil)
		return o, t.Finish(keyAt(i), result)
	}
	if o, r := run(); o != idem.Started || r == nil {
		tb.Fatalf("a miss is %v", o)
	}
	return work{run: func() { run() }}
}

// fullKeys is a table with as many outcomes as it holds.
func fullKeys(shards int) *idem.Table {
	var clock atomic.Int64
	result := outcome()
	t := idem.New(idem.Config{Shards: shards, Now: func() int64 { return clock.Add(1) }})
	for i := range uint64(idem.DefaultMaxEntries) {
		t.Begin(t.Now(), keyAt(i), inputOf(0), nil)
		t.Finish(keyAt(i), result)
	}
	return t
}

// keyAt spreads i over the shards as a hash would.
func keyAt(i uint64) (key idem.Key) {
	binary.LittleEndian.PutUint64(key.Hash[:], i*0x9e3779b97f4a7c15>>7)
	binary.LittleEndian.PutUint64(key.Hash[8:], i)
	return key
}

func inputOf(i byte) [32]byte { return [32]byte{i} }

// outcome is 200 bytes of output, which the table copies.
func outcome() idem.Stored { return idem.Stored{Output: bytes.Repeat([]byte{'x'}, 200)} }
