package embedded

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// Of BenchmarkWriteBlockBesideSnapshot, in bytes.
const (
	timingBlock    = 19200
	timingChunk    = 256 << 10
	timingSnapshot = 250 << 20
)

// BenchmarkWriteBlockBesideSnapshot: what does a snapshot of 250 MB cost the blocks that are
// written beside it? The answer is the ratio of the times during it to those without it, on a disk.
func BenchmarkWriteBlockBesideSnapshot(b *testing.B) {
	for _, mode := range bothModes {
		b.Run(mode.String(), func(b *testing.B) {
			s := mustOpen(b, Config{Dir: b.TempDir(), Mode: mode, SyncEvery: defaultSyncEvery})
			defer mustClose(b, s)
			var alone, beside []time.Duration
			var taken time.Duration
			pause, size := 2*time.Second, timingSnapshot
			if testing.Short() {
				pause, size = 20*time.Millisecond, 4*timingChunk
			}
			for g := range uint64(b.N) {
				alone = append(alone, timeBlocks(b, s, func() { time.Sleep(pause) })...)
				start := time.Now()
				beside = append(beside, timeBlocks(b, s, func() { writeLargeSnapshot(b, s, g+1, size) })...)
				taken += time.Since(start)
				if g > 0 {
					if err := s.DropSnapshot(g); err != nil {
						b.Fatal(err)
					}
				}
				if err := s.DropBlocks(s.last.Load()); err != nil {
					b.Fatal(err)
				}
			}
			report := func(name string, all []time.Duration) {
				slices.Sort(all)
				var sum time.Duration
				for _, d := range all {
					sum += d
				}
				b.ReportMetric(float64(sum.Microseconds())/1000/float64(len(all)), name+"-mean-ms")
				at := func(share float64) float64 {
					return float64(all[int(share*float64(len(all)-1))].Microseconds()) / 1000
				}
				b.ReportMetric(at(0.5), name+"-p50-ms")
				b.ReportMetric(at(0.99), name+"-p99-ms")
				b.ReportMetric(at(1), name+"-max-ms")
			}
			report("alone", alone)
			report("beside", beside)
			b.ReportMetric(taken.Seconds()/float64(b.N), "s/generation")
			b.ReportMetric(float64(len(beside))/float64(b.N), "blocks/generation")
			b.ReportMetric(0, "ns/op")
			st := s.Stats()
			b.Logf("flushed %d MB, merged %d MB, %d tables of %d MB", st.FlushedBytes>>20, st.CompactedBytes>>20, st.Tables, st.TableBytes>>20)
		})
	}
}

// timeBlocks writes one block after the other while do runs, and returns how long each took.
func timeBlocks(b *testing.B, s *Store, do func()) (all []time.Duration) {
	var done atomic.Bool
	go func() { defer done.Store(true); do() }()
	block := blockOf(1, timingBlock)
	for !done.Load() {
		start := time.Now()
		if err := s.WriteBlock(s.last.Load()+1, block); err != nil {
			b.Error(err)
			return all
		}
		all = append(all, time.Since(start))
	}
	return all
}

func writeLargeSnapshot(b *testing.B, s *Store, g uint64, size int) {
	w, err := s.BeginSnapshot(g)
	chunk := blockOf(g, timingChunk)
	for range size / timingChunk {
		if err == nil {
			err = w.Write(chunk)
		}
	}
	if err == nil {
		err = w.Commit([]byte("meta"))
	}
	if err != nil {
		b.Error(err)
	}
}
