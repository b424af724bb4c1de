package threadstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"trunkline/engine/journal"
)

// The rows of a node that follows the journal of others. It stores rows as it applies records,
// which are durable by then. Its rows have a mark: the name of the archive that they belong to, and
// the index up to which they are whole. A crash keeps a prefix of what was put, so the mark never
// has more than there is. A start brings the rows to where the archive of the snapshot ends: what
// is missing comes from the archive, and rows without its name are removed. From there on the
// journal is replayed.

// archivedAt takes over that rows were archived, by the record at an index. All rows before it are
// stored.
func (r *replay) archivedAt(rec *archived, index journal.Index) error {
	e := r.e
	if e.archive.to == nil || rec.UpTo <= e.archive.has.UpTo {
		return nil // the snapshot has it
	}
	e.archive.has.add(rec)
	return r.takeOver(index, rec.At)
}

// rebuiltAt takes over another archive, likewise.
func (r *replay) rebuiltAt(s *archiveState, index journal.Index) error {
	if r.e.archive.to == nil || s.UpTo <= r.e.archive.has.UpTo {
		return nil // the snapshot has it
	}
	r.e.archive.has = *s
	return r.takeOver(index, 0)
}

// takeOver marks the rows before an index, all of which are stored, as those of the archive.
func (r *replay) takeOver(index journal.Index, at int64) error {
	e := r.e
	if e.erasures.merging.TryLock() { // a snapshot comes behind an erasure
		go func() {
			defer e.erasures.merging.Unlock()
			_ = e.mergeRows() // the next snapshot tries again
		}()
	}
	if err := errors.Join(e.storeAll(index), r.store(index)); err != nil { // the latter forgets jobs
		return err
	}
	if err := e.expire(at); err != nil {
		return err
	}
	if err := e.setMark(index); err != nil {
		return err
	}
	// Without it a later start has more to do.
	_, _ = e.disk.Flush(index)
	return nil
}

// join removes the rows of a node whose snapshot has no archive: the journal has all of them. It is
// called before the first record, and does nothing afterwards.
func (r *replay) join() error {
	if r.e.archive.to == nil || r.joined {
		return nil
	}
	r.joined = true
	return r.e.clear()
}

// rejoin brings the rows to where the archive of a snapshot ends. All threads are loaded.
func (r *replay) rejoin(s *archiveState) error {
	e := r.e
	if e.archive.to == nil {
		return nil
	}
	r.joined, e.archive.has = true, *s
	mark, known, err := e.mark(s.Lineage)
	if err != nil {
		return err
	}
	if !known {
		if err := e.clear(); err != nil {
			return err
		}
	}
	for i := range s.Sets {
		set := &s.Sets[i]
		if set.UpTo <= mark {
			continue
		}
		if err := r.restore(set, mark); err != nil {
			return fmt.Errorf("cannot restore rows: %w", err)
		}
		if err := e.setMark(set.UpTo); err != nil {
			return err
		}
	}
	for _, t := range r.threads {
		t.cut = false // what is replayed has the numbers behind
	}
	e.stored.Store(s.UpTo)
	if mark == s.UpTo {
		return nil
	}
	// Rows behind it are put again. It is lowered on the disk before: those may be of an end of the
	// journal that was given up.
	if err := e.setMark(s.UpTo); err != nil {
		return err
	}
	_, err = e.disk.Flush(s.UpTo)
	return err
}

// restorer puts records of the archive into the rows.
type restorer struct {
	r   *replay
	hot hot
}

// restore puts the rows of a set behind an index.
func (r *replay) restore(set *archivedSet, after journal.Index) error {
	x := &restorer{r: r, hot: hot{size: r.e.hot.size}}
	in := blockReader{after: after, f: x.take}
	err := r.e.archive.to.Get(set.Name, set.Chunks, in.take)
	if err == nil {
		err = in.end()
	}
	if errors.Is(err, errBadArchive) {
		err = &journal.DamageError{Where: fmt.Sprintf("set %s of the archive of rows, chunk %d", set.Name, in.next), Err: err}
	}
	if err != nil {
		return err
	}
	if err := x.store(); err != nil {
		return err
	}
	r.e.storing.Lock()
	defer r.e.storing.Unlock()
	return r.e.keys.Seal()
}

