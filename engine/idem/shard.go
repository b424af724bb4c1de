package idem

import (
	"sync"
	"sync/atomic"
)

// shard is one independently locked part of a table. All methods need mu, except where noted.
type shard struct {
	mu      sync.Mutex
	entries map[Key]*entry
	lists   [numOrders]list
	hits    uint64
	// last is the index of the last change recorded or applied here.
	last uint64
	// change is lent to the journal, so that a record does not allocate.
	change Change
	table  *Table
	// first is the rank of the least recently used entry that is not running.
	first atomic.Int64
	_     [64]byte // neighbours do not share a cache line
}

func (s *shard) init(t *Table) {
	s.table, s.entries = t, make(map[Key]*entry)
	s.first.Store(none)
}

// record gives the journal a change of e at a reading of the clock.
func (s *shard) record(kind ChangeKind, e *entry, at int64) {
	t := s.table
	if t.journal == nil || t.replaying {
		return
	}
	s.change = Change{Kind: kind, At: at, Key: e.key, Input: e.input, Attempt: e.attempt, Repeatable: e.repeatable}
	if kind == ChangeFinished {
		s.change.Result = *e.result
	}
	e.index = t.journal(&s.change)
	s.change = Change{}
	s.last = max(s.last, e.index)
}

// expired reports whether e is no longer valid at now.
func (s *shard) expired(e *entry, now int64) bool {
	return e.state != running && now >= s.table.expiry(e.at)
}

// find returns the entry of k that is valid at now, or nil. An expired one is dropped.
func (s *shard) find(k *Key, now int64) *entry {
	e := s.entries[*k]
	if e != nil && s.expired(e, now) {
		s.drop(e, ChangeDropped, now)
		return nil
	}
	return e
}

// touch makes e, which is not running, the most recently used.
func (s *shard) touch(e *entry) {
	s.unlink(byUse, e)
	e.use = s.table.tick()
	s.link(byUse, e)
}

// start adds an entry in flight, for which room is reserved.
func (s *shard) start(k *Key, input *[32]byte, now int64, repeatable bool) {
	e := &entry{key: *k, input: *input, attempt: 1, repeatable: repeatable, at: now, use: s.table.tick()}
	s.entries[*k] = e
	s.table.inFlight.Add(1)
	s.record(ChangeStarted, e, now)
}

// restart puts e, which is unknown, in flight.
func (s *shard) restart(e *entry, now int64) {
	s.unlink(byUse, e)
	s.unlink(byEnd, e)
	e.state, e.at, e.use = running, now, s.table.tick()
	e.attempt++
	s.table.inFlight.Add(1)
	s.record(ChangeStarted, e, now)
}

// settle makes e, in flight or unknown, st from now on, with r, whose bytes are reserved.
func (s *shard) settle(e *entry, st state, r *Stored, now int64) {
	was := e.state
	if was != running {
		s.unlink(byUse, e)
		s.unlink(byEnd, e)
	}
	e.state, e.result, e.at, e.use = st, r, now, s.table.tick()
	s.link(byUse, e)
	s.link(byEnd, e)
	s.table.noteDue(s.table.expiry(now))
	if was == running {
		s.table.inFlight.Add(-1)
	}
}

// drop removes e and records that before its room can be used again.
func (s *shard) drop(e *entry, kind ChangeKind, now int64) {
	t := s.table
	if e.state != running {
		s.unlink(byUse, e)
		s.unlink(byEnd, e)
	}
	delete(s.entries, e.key)
	s.record(kind, e, now)
	if e.state == running {
		t.inFlight.Add(-1)
	}
	t.bytes.Add(-e.size())
	t.entries.Add(-1)
}

// detach returns those who wait for e; they wait no longer. r is what they are going to get.
func (s *shard) detach(e *entry, r *Stored) (gone []Waiter) {
	gone, e.waiters = e.waiters, nil
	s.table.waiting.Add(-int64(len(gone)))
	if r != nil {
		s.hits += uint64(len(gone))
	}
	return gone
}
