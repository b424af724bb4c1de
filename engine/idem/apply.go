package idem

import (
	"errors"
	"fmt"
	"hash/crc64"
	"sync/atomic"

	"trunkline/engine/store"
)

// errNotApplicable means that a change is of an unknown kind, or that executions in flight leave no
// room.
var errNotApplicable = errors.New("cannot apply change")

// Apply replays one journalled change, which has index, without journalling it. Changes come in
// their order, from one goroutine, before the table is used. A change that is in the table already,
// by its index, has no effect; one with the index 0 is always applied. What is in flight when the
// replay ends is Unknown. Under lower limits than before, entries are evicted as usual. c is lent.
func (t *Table) Apply(c *Change, index uint64) error {
	if c.Kind == 0 || c.Kind >= numChangeKinds {
		return fmt.Errorf("%w: kind %d", errNotApplicable, c.Kind)
	}
	if index != 0 && index <= t.head {
		return nil
	}
	t.head = max(t.head, index)
	t.replaying = true
	defer func() { t.replaying = false }()
	s := t.shardOf(&c.Key)
	switch c.Kind {
	case ChangeStarted, ChangeFinished:
		if err := t.place(c, t.tick()); err != nil {
			return err
		}
	case ChangeReleased:
		s.applyRelease(c)
	case ChangeDropped:
		s.remove(&c.Key)
	}
	s.mu.Lock()
	s.last = max(s.last, index)
	if e := s.entries[c.Key]; e != nil {
		e.index = index
	}
	s.mu.Unlock()
	return nil
}

// applyRelease makes an earlier attempt of c.Key unknown, or removes the key. Caller does not hold
// mu.
func (s *shard) applyRelease(c *Change) {
	if c.Attempt <= 1 {
		s.remove(&c.Key)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[c.Key]; e != nil && e.state == unknown {
		e.attempt = c.Attempt - 1
		s.settle(e, unknown, nil, c.At)
	}
}

// remove drops k, if it is there. Caller does not hold mu.
func (s *shard) remove(k *Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[*k]; e != nil {
		s.drop(e, ChangeDropped, 0)
	}
}

// place writes c over the entry of its key, with the given rank of use.
func (t *Table) place(c *Change, use int64) error {
	e := &entry{key: c.Key, input: c.Input, attempt: c.Attempt, repeatable: c.Repeatable, state: unknown, at: c.At, use: use}
	if c.Kind == ChangeFinished {
		e.state, e.result = done, c.Result.clone()
	}
	s := t.shardOf(&c.Key)
	s.remove(&c.Key)
	if e.size() > t.maxBytes && !t.noEviction {
		return nil
	}
	if !t.claim(&t.entries, 1, t.maxEntries, c.At) {
		return fmt.Errorf("%w: %d entries in flight", errNotApplicable, t.InFlight())
	}
	if !t.claim(&t.bytes, e.size(), t.maxBytes, c.At) {
		t.entries.Add(-1)
		return fmt.Errorf("%w: %d bytes beside %d", errNotApplicable, e.size(), t.Bytes())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[e.key] = e
	s.link(byUse, e)
	s.link(byEnd, e)
	t.noteDue(t.expiry(e.at))
	return nil
}

// claim reserves n of counter and evicts as far as that is needed and allowed.
func (t *Table) claim(counter *atomic.Int64, n, limit, now int64) bool {
	if t.noEviction {
		counter.Add(n)
		return true
	}
	for !reserve(counter, n, limit) {
		if !t.evict(now) {
			return false
		}
	}
	return true
}

// Digest returns a number that depends on the entries alone, not on their history or use; an
// execution in flight counts as Unknown. During requests it is of no one moment.
func (t *Table) Digest() (sum uint64) {
	table := crc64.MakeTable(crc64.ECMA)
	var buf []byte
	var list []snapshot
	var c Change
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		list = s.appendSnapshots(list[:0])
		s.mu.Unlock()
		for j := range list {
			if list[j].change(&c); c.Kind == ChangeStarted {
				c.At = 0 // a replay sets it again
			}
			buf = AppendChange(buf[:0], &c)
			sum += store.Mix(crc64.Checksum(buf, table))
		}
	}
	return sum
}

// First bytes of records in a store: of the table of tool calls, and of that of kernel IPC
// requests.
const (
	Tag        byte = 'i'
	RequestTag byte = 'r'
)

// Machine returns the table as a machine of a store whose records begin with tag.
func (t *Table) Machine(tag byte) store.Machine {
	return store.Machine{Tag: tag, State: t, Ordered: &recovered{table: t}}
}

// recovered implements store.Ordered.
type recovered struct {
	table  *Table
	latest int64
}

func (m *recovered) Recovering(on bool) {
	if !on {
		m.table.Recovered()
	}
}

func (m *recovered) Load(rec []byte) error { return m.table.LoadRecord(rec) }

func (m *recovered) Apply(rec []byte, index uint64) error {
	var c Change
	if err := ParseChange(rec, &c); err != nil {
		return err
	}
	m.latest = max(m.latest, c.At)
	return m.table.Apply(&c, index)
}

func (m *recovered) Latest() int64 { return m.latest }
