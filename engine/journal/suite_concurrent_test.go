package journal_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"trunkline/engine/journal"
)

// shard is a lock with the indexes of what was decided under it.
type shard struct {
	mu    sync.Mutex
	count int
	order []journal.Index
}

// testConcurrent: many goroutines append under the locks of their shards, with barriers and
// snapshots beside; the log has every decision of a shard in the order in which its lock was held.
func testConcurrent(t *testing.T, p Place) {
	const workers, each, shards = 8, 300, 4
	l := begin(t, p, smallBlocks)
	var all [shards]shard
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := range each {
				decide(l.log, &all[(w+n)%shards], (w+n)%shards)
				if n%100 == 99 {
					if err := l.log.Barrier(context.Background()); err != nil {
						t.Errorf("barrier: %v", err)
					}
				}
				if w == 0 && n%100 == 50 {
					if err := l.snapshot(); err != nil {
						t.Errorf("snapshot: %v", err)
					}
				}
				l.log.Stats()
			}
		})
	}
	wg.Wait()
	if err := l.log.Barrier(context.Background()); err != nil || l.log.Durable() != workers*each+1 {
		t.Fatalf("barrier: %v, durable %d", err, l.log.Durable())
	}
	l.close()
	next := begin(t, p)
	defer next.close()
	for s := range all {
		for n, i := range all[s].order {
			want := fmt.Sprintf("%d.%d", s, n)
			if got, ok := next.state[i]; ok && got != want {
				t.Fatalf("record %d is %q, want %q", i, got, want)
			} else if !ok && i > next.from {
				t.Fatalf("record %d (%q) is missing", i, want)
			}
		}
	}
}

// decide appends the next decision of a shard under its lock.
func decide(l *journal.Log, s *shard, number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = append(s.order, l.Append(fmt.Appendf(nil, "%d.%d", number, s.count)))
	s.count++
}
