package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/journal"
)

// WriteBlock implements journal.Blocks. In steady state it does not allocate for a block of up to 1
// MiB. While the files of the database cannot be written it takes blocks until memory is full, and
// then waits at most StallTimeout. In mode Interval it also waits while unsynced blocks are older
// than maxUnsynced.
func (s *Store) WriteBlock(first journal.Index, block []byte) error {
	if last := s.last.Load(); first <= last {
		return fmt.Errorf("cannot write block %d after block %d", first, last)
	}
	if len(block) > journal.MaxStoredBlock {
		return fmt.Errorf("cannot write block %d: %d bytes, at most %d", first, len(block), journal.MaxStoredBlock)
	}
	if err := s.own(); err != nil {
		return fmt.Errorf("cannot write block %d: %w", first, err) // a closed store's batch may have another user by now
	}
	s.batch.Reset()
	s.key = appendKey(s.key[:0], kindBlock, s.cfg.Partition, first)
	if err := s.batch.Set(s.key, block, nil); err != nil {
		return fmt.Errorf("cannot write block %d: %w", first, err)
	}
	// In mode Interval logFS postpones the sync: the package comment has the reason.
	if err := s.commit(s.batch, pebble.Sync); err != nil {
		return fmt.Errorf("cannot write block %d: %w", first, err)
	}
	s.last.Store(first)
	if s.cfg.Mode == journal.Interval {
		if err := s.awaitSync(); err != nil {
			return fmt.Errorf("cannot write block %d: %w", first, err)
		}
	}
	return nil
}

// commit is the only way into the log. It looks at logFS too: pebble's commit returns nil after an
// error that it took for fatal.
func (s *Store) commit(b *pebble.Batch, o *pebble.WriteOptions) error {
	if s.space.is(flushFailing) {
		if err := s.awaitRoom(); err != nil {
			return err
		}
	}
	if err := b.Commit(o); err != nil {
		return typed(err)
	}
	return s.err()
}

const roomEvery = 20 * time.Millisecond

// awaitRoom keeps a write out of pebble's stall while flushes fail: not even Close could end that
// wait.
func (s *Store) awaitRoom() error {
	tick := time.NewTicker(roomEvery)
	defer tick.Stop()
	give := time.After(s.cfg.StallTimeout)
	for s.space.is(flushFailing) && s.db.Metrics().MemTable.Size >= memTables*memTableBytes {
		select {
		case <-tick.C:
		case <-s.stop:
			return journal.ErrClosed
		case <-give:
			return fmt.Errorf("%w: memory is full for %v: %w", ErrFull, s.cfg.StallTimeout, s.space.flushError())
		}
		if err := s.err(); err != nil {
			return err
		}
	}
	return s.err()
}

const flushPause = 100 * time.Millisecond

// pauseFlush delays flushes that follow a failed one: pebble repeats them at once, and would use a
// core to fill a full disk.
func (s *Store) pauseFlush() {
	if !s.space.is(flushFailing) {
		return
	}
	select {
	case <-time.After(flushPause):
	case <-s.stop:
	}
}

// Blocks implements journal.Blocks. It reads a view of the moment of the call. It allocates an
// iterator.
func (s *Store) Blocks(from journal.Index, f func(first journal.Index, block []byte) error) (err error) {
	calls := false
	defer s.sober(&calls, &err)
	if err := s.readable(); err != nil {
		return err
	}
	lower, upper := keyRange(kindBlock, s.cfg.Partition)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return s.readError("a block", from, err)
	}
	defer it.Close()
	next := from
	for ok := s.seekHolder(it, from); ok; ok = it.Next() {
		first := keyNumber(it.Key())
		block, err := it.ValueAndErr()
		if err != nil {
			return s.readError(fmt.Sprintf("the block at %d", first), first, err)
		}
		calls = true
		if err := f(first, block); err != nil {
			return err
		}
		calls = false
		next = first + 1
	}
	if err := it.Error(); err != nil {
		return s.readError(fmt.Sprintf("the blocks from %d", next), next, err)
	}
	return nil
}

// seekHolder moves it to the last block whose first is <= from, or to the first block.
func (s *Store) seekHolder(it *pebble.Iterator, from journal.Index) bool {
	key := appendKey(make([]byte, 0, chunkLen), kindBlock, s.cfg.Partition, from)
	if it.SeekLT(append(key, 0)) {
		return true
	}
	return it.Error() == nil && it.First()
}

