package journal_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

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

// TestFlushNextNeedsALinger: it asks for the group that lingers for more records, and for no other.
func TestFlushNextNeedsALinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLingerRig(t)
		r.Enqueue([]byte("one"))
		if r.FlushNext() {
			t.Error("asked for a group that does not linger")
		}
		r.Flush()
		synctest.Wait()
		r.Enqueue([]byte("two"))
		if r.FlushNext() {
			t.Error("asked for a group while one is being written")
		}
		for range 50 {
			for range 31 {
				r.Enqueue([]byte("record"))
			}
			r.request()
		}
		groups, last := r.Stats().Groups, r.Enqueue([]byte("lonely"))
		if !r.FlushNext() || r.Stats().Groups != groups {
			t.Error("the group that lingers is not seen")
		}
		if err := r.Await(t.Context(), last); err != nil || r.Stats().Groups != groups+1 {
			t.Errorf("%v, %d groups more; want 1", err, r.Stats().Groups-groups)
		}
		for range 28 { // as many as the linger waits for
			last = r.Enqueue([]byte("record"))
		}
		if err := r.Await(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFlushIsSoon: a flush is worth waiting for where its write begins now, has few bytes, and
// writes have been quick.
func TestFlushIsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := memstore.New(memstore.Options{})
		l, _ := start(t, disk, journal.Config{})
		want := func(soon bool, why string) {
			t.Helper()
			if l.Flush() != soon {
				t.Errorf("%s: soon is %t", why, !soon)
			}
		}
		synctest.Wait()
		want(false, "nothing to write")
		const most = 128<<10 - 3 // and the length before it
		l.Enqueue(make([]byte, most))
		want(true, "as many bytes as are quick")
		synctest.Wait()
		l.Enqueue(make([]byte, most+1))
		want(false, "more bytes")
		synctest.Wait()
		l.Begin()
		l.Enqueue([]byte("one"))
		want(false, "a request is open")
		l.End()
		synctest.Wait()
		disk.Delay(8*time.Millisecond + 8) // an eighth of it counts
		l.Enqueue([]byte("one"))
		want(true, "the disk was quick so far")
		synctest.Wait()
		l.Enqueue([]byte("two"))
		want(false, "a write is under way")
		if err := l.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.Enqueue([]byte("three"))
		want(false, "the disk is slow")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
