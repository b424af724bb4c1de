package journal

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// instant is a store that takes everything and keeps nothing.
type instant struct{ takes time.Duration }

func (s instant) WriteBlock(Index, []byte) error {
	if s.takes > 0 {
		time.Sleep(s.takes)
	}
	return nil
}
func (instant) Blocks(Index, func(Index, []byte) error) error         { return nil }
func (instant) DropBlocks(Index) error                                { return nil }
func (instant) CutBlocks(Index) error                                 { return nil }
func (instant) Sync() error                                           { return nil }
func (instant) Close() error                                          { return nil }
func (instant) BeginGeneration(uint64) (GenerationWriter, error)      { return nil, nil }
func (instant) ListGenerations() ([]Generation, error)                { return nil, nil }
func (instant) ReadGeneration(uint64, func(chunk []byte) error) error { return nil }
func (instant) DropGeneration(uint64) error                           { return nil }
func openInstant(t testing.TB, cfg Config) *Log                       { return openOn(t, instant{}, cfg) }

func openOn(t testing.TB, s Store, cfg Config) *Log {
	t.Helper()
	l, err := Open(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Replay(0, nil); err != nil {
		t.Fatal(err)
	}
	return l
}

// BenchmarkAppend is appenders that each wait until their record is durable before the next one, as connections do.
func BenchmarkAppend(b *testing.B) {
	for _, takes := range []time.Duration{0, time.Millisecond} {
		for _, appenders := range []int{64, 1024} {
			b.Run(fmt.Sprintf("store=%s/appenders=%d", takes, appenders), func(b *testing.B) {
				benchmarkAppend(b, takes, appenders)
			})
		}
	}
}

func benchmarkAppend(b *testing.B, takes time.Duration, appenders int) {
	l := openOn(b, instant{takes}, Config{})
	rec := make([]byte, 300)
	var left atomic.Int64
	left.Store(int64(b.N))
	b.SetBytes(int64(len(rec)))
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range appenders {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				l.Append(rec)
				if err := l.Barrier(context.Background()); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	s := l.Stats()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(s.Records)/float64(max(s.Groups, 1)), "records/group")
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAppendOnly is what the caller pays under its lock: it asks Overloaded and never waits for the disk.
func BenchmarkAppendOnly(b *testing.B) {
	l := openInstant(b, Config{})
	rec := make([]byte, 300)
	b.SetBytes(int64(len(rec)))
	b.ReportAllocs()
	for b.Loop() {
		for l.Overloaded() {
			time.Sleep(10 * time.Microsecond)
		}
		l.Append(rec)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}