// lastBlock returns the first and the last index of the last block below an index, 0 for none.
func (s *Store) lastBlock(db *pebble.DB, below journal.Index) (first, last journal.Index, err error) {
	lower, _ := keyRange(kindBlock, s.cfg.Partition)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: appendKey(nil, kindBlock, s.cfg.Partition, below)})
	if err != nil {
		return 0, 0, s.readError("the end of the log", 0, err)
	}
	if it.Last() {
		first = keyNumber(it.Key())
		var block []byte
		block, err = it.ValueAndErr()
		last = journal.LastOf(first, block)
	}
	if err = errors.Join(err, it.Close()); err != nil {
		return 0, 0, s.readError("the end of the log", 0, err)
	}
	return first, last, nil
}

// DropBlocks implements journal.Blocks.
func (s *Store) DropBlocks(upTo journal.Index) error {
	if err := s.own(); err != nil {
		return err
	}
	lower, upper := keyRange(kindBlock, s.cfg.Partition)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper, KeyTypes: pebble.IterKeyTypePointsOnly})
	if err != nil {
		return s.readError("the first blocks", 0, err)
	}
	keep, found := lower, it.SeekLT(append(appendKey(nil, kindBlock, s.cfg.Partition, upTo), 0))
	if found {
		keep = append([]byte(nil), it.Key()...)
		found = it.Prev()
	}
	if err := it.Close(); err != nil {
		return s.readError("the first blocks", 0, err)
	}
	if !found { // nothing is before the one to keep
		return nil
	}
	return s.deleteRange(lower, keep, pebble.NoSync)
}

// CutBlocks implements journal.Blocks.
func (s *Store) CutBlocks(from journal.Index) error {
	if err := s.own(); err != nil {
		return err
	}
	last, _, err := s.lastBlock(s.db, from)
	if err != nil {
		return err
	}
	if err = s.mark.lower(last); err != nil {
		return err
	}
	_, upper := keyRange(kindBlock, s.cfg.Partition)
	if err = s.deleteRange(appendKey(nil, kindBlock, s.cfg.Partition, from), upper, pebble.Sync); err != nil {
		return err
	}
	s.last.Store(last)
	return s.Sync()
}

func (s *Store) deleteRange(lower, upper []byte, o *pebble.WriteOptions) error {
	b := s.db.NewBatch()
	defer b.Close()
	if err := b.DeleteRange(lower, upper, nil); err != nil {
		return fmt.Errorf("cannot delete from journal: %w", err)
	}
	if err := s.commit(b, o); err != nil {
		return fmt.Errorf("cannot delete from journal: %w", err)
	}
	return nil
}

// Sync implements journal.Store.
func (s *Store) Sync() error {
	err := s.own()
	if err == nil {
		err = s.awaitRoom()
	}
	if err == nil {
		err = s.db.LogData(nil, pebble.Sync)
	}
	if err != nil {
		return fmt.Errorf("cannot sync journal: %w", typed(err))
	}
	s.syncAndMark()
	return s.err()
}

// The first byte of a key, in the order of the file: see doc.go.
const (
	kindBlock = 'b'
	kindChunk = 'c'
	kindMeta  = 'm' // of earlier versions
)

// metaSeq is the number of a meta among the chunks of its snapshot: behind all of them.
const metaSeq = ^uint32(0)

const (
	prefixLen = 1 + 4
	numberLen = prefixLen + 8
	chunkLen  = numberLen + 4
)

// appendKey appends the key of number n (the first index of a block, or a snapshot).
func appendKey(dst []byte, kind byte, partition uint32, n uint64) []byte {
	dst = append(dst, kind)
	dst = binary.BigEndian.AppendUint32(dst, partition)
	return binary.BigEndian.AppendUint64(dst, n)
}

func appendChunkKey(dst []byte, partition uint32, g uint64, seq uint32) []byte {
	return binary.BigEndian.AppendUint32(appendKey(dst, kindChunk, partition, g), seq)
}

// keyNumber returns the number in a key that appendKey made, or that starts with such a key.
func keyNumber(key []byte) uint64 { return binary.BigEndian.Uint64(key[prefixLen:numberLen]) }

// keyRange returns the bounds of all keys of a kind: from the first to before the last.
func keyRange(kind byte, partition uint32) (lower, upper []byte) {
	lower = appendKey(nil, kind, partition, 0)
	return lower, after(appendKey(nil, kind, partition, ^uint64(0)))
}

// after returns the first key after key and all keys that begin with it: no key has 0xff 8 times.
func after(key []byte) []byte {
	return append(key, 0xff, 0xff, 0xff, 0xff, 0xff)
}
