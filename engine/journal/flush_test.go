package journal_test

import (
	"context"
	"testing"
	"testing/synctest"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

// TestEnqueuedRecordsShareAGroup: what was enqueued is written when someone asks, and all of it at
// once.
func TestEnqueuedRecordsShareAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := memstore.New(memstore.Options{})
		l, _ := start(t, disk, journal.Config{MaxBlockBytes: 512, MaxQueueRecords: 100})
		want := func(why string, groups, durable uint64) {
			t.Helper()
			synctest.Wait()
			if g, d := l.Stats().Groups, l.Durable(); g != groups || d != durable {
				t.Errorf("%s: %d groups, durable up to %d; want %d, %d", why, g, d, groups, durable)
			}
		}
		several := func(n, size int) {
			for range n {
				l.Enqueue(make([]byte, size))
			}
		}
		base := l.Durable()
		want("nothing yet", 0, base)
		several(3, 10)
		want("nobody asked", 0, base)
		l.Flush()
		want("asked", 1, base+3)
		l.Flush()
		want("asked for nothing", 1, base+3)
		several(2, 10)
		l.Append([]byte("one who waits"))
		want("in company", 2, base+6)
		several(2, 300) // the second does not fit beside the first
		want("a full block", 3, base+7)
		if err := l.Barrier(context.Background()); err != nil {
			t.Fatal(err)
		}
		want("a barrier", 4, base+8)
		several(100, 0) // the queue's limit
		want("a full queue", 5, base+108)
		several(1, 10)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		want("the end", 6, base+109)
	})
}

// TestFlushNextNeedsAGroupThatIsWritten: it asks for the group behind the one that is being
// written, and starts none.
func TestFlushNextNeedsAGroupThatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		l, _ := start(t, memstore.New(memstore.Options{}), journal.Config{OnDurable: func(journal.Index) { <-hold }})
		l.Enqueue([]byte("one"))
		synctest.Wait()
		if l.FlushNext() || l.Stats().Groups != 0 {
			t.Error("a group was started, where none was being written")
		}
		l.Flush()
		synctest.Wait()
		last := l.Enqueue([]byte("two"))
		if !l.FlushNext() {
			t.Error("the group that is being written is not seen")
		}
		close(hold)
		synctest.Wait()
		if got := l.Durable(); got != last || l.Stats().Groups != 2 {
			t.Errorf("durable up to %d after %d groups, want %d and 2", got, l.Stats().Groups, last)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
