package questions

// Question: how many records share a write when each of many connections waits for its own, over a
// disk that takes no time and over one that takes a millisecond?

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"trunkline/engine/journal"
)

// nowhere is a store that takes everything, each block in its time, and keeps nothing.
type nowhere struct{ takes time.Duration }

func (s nowhere) WriteBlock(journal.Index, []byte) error {
	if s.takes > 0 {
		time.Sleep(s.takes)
	}
	return nil
}
func (nowhere) Blocks(journal.Index, func(journal.Index, []byte) error) error { return nil }
func (nowhere) DropBlocks(journal.Index) error                                { return nil }
func (nowhere) CutBlocks(journal.Index) error                                 { return nil }
func (nowhere) Sync() error                                                   { return nil }
func (nowhere) Close() error                                                  { return nil }
func (nowhere) BeginSnapshot(uint64) (journal.SnapshotWriter, error)          { return nil, nil }
func (nowhere) ListSnapshots() ([]journal.Snapshot, error)                    { return nil, nil }
func (nowhere) ReadSnapshot(uint64, func(chunk []byte) error) error           { return nil }
func (nowhere) DropSnapshot(uint64) error                                     { return nil }

func BenchmarkJournalGroup(b *testing.B) {
	for _, takes := range []time.Duration{0, time.Millisecond} {
		for _, appenders := range []int{64, 1024} {
			b.Run(fmt.Sprintf("disk=%s/appenders=%d", takes, appenders), func(b *testing.B) {
				l := openLog(b, nowhere{takes}, journal.Always)
				rec := make([]byte, 300)
				b.SetBytes(int64(len(rec)))
				beside(b, appenders, func(int) func() bool {
					return func() bool {
						l.Append(rec)
						return l.Barrier(context.Background()) == nil
					}
				})
				s := l.Stats()
				b.ReportMetric(float64(s.Records)/float64(max(s.Groups, 1)), "records/group")
			})
		}
	}
}

// cutLog takes a snapshot, and another one, which drops the log up to the first.
func cutLog(tb testing.TB, l *journal.Log) {
	tb.Helper()
	for range 2 {
		err := l.WriteSnapshot(l.Durable(), func(w io.Writer) error {
			_, err := w.Write([]byte("all of it"))
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}
