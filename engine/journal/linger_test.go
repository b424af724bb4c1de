package journal_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

// lingerRig is a log over a disk that takes writeTime, with clients that wait for each reply.
type lingerRig struct {
	*journal.Log
	mu      sync.Mutex
	durable sync.Cond
}

const writeTime = time.Millisecond

func newLingerRig(t *testing.T) *lingerRig {
	disk, r := memstore.New(memstore.Options{}), &lingerRig{}
	r.durable.L = &r.mu
	r.Log, _ = start(t, disk, journal.Config{OnDurable: func(journal.Index) {
		r.mu.Lock()
		r.durable.Broadcast()
		r.mu.Unlock()
	}})
	disk.Delay(writeTime)
	return r
}

// clients starts n clients, each of which sends again some time after its reply, until the returned
// function is called.
func (r *lingerRig) clients(n int, think func(i int) time.Duration) (stop func()) {
	var running sync.WaitGroup
	over := make(chan struct{})
	for i := range n {
		running.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(think(i)):
				}
				r.request()
			}
		})
	}
	return func() { close(over); running.Wait() }
}

func (r *lingerRig) request() {
	index := r.Enqueue([]byte("record"))
	r.Flush()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.Durable() < index {
		r.durable.Wait()
	}
}

// during returns what the log wrote in some time, once it has been in use for a while.
func (r *lingerRig) during(d time.Duration) (groups, records uint64) {
	time.Sleep(time.Second)
	before := r.Stats()
	time.Sleep(d)
	after := r.Stats()
	return after.Groups - before.Groups, after.Records - before.Records
}

// TestLingerFillsGroups: clients that send again soon after a reply share one group, not two that
// take turns.
func TestLingerFillsGroups(t *testing.T) {
	for name, think := range map[string]func(i int) time.Duration{
		"all soon":      func(i int) time.Duration { return time.Duration(i+1) * writeTime / 100 },
		"one straggler": func(i int) time.Duration { return time.Duration(i+1+i/31*1000) * writeTime / 100 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLingerRig(t)
				stop := r.clients(32, think)
				if groups, records := r.during(time.Second); records < 28*groups {
					t.Errorf("%d records in %d groups", records, groups)
				}
				stop()
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestNoLingerForRecordsThatComeByTheirOwnClock: where records come whether or not others were
// acknowledged, they hardly wait longer than for the write that is under way.
func TestNoLingerForRecordsThatComeByTheirOwnClock(t *testing.T) {
	for name, c := range map[string]struct{ every, most time.Duration }{
		"many": {writeTime / 20, 155 * writeTime / 100}, // half a write, and their own
		"few":  {3 * writeTime, 105 * writeTime / 100},  // their own write
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const requests = 20_000
				r := newLingerRig(t)
				var sent sync.WaitGroup
				var took atomic.Int64
				for range requests {
					time.Sleep(c.every)
					sent.Go(func() {
						begin := time.Now()
						r.request()
						took.Add(int64(time.Since(begin)))
					})
				}
				sent.Wait()
				if mean := time.Duration(took.Load() / requests); mean > c.most {
					t.Errorf("a request took %s, at most %s was to be expected", mean, c.most)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestLingerEnds: a record whose company does not come is written after the linger's time, and at
// once at the end.
func TestLingerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLingerRig(t)
		crowd := func() {
			for range 31 {
				r.Enqueue([]byte("record"))
			}
			r.request()
		}
		for range 100 {
			crowd()
		}
		begin := time.Now()
		r.request()
		if took := time.Since(begin); took < 2*writeTime || took > writeTime+2*journal.MaxLinger {
			t.Errorf("a lonely record took %s", took)
		}
		crowd() // the first one without a linger
		crowd()
		begin = time.Now()
		r.Enqueue([]byte("last"))
		r.Flush()
		if err := r.Close(); err != nil || r.Durable() != r.Appended() || time.Since(begin) != writeTime {
			t.Errorf("close: %v after %s, durable %d of %d", err, time.Since(begin), r.Durable(), r.Appended())
		}
	})
}
