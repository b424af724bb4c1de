package rows

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// rowBytes is the size of a row in the benchmarks, key included: a short message of a thread.
const rowBytes = 250

// loadRows puts n rows as threads get messages: 128 in a batch, each of a random one of 10000
// threads. The values are half random, so that compression finds what it finds in text.
func loadRows(b *testing.B, d *DB, n int) {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	const threads = 10000
	var next [threads]uint64
	batch, key, value := d.NewBatch(), make([]byte, 25), make([]byte, rowBytes-25)
	for i := range n {
		thread := rng.IntN(threads)
		messageKey(key, uint64(thread), next[thread])
		next[thread]++
		for j := 0; j < len(value)/2; j += 8 {
			binary.LittleEndian.PutUint64(value[j:], rng.Uint64())
		}
		if batch.Set(key, value); i%128 == 127 || i == n-1 {
			if err := batch.Commit(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// messageKey is a tag, 16 bytes of a thread, and a message number.
func messageKey(key []byte, thread, message uint64) {
	key[0] = 'm'
	binary.BigEndian.PutUint64(key[1:], thread*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(key[9:], thread)
	binary.BigEndian.PutUint64(key[17:], message)
}

func benchRows() int {
	if testing.Short() {
		return 20000
	}
	return 1000000
}

func BenchmarkSet128(b *testing.B) {
	d := mustOpen(b, Config{Dir: b.TempDir()})
	defer mustClose(b, d)
	b.SetBytes(128 * rowBytes)
	b.ReportAllocs()
	loadRows(b, d, 128*b.N)
}

func BenchmarkGet(b *testing.B) {
	d := mustOpen(b, Config{Dir: b.TempDir()})
	defer mustClose(b, d)
	n := benchRows()
	loadRows(b, d, n)
	if err := d.Flush(1); err != nil {
		b.Fatal(err)
	}
	for _, missing := range []bool{false, true} {
		b.Run(fmt.Sprintf("missing=%v", missing), func(b *testing.B) {
			b.ReportAllocs()
			rng := rand.New(rand.NewPCG(3, 4))
			key, dst := make([]byte, 25), make([]byte, 0, rowBytes)
			for b.Loop() {
				messageKey(key, uint64(rng.IntN(10000)), uint64(rng.IntN(n/10000/2+1)))
				if missing {
					key[24]++
					key[16] ^= 0x55
					key[15] ^= 0x55
				}
				v, ok, err := d.Get(dst, key)
				if err != nil || ok == missing && !testing.Short() {
					b.Fatal(ok, err, len(v))
				}
			}
		})
	}
}

// BenchmarkHistory reports what a history of random threads costs: how often a byte is written, and
// what is in memory behind it.
func BenchmarkHistory(b *testing.B) {
	n := benchRows()
	for b.Loop() {
		d := mustOpen(b, Config{Dir: b.TempDir()})
		loadRows(b, d, n)
		if err := d.Flush(1); err != nil {
			b.Fatal(err)
		}
		for d.db.Metrics().Compact.NumInProgress > 0 { // merges that the history still owes
			time.Sleep(10 * time.Millisecond)
		}
		s := d.Stats()
		b.ReportMetric(float64(s.FlushedBytes+s.MergedBytes)/float64(s.FlushedBytes), "written/flushed")
		b.ReportMetric(float64(s.FlushedBytes+s.MergedBytes)/float64(n*rowBytes), "written/put")
		b.ReportMetric(float64(s.DiskBytes)/float64(n*rowBytes), "disk/put")
		b.ReportMetric(float64(s.MemoryBytes)/(1<<20), "MiB-memory")
		mustClose(b, d)
	}
}
