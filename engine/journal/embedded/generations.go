package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/journal"
)

// countLen is the length of the number of chunks, before the meta of a generation.
const countLen = 4

// flush returns when everything written so far is in sorted files, or when that failed: pebble would try without end.
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

// meta returns what is stored for a complete generation: a copy.
func (s *Store) meta(g uint64) (value []byte, found bool, err error) {
	v, closer, err := s.db.Get(appendKey(nil, kindMeta, s.cfg.Partition, g))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, s.readError(fmt.Sprintf("generation %d", g), 0, err)
	}
	value = append(value, v...)
	if err = closer.Close(); err == nil && len(value) < countLen {
		err = &journal.DamageError{Where: fmt.Sprintf("%s, generation %d", s.cfg.Dir, g), Err: errors.New("its meta is cut")}
	}
	return value, err == nil, err
}

// ListGenerations implements journal.Generations.
func (s *Store) ListGenerations() (list []journal.Generation, err error) {
	defer s.sober(new(bool), &err)
	if err := s.readable(); err != nil {
		return nil, err
	}
	lower, upper := keyRange(kindMeta, s.cfg.Partition)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, s.readError("the generations", 0, err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		value, found, err := s.meta(keyNumber(it.Key()))
		if err != nil {
			return nil, err
		}
		if found {
			list = append(list, journal.Generation{Number: keyNumber(it.Key()), Meta: value[countLen:]})
		}
	}
	if err := it.Error(); err != nil {
		return nil, s.readError("the generations", 0, err)
	}
	return list, nil
}

// ReadGeneration implements journal.Generations.
func (s *Store) ReadGeneration(g uint64, f func(chunk []byte) error) (err error) {
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
	key := appendKey(nil, kindChunk, s.cfg.Partition, g)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: key, UpperBound: after(append([]byte(nil), key...))})
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

// DropGeneration implements journal.Generations. It need not be synced: what a crash brings back is whole.
func (s *Store) DropGeneration(g uint64) error {
	if err := s.mayChange(); err != nil {
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
	if err := s.deleteGeneration(g); err != nil {
		return fmt.Errorf("cannot drop generation %d: %w", g, err)
	}
	return nil
}

func (s *Store) deleteGeneration(g uint64) error {
	b := s.db.NewBatch()
	defer b.Close()
	key := appendKey(nil, kindChunk, s.cfg.Partition, g)
	if err := b.DeleteRange(key, after(append([]byte(nil), key...)), nil); err != nil {
		return err
	}
	if err := b.Delete(appendKey(nil, kindMeta, s.cfg.Partition, g), nil); err != nil {
		return err
	}
	return s.commit(b, pebble.NoSync)
}