// take takes a record. What it changes but for rows is in the snapshot.
func (x *restorer) take(index journal.Index, rec []byte) error {
	e := x.r.e
	made, err := decode(logged, rec)
	switch m := made.(type) {
	case nil:
		return err
	case *threadMade:
		e.addEvent(&x.hot, &m.Audit, index)
	case *statusChanged:
		e.addEvent(&x.hot, &m.Audit, index)
	case *participantsChanged:
		e.addEvent(&x.hot, &m.Audit, index)
	case *auditEvent:
		e.addEvent(&x.hot, m, index)
	case *jobState:
		e.addJob(&x.hot, m, index)
	case *rowBatch:
		if err := x.rows(m, index); err != nil {
			return err
		}
	case *erasure:
		if e.addEvent(&x.hot, &m.Audit, index); !m.purged() {
			return x.stored(func() error { return e.redact(m) })
		}
	case *threadCut:
		return x.stored(func() error { return e.cutRows(m.Number, m.First) })
	case *messagePosted:
		if err := x.message(m, index); err != nil {
			return err
		}
	default:
		return badKind(rec[0])
	}
	if x.hot.unstored.Load() > maxReplayed {
		return x.store()
	}
	return nil
}

func (x *restorer) message(m *messagePosted, index journal.Index) error {
	t := x.r.threads[m.Number]
	if t == nil || m.Seq > t.latest {
		return nil // the journal has it, behind the snapshot
	}
	row, err := parseRow(m.Row)
	if err != nil {
		return err
	}
	x.hot.add(m.Row, entry{thread: t, seq: m.Seq, index: index})
	x.r.know(t, &row, m.Seq)
	return nil
}

// stored calls f once what was taken is stored.
func (x *restorer) stored(f func() error) error {
	if err := x.store(); err != nil {
		return err
	}
	x.r.e.storing.Lock()
	defer x.r.e.storing.Unlock()
	return f()
}

// rows takes rows as they are. Messages come one by one, for their keys.
func (x *restorer) rows(m *rowBatch, index journal.Index) (err error) {
	for i := 0; i+1 < len(m.Rows) && err == nil; i += 2 {
		key, value := m.Rows[i], m.Rows[i+1]
		if len(key) != messageKeyBytes || key[0] != rowMessage {
			x.hot.add(slices.Concat(key, value), entry{index: index, key: uint32(len(key))})
			continue
		}
		posted := messagePosted{Number: binary.BigEndian.Uint64(key[1:])}
		last, run, n, bad := parseRun(key, value, new([]byte))
		err = bad
		for posted.Seq = last - n + 1; posted.Seq <= last && err == nil; posted.Seq++ {
			posted.Row, run, _ = nextInRun(run)
			err = x.message(&posted, index)
		}
	}
	return err
}

// store stores what was taken, and forgets it.
func (x *restorer) store() error {
	e := x.r.e
	e.storing.Lock()
	defer e.storing.Unlock()
	if _, err := e.storer.putAll(&x.hot, ^journal.Index(0)); err != nil {
		return err
	}
	for x.hot.drop(0) != nil {
	}
	return e.keepKeys()
}

// clear removes all rows.
func (e *Engine) clear() error {
	e.storing.Lock()
	defer e.storing.Unlock()
	var gone [][]byte
	for next, more := []byte(nil), true; more; {
		gone, more = gone[:0], false
		err := e.disk.Scan(next, nil, false, func(key, _ []byte) bool {
			if more = len(gone) == 2*expireStep; more {
				return false
			}
			gone = append(gone, append([]byte(nil), key...), nil)
			return true
		})
		if err != nil || len(gone) == 0 {
			return err
		}
		next = gone[len(gone)-2]
		if err := e.disk.Put(gone...); err != nil {
			return err
		}
	}
	return e.keys.Load(e.disk)
}

// mark returns the index up to which the rows of an archive are whole; known is false where the
// rows are not of it.
func (e *Engine) mark(lineage []byte) (index journal.Index, known bool, err error) {
	value, _, err := e.disk.Get(nil, []byte{rowMark})
	if err != nil || len(value) != lineageBytes+8 || string(value[:lineageBytes]) != string(lineage) {
		return 0, false, err
	}
	return binary.BigEndian.Uint64(value[lineageBytes:]), true, nil
}

// markArchived marks the rows of the owner and returns what the archive has, nil where there is
// none.
func (e *Engine) markArchived(index journal.Index) (*archiveState, error) {
	a := &e.archive
	if a.to == nil {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	has := archiveState{a.has.Lineage, a.has.UpTo, slices.Clone(a.has.Sets)}
	return &has, e.setMark(index)
}

// setMark puts the mark behind the rows.
func (e *Engine) setMark(index journal.Index) error {
	e.storing.Lock()
	defer e.storing.Unlock()
	value := binary.BigEndian.AppendUint64(append([]byte(nil), e.archive.has.Lineage...), index)
	return e.disk.Put([]byte{rowMark}, value)
}
