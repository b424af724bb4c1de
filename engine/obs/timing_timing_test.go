package obs

import "testing"

// Question: what does it cost to find the bucket of a duration, and to record a turn of four
// methods, half of whose answers wait for the journal?

func BenchmarkRecord(b *testing.B) {
	m := NewRecorder(1e9, 4).Meter("ipc", []string{"a", "b", "c", "d"})
	b.Run("bucket", func(b *testing.B) {
		b.ReportAllocs()
		sum, ns := 0, int64(1)
		for b.Loop() {
			ns = ns*6364136223846793005 + 1442695040888963407
			sum += bucketOf(int64(uint64(ns) >> 44)) // up to a millisecond
		}
		if sum == 0 {
			b.Fatal("all are in the first bucket")
		}
	})
	b.Run("meter", func(b *testing.B) {
		b.ReportAllocs()
		for i := int64(0); b.Loop(); i++ {
			m.Record(int(i%4), 20_000+i%64*1000, 1, 0, nil)
		}
	})
	b.Run("pending", func(b *testing.B) {
		b.ReportAllocs()
		var p Pending
		for i := int64(0); b.Loop(); i++ {
			for row := range 4 {
				p.Add(row, i, 4, 0)
			}
			p.Record(m, i+20_000+i%64*1000, nil)
		}
	})
}
