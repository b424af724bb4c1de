package idem

import (
	"fmt"
	"math"

	"trunkline/codec/mpack"
)

// maxUse bounds the rank of a use in a snapshot, so that there are later ones.
const maxUse = math.MaxInt64 / 2

// snapshot is the change that makes one entry; the result is shared.
type snapshot struct {
	key     Key
	input   [32]byte
	attempt uint32
	again   bool // it is repeatable
	use, at int64
	result  *Stored
}

// change makes the change in c that makes such an entry.
func (n *snapshot) change(c *Change) {
	*c = Change{Kind: ChangeStarted, At: n.at, Key: n.key, Input: n.input, Attempt: n.attempt, Repeatable: n.again}
	if n.result != nil {
		c.Kind, c.Result = ChangeFinished, *n.result
	}
}

// appendSnapshots appends what s holds.
func (s *shard) appendSnapshots(dst []snapshot) []snapshot {
	for _, e := range s.entries {
		dst = append(dst, snapshot{e.key, e.input, e.attempt, e.repeatable, e.use, e.at, e.result})
	}
	return dst
}

// WriteSnapshot calls write with the records of a snapshot (see the package comment); a record is
// lent for the call. The snapshot is of one moment: all shards are locked while the entries are
// listed, well below a millisecond for a thousand, and none while write runs, which may be slow. It
// stops at the first error of write and returns it.
func (t *Table) WriteSnapshot(write func(rec []byte) error) error {
	list, index := t.moment()
	if index == 0 && len(list) == 0 {
		return nil // a program that does not know the table can read the snapshot
	}
	buf := mpack.AppendUint(mpack.AppendUint(mpack.AppendArray(nil, 2), changeVersion), index)
	if err := write(buf); err != nil {
		return err
	}
	var c Change
	for i := range list {
		list[i].change(&c)
		buf = mpack.AppendInt(mpack.AppendUint(mpack.AppendArray(buf[:0], 3), changeVersion), list[i].use)
		buf = AppendChange(buf, &c)
		if err := write(buf); err != nil {
			return err
		}
	}
	return nil
}

// moment returns what all shards hold at one moment, and the index of the last change by then. All
// other callers lock one shard at most, so the order of locking is free.
func (t *Table) moment() (list []snapshot, index uint64) {
	list = make([]snapshot, 0, t.Len())
	for i := range t.shards {
		t.shards[i].mu.Lock()
	}
	for i := range t.shards {
		list = t.shards[i].appendSnapshots(list)
		index = max(index, t.shards[i].last)
	}
	for i := range t.shards {
		t.shards[i].mu.Unlock()
	}
	return list, index
}

// LoadRecord restores what a record of a snapshot holds; rec is lent. Records come in any order,
// from one goroutine, before any replay: Apply then ignores changes up to the index of the
// snapshot.
func (t *Table) LoadRecord(rec []byte) error {
	d, err := openRecord(rec)
	if err != nil {
		return err
	}
	if d.Len() == 2 {
		return t.loadIndex(&d)
	}
	use, raw := d.Int(0, maxUse), d.Raw()
	if !d.Whole() {
		return fmt.Errorf("%w: it is no snapshot record", errBadChange)
	}
	var c Change
	if err := ParseChange(raw, &c); err != nil {
		return err
	}
	if c.Kind != ChangeStarted && c.Kind != ChangeFinished {
		return fmt.Errorf("%w: %s is no part of a snapshot", errBadChange, c.Kind)
	}
	t.replaying = true
	defer func() { t.replaying = false }()
	t.ticks.Store(max(t.ticks.Load(), use))
	return t.place(&c, use)
}

// loadIndex takes the index of the snapshot.
func (t *Table) loadIndex(d *changeReader) error {
	index := d.uint()
	if d.Bad {
		return fmt.Errorf("%w: it is no snapshot index", errBadChange)
	}
	t.head = max(t.head, index)
	s := &t.shards[0]
	s.mu.Lock()
	s.last = max(s.last, t.head)
	s.mu.Unlock()
	return nil
}
