package natslog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstore"
	"trunkline/fuzz/kit/natstest"
)

// BenchmarkAppend appends records of 300 bytes, each awaited, from some writers to three servers in
// this process.
func BenchmarkAppend(b *testing.B) {
	c := natstest.New(b)
	nc := c.Connect(0)
	defer nc.Close()
	for _, writers := range []int{64, 1, 1024} {
		for _, inFlight := range []int{2, 1, 4} {
			if testing.Short() && (writers != 64 || inFlight != 2) {
				continue
			}
			name := fmt.Sprintf("writers=%d/flight=%d", writers, inFlight)
			b.Run(name, func(b *testing.B) {
				l := c.Open(nc, fmt.Sprintf("bench-%d-%d-%d", writers, inFlight, b.N), natstest.Patient)
				local, err := memstore.New(memstore.Options{}).Open()
				if err != nil {
					b.Fatal(err)
				}
				s, err := replicated.Open(context.Background(), replicated.Config{Stream: l, Chunks: l, Local: local, InFlight: inFlight})
				if err != nil {
					b.Fatal(err)
				}
				j, err := journal.Open(s, journal.Config{})
				if err != nil {
					b.Fatal(err)
				}
				if err := j.Replay(0, func(journal.Index, []byte) error { return nil }); err != nil {
					b.Fatal(err)
				}
				rec := make([]byte, 300)
				var wg sync.WaitGroup
				for w := range writers {
					wg.Go(func() {
						for i := w; i < b.N; i += writers {
							if err := j.Await(context.Background(), j.Append(rec)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acked/s")
				b.ReportMetric(float64(j.Stats().Records)/float64(max(j.Stats().Groups, 1)), "records/block")
				if err := j.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
