package journal_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

// TestARequestIsOneBlock: what is appended between Begin and End is in one block, whatever was
// asked for meanwhile, however much it is, and also when the log is closed in between.
func TestARequestIsOneBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := start(t, memstore.New(memstore.Options{}), journal.Config{MaxBlockBytes: 512, MaxQueueRecords: 100})
		want := func(why string, groups, durable uint64) {
			t.Helper()
			synctest.Wait()
			if g, d := l.Stats().Groups, l.Durable(); g != groups || d != durable {
				t.Errorf("%s: %d groups, durable up to %d; want %d, %d", why, g, d, groups, durable)
			}
		}
		base := l.Durable()
		l.Begin()
		l.Append(make([]byte, 10))
		want("in the middle", 0, base)
		l.Append(make([]byte, 10))
		l.End()
		want("at the end", 1, base+2)

		l.Begin()
		l.Append(make([]byte, 300))
		l.Append(make([]byte, 5000)) // the limit of a block is for requests, not within one
		want("a long request", 1, base+2)
		l.End()
		want("a long request's end", 2, base+4)

		l.Enqueue(make([]byte, 300))
		l.Begin()
		l.Append(make([]byte, 300)) // the first record of a request begins a block like any other
		want("a full block before a request", 3, base+5)
		l.End()
		want("a request in a block of its own", 4, base+6)

		l.Begin()
		l.Append(make([]byte, 10))
		l.Begin()
		l.Append(make([]byte, 10))
		l.End()
		want("one of two that overlap", 4, base+6)
		l.Append(make([]byte, 10))
		l.End()
		want("both of them", 5, base+9)
		l.Append(make([]byte, 10))
		want("one without company", 6, base+10)

		l.Begin()
		l.Append(make([]byte, 10))
		closed := make(chan error)
		go func() { closed <- l.Close() }()
		want("closing waits", 6, base+10)
		l.Append(make([]byte, 10))
		l.End()
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		want("closed", 7, base+12)
	})
}

// TestRequestsThatOverlapEndTheirBlock: only where no store would take a larger one.
func TestRequestsThatOverlapEndTheirBlock(t *testing.T) {
	f := func(more int, groups uint64) {
		synctest.Test(t, func(t *testing.T) {
			l, _ := start(t, memstore.New(memstore.Options{}), journal.Config{MaxQueueBytes: 4 * journal.MaxRecordBytes})
			l.Begin()
			const half = journal.MaxRecordBytes / 2
			room := journal.MaxStoredBlock - 2*half - 48 - 2*4 - 4 // beside the header, two lengths and the checksum
			l.Append(make([]byte, half))
			l.Append(make([]byte, half+room+more))
			l.End()
			synctest.Wait()
			if got := l.Stats().Groups; got != groups {
				t.Errorf("%d bytes more than a block holds are in %d groups, want %d", more, got, groups)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	f(0, 1)
	f(1, 2)
}

// TestCloseWaitsForARequestWithoutRecords: a request that appends nothing ends as well.
func TestCloseWaitsForARequestWithoutRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := start(t, memstore.New(memstore.Options{}), journal.Config{})
		l.Begin()
		closed := make(chan error)
		go func() { closed <- l.Close() }()
		synctest.Wait()
		l.End()
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
	})
}

// TestRequestsThatFollowEachOther: a block is written though each request begins before the one
// ahead of it has ended.
func TestRequestsThatFollowEachOther(t *testing.T) {
	f := func(name string, before func(l *journal.Log), done func(l *journal.Log) bool) {
		synctest.Test(t, func(t *testing.T) {
			l, _ := start(t, memstore.New(memstore.Options{}), journal.Config{})
			l.Begin()
			before(l)
			synctest.Wait()
			begun := 0
			for waited := false; !waited && begun <= 10*journal.MaxOverlap; {
				next := make(chan struct{})
				go func() {
					l.Begin()
					close(next)
				}()
				synctest.Wait()
				select {
				case <-next:
					begun++
				default:
					waited = true
				}
				l.End()
				<-next
				synctest.Wait()
			}
			if begun != journal.MaxOverlap || !done(l) {
				t.Errorf("%s: %d requests began first, want %d; done: %t", name, begun, journal.MaxOverlap, done(l))
			}
			l.End()
			_ = l.Close()
		})
	}
	f("a record", func(l *journal.Log) { l.Append(make([]byte, 10)) }, func(l *journal.Log) bool { return l.Durable() == l.Appended() })
	var closed atomic.Bool
	f("Close", func(l *journal.Log) {
		go func() {
			_ = l.Close()
			closed.Store(true)
		}()
	}, func(*journal.Log) bool { return closed.Load() })
}
