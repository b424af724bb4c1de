package embedded

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/journal"
)

// countLen is the length of the number of chunks, before the meta of a snapshot.
const countLen = 4

// flush returns when everything written so far is in SSTables, or when that failed: pebble
// would try without end.
func (s *Store) flush() error {
	if err := s.awaitRoom(); err != nil {
		return err
	}
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return typed(err)
	}
	tick := time.NewTicker(roomEvery)
	defer tick.Stop()
	for {
		select {
		case <-flushed:
			return s.err()
		case <-s.stop:
			return journal.ErrClosed
		case <-tick.C:
		}
		if err := s.err(); err != nil {
			return err
		}
		if s.space.is(flushFailing) {
			return s.space.flushError()
		}
	}
}

// meta returns what is stored for a complete snapshot: a copy.
func (s *Store) meta(g uint64) (value []byte, found bool, err error) {
	defer s.sober(new(bool), &err)
	v, closer, err := s.db.Get(appendChunkKey(nil, s.cfg.Partition, g, metaSeq))
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		if value, found = s.early.metas[g]; !found {
			return nil, false, nil
		}
		err = nil
	case err != nil:
		return nil, false, s.readError(fmt.Sprintf("generation %d", g), 0, err)
	default:
		value = append(value, v...)
		err = closer.Close()
	}
	if err == nil && len(value) < countLen {
		err = &journal.DamageError{Where: fmt.Sprintf("%s, generation %d", s.cfg.Dir, g), Err: errors.New("its meta is cut")}
	}
	return value, err == nil, err
}

// ListSnapshots implements journal.Snapshots.
func (s *Store) ListSnapshots() (list []journal.Snapshot, err error) {
	defer s.sober(new(bool), &err)
	if err := s.readable(); err != nil {
		return nil, err
	}
	numbers, err := s.numbers()
	if err != nil {
		return nil, err
	}
	for _, number := range numbers {
		g, found, err := s.snapshot(number)
		if err != nil {
			return nil, err
		}
		if found {
			list = append(list, g)
		}
	}
	return list, nil
}

// snapshot returns what is known of a snapshot. found is false for one that was dropped or is not
// complete. Its damage is in its Err, and is no error.
func (s *Store) snapshot(number uint64) (g journal.Snapshot, found bool, err error) {
	g.Number, g.Err = number, s.lost[number]
	value, found, err := s.meta(number)
	if err == nil && !found && s.early.err != nil {
		if found, err = s.hasChunks(number); found {
			err = s.early.err
		}
	}
	switch damage := (*journal.DamageError)(nil); {
	case errors.As(err, &damage):
		g.Err = cmp.Or(g.Err, err)
	case err != nil:
		return g, false, err
	case found:
		g.Meta = value[countLen:]
	}
	return g, found || g.Err != nil, nil
}

// numbers returns the numbers of all snapshots with a SSTable, rising, whatever is in the file.
// No file holds chunks of two of them, so damage of one hides no other.
func (s *Store) numbers() ([]uint64, error) {
	tables, err := s.tables()
	if err != nil {
		return nil, err
	}
	numbers := slices.Collect(maps.Keys(s.early.metas))
	for i := range tables {
		for _, key := range [][]byte{tables[i].Smallest.UserKey, tables[i].Largest.UserKey} {
			if s.ofKind(kindChunk, key) {
				numbers = append(numbers, keyNumber(key))
			}
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// ofKind reports whether a key is of a kind, with a number.
func (s *Store) ofKind(kind byte, key []byte) bool {
	return len(key) >= numberLen && string(key[:prefixLen]) == string(appendKey(nil, kind, s.cfg.Partition, 0)[:prefixLen])
}

// hasChunks reports whether anything of a snapshot can be seen.
func (s *Store) hasChunks(g uint64) (found bool, err error) {
	defer s.sober(new(bool), &err)
	it, err := s.db.NewIter(s.chunks(g))
	if err != nil {
		return false, s.readError(fmt.Sprintf("generation %d", g), 0, err)
	}
	found = it.First()
	if err := it.Close(); err != nil {
		return false, s.readError(fmt.Sprintf("generation %d", g), 0, err)
	}
	return found, nil
}

// whole is all of a snapshot: its chunks and its meta.
func (s *Store) whole(g uint64) pebble.KeyRange {
	key := appendKey(nil, kindChunk, s.cfg.Partition, g)
	return pebble.KeyRange{Start: key, End: after(append([]byte(nil), key...))}
}

// chunks are the bounds of all chunks of a snapshot, without its meta.
func (s *Store) chunks(g uint64) *pebble.IterOptions {
	return &pebble.IterOptions{LowerBound: appendKey(nil, kindChunk, s.cfg.Partition, g), UpperBound: appendChunkKey(nil, s.cfg.Partition, g, metaSeq)}
}

// ReadSnapshot implements journal.Snapshots.
func (s *Store) ReadSnapshot(g uint64, f func(chunk []byte) error) (err error) {
	calls := false
	defer s.sober(&calls, &err)
	if err := s.readable(); err != nil {
		return err
	}
	value, found, err := s.meta(g)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("cannot read generation %d: it is not there", g)
	}
	it, err := s.db.NewIter(s.chunks(g))
	if err != nil {
		return s.readError(fmt.Sprintf("generation %d", g), 0, err)
	}
	defer it.Close()
	return s.readChunks(it, g, binary.BigEndian.Uint32(value), func(chunk []byte) error {
		calls = true
		err := f(chunk)
		calls = err != nil
		return err
	})
}

func (s *Store) readChunks(it *pebble.Iterator, g uint64, count uint32, f func(chunk []byte) error) error {
	what := fmt.Sprintf("generation %d", g)
	var seq uint32
	for ok := it.First(); ok; ok = it.Next() {
		if got := binary.BigEndian.Uint32(it.Key()[numberLen:]); got != seq {
			break
		}
		chunk, err := it.ValueAndErr()
		if err != nil {
			return s.readError(what, 0, err)
		}
		if err := f(chunk); err != nil {
			return err
		}
		seq++
	}
	if err := it.Error(); err != nil {
		return s.readError(what, 0, err)
	}
	if seq != count {
		return &journal.DamageError{Where: s.cfg.Dir + ", " + what, Err: fmt.Errorf("chunk %d of %d is missing", seq, count)}
	}
	return nil
}

// DropSnapshot implements journal.Snapshots. It need not be synced: a crash restores all of it or
// nothing.
func (s *Store) DropSnapshot(g uint64) error {
	if err := s.own(); err != nil {
		return err
	}
	return s.drop(g)
}

func (s *Store) drop(g uint64) error {
	if w := s.writing; w != nil && w.g == g {
		if err := w.discard(); err != nil {
			return fmt.Errorf("cannot drop generation %d: %w", g, err)
		}
	}
	if !s.undone || g > s.dropped {
		s.undone, s.dropped = true, g
	}
	all := s.whole(g)
	if err := s.deleteRange(all.Start, all.End, pebble.NoSync); err != nil {
		return fmt.Errorf("cannot drop generation %d: %w", g, err)
	}
	return nil
}
