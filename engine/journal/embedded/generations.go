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

type generationWriter struct {
	s     *Store
	g     uint64
	seq   uint32
	batch *pebble.Batch
	done  bool
}

// BeginGeneration implements journal.Generations.
func (s *Store) BeginGeneration(g uint64) (journal.GenerationWriter, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	_, found, err := s.meta(g)
	if err != nil {
		return nil, err
	}
	if found {
		return nil, fmt.Errorf("cannot begin generation %d: it is complete", g)
	}
	if err := s.DropGeneration(g); err != nil {
		return nil, err
	}
	return &generationWriter{s: s, g: g, batch: s.db.NewBatch()}, nil
}

// Write implements journal.GenerationWriter.
func (w *generationWriter) Write(chunk []byte) error {
	switch {
	case w.done:
		return fmt.Errorf("cannot write to generation %d: it is committed or aborted", w.g)
	case len(chunk) == 0 || len(chunk) > journal.MaxChunkBytes:
		return fmt.Errorf("cannot write to generation %d: chunk of %d bytes, want 1 to %d", w.g, len(chunk), journal.MaxChunkBytes)
	case w.seq == ^uint32(0):
		return fmt.Errorf("cannot write to generation %d: more than %d chunks", w.g, w.seq)
	}
	w.batch.Reset()
	if err := w.batch.Set(appendChunkKey(nil, w.s.cfg.Partition, w.g, w.seq), chunk, nil); err != nil {
		return fmt.Errorf("cannot write to generation %d: %w", w.g, err)
	}
	if err := w.s.commit(w.batch, pebble.NoSync); err != nil {
		return fmt.Errorf("cannot write to generation %d: %w", w.g, err)
	}
	w.seq++
	return nil
}

// Commit implements journal.GenerationWriter. First the chunks go into sorted files: whoever verifies the generation then reads
// the disk, and not the memory it was written to.
func (w *generationWriter) Commit(meta []byte) error {
	if w.done {
		return fmt.Errorf("cannot commit generation %d: it is committed or aborted", w.g)
	}
	if len(meta) > journal.MaxMetaBytes {
		return fmt.Errorf("cannot commit generation %d: meta of %d bytes, at most %d", w.g, len(meta), journal.MaxMetaBytes)
	}
	err := w.s.flush()
	if err == nil {
		err = w.commitMeta(meta)
	}
	if err != nil {
		return fmt.Errorf("cannot commit generation %d: %w", w.g, err)
	}
	w.done = true
	return w.batch.Close()
}

func (w *generationWriter) commitMeta(meta []byte) error {
	w.batch.Reset()
	value := append(binary.BigEndian.AppendUint32(nil, w.seq), meta...)
	if err := w.batch.Set(appendKey(nil, kindMeta, w.s.cfg.Partition, w.g), value, nil); err != nil {
		return err
	}
	if err := w.s.commit(w.batch, pebble.Sync); err != nil {
		return err
	}
	w.s.fs.sync()
	return w.s.err()
}

// Abort implements journal.GenerationWriter.
func (w *generationWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	return errors.Join(w.batch.Close(), w.s.DropGeneration(w.g))
}

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
func (s *Store) ListGenerations() ([]journal.Generation, error) {
	if s.closed.Load() {
		return nil, journal.ErrClosed
	}
	lower, upper := keyRange(kindMeta, s.cfg.Partition)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, s.readError("the generations", 0, err)
	}
	defer it.Close()
	var list []journal.Generation
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
func (s *Store) ReadGeneration(g uint64, f func(chunk []byte) error) error {
	if s.closed.Load() {
		return journal.ErrClosed
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
	return s.readChunks(it, g, binary.BigEndian.Uint32(value), f)
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
	if err := s.err(); err != nil {
		return err
	}
	b := s.db.NewBatch()
	defer b.Close()
	key := appendKey(nil, kindChunk, s.cfg.Partition, g)
	err := b.DeleteRange(key, after(append([]byte(nil), key...)), nil)
	if err == nil {
		err = b.Delete(appendKey(nil, kindMeta, s.cfg.Partition, g), nil)
	}
	if err == nil {
		err = s.commit(b, pebble.NoSync)
	}
	if err != nil {
		return fmt.Errorf("cannot drop generation %d: %w", g, err)
	}
	return nil
}
