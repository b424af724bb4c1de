package idem

import (
	"runtime"
	"sync/atomic"
)

// reserve adds n to counter unless it would exceed limit by that. It compares before it adds: the
// counters never exceed the limits, not even for a moment.
func reserve(counter *atomic.Int64, n, limit int64) bool {
	for {
		c := counter.Load()
		if c > limit-n {
			return false
		}
		if counter.CompareAndSwap(c, c+n) {
			return true
		}
	}
}

// makeRoom drops what has expired, or else the least recently used entry that is not in flight. It
// may find none while another caller is between reserving room and linking its entry.
func (t *Table) makeRoom(now int64) {
	if t.sweepDue(now) == 0 && !t.evict(now) {
		runtime.Gosched()
	}
}

// evict drops the least recently used entry that is not in flight, if any. Caller holds no lock.
func (t *Table) evict(now int64) bool {
	for {
		var s *shard
		use := int64(none)
		for i := range t.shards {
			if first := t.shards[i].first.Load(); first < use {
				s, use = &t.shards[i], first
			}
		}
		if s == nil {
			return false
		}
		// If it was used or taken since: look again.
		if s.evict(use, now) {
			return true
		}
	}
}

// evict drops the least recently used entry if it was last used by use. Caller does not hold mu.
func (s *shard) evict(use, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.lists[byUse].head
	if e == nil || e.use > use {
		return false
	}
	s.drop(e, ChangeDropped, now)
	return true
}

// Sweep drops what has expired and returns the number. Begin does so too; a timer calls Sweep for
// times without requests. It locks one shard after the other, and none if nothing has expired.
func (t *Table) Sweep() int { return t.sweepDue(t.now()) }

// sweepDue drops what has expired at now. Caller holds no lock. due is raised before the shards are
// read, so that an entry that is settled meanwhile is seen or lowers it again.
func (t *Table) sweepDue(now int64) (dropped int) {
	due := t.due.Load()
	if now < due || !t.due.CompareAndSwap(due, none) {
		return 0
	}
	for i := range t.shards {
		dropped += t.shards[i].sweep(now)
	}
	return dropped
}

// sweep drops what has expired in s. Caller does not hold mu.
func (s *shard) sweep(now int64) (dropped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.lists[byEnd].head; e != nil; e = s.lists[byEnd].head {
		if expiry := s.table.expiry(e.at); now < expiry {
			s.table.noteDue(expiry)
			break
		}
		s.drop(e, ChangeDropped, now)
		dropped++
	}
	return dropped
}

// noteDue lowers due to expiry.
func (t *Table) noteDue(expiry int64) {
	for {
		due := t.due.Load()
		if due <= expiry || t.due.CompareAndSwap(due, expiry) {
			return
		}
	}
}
