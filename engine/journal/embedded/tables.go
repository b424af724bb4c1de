package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

// checkTables compares each SSTable with the manifest. Pebble compares sizes only: when it
// merges, it panics on a file whose keys are not between its bounds, one exchanged with another of
// its size. Damage inside a file is found by its readers. What is found here of a snapshot counts
// as a lost file of it.
func (s *Store) checkTables(fsys vfs.FS) (err error) {
	defer s.sober(new(bool), &err)
	o := s.options()
	o.EnsureDefaults()
	readers := o.MakeReaderOptions()
	for i := range s.seen {
		if err := s.checkTable(fsys, &s.seen[i], readers); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) checkTable(fsys vfs.FS, t *pebble.SSTableInfo, o sstable.ReaderOptions) error {
	path := s.tablePath(fsys, t)
	g, snapshot := s.snapshotOf(t)
	if snapshot && s.lost[g] != nil {
		return nil
	}
	smallest, largest, err := tableBounds(fsys, path, o)
	switch {
	case pebble.IsCorruptionError(err):
		if snapshot { // nothing is read of it that can be done without, and a merge would meet it
			s.lost[g], s.bad = &journal.DamageError{Where: path, Err: err}, append(s.bad, path)
		}
		return nil
	case err != nil:
		return s.readError(path, 0, err)
	case t.Virtual || isBound(smallest, t.Smallest) && (!t.Largest.IsExclusiveSentinel() || isBound(largest, t.Largest)):
		return nil
	}
	return &journal.DamageError{Where: path,
		Err: fmt.Errorf("it is another file: its keys are from %s to %s, and the manifest has %s to %s", smallest, largest, t.Smallest, t.Largest)}
}

// see lists the SSTables of the manifest: DB.SSTables fails where one is missing. The list does
// not change while the database is read-only.
func (s *Store) see() {
	s.seen = []pebble.SSTableInfo{}
	v := s.db.DebugCurrentVersion()
	for i := range v.Levels {
		for t := range v.Levels[i].All() {
			s.seen = append(s.seen, pebble.SSTableInfo{TableInfo: t.TableInfo(), Virtual: t.Virtual, BackingSSTNum: t.TableBacking.DiskFileNum})
		}
	}
}

// tables lists the SSTables.
func (s *Store) tables() ([]pebble.SSTableInfo, error) {
	if s.seen != nil {
		return s.seen, nil
	}
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, s.readError("the list of SSTables", 0, err)
	}
	return slices.Concat(levels...), nil
}

func (s *Store) tablePath(fsys vfs.FS, t *pebble.SSTableInfo) string {
	return fsys.PathJoin(s.cfg.Dir, fmt.Sprintf("%06d.sst", uint64(t.BackingSSTNum)))
}

// snapshotOf returns the one snapshot that a SSTable holds chunks of.
func (s *Store) snapshotOf(t *pebble.SSTableInfo) (g uint64, ok bool) {
	from, to := t.Smallest.UserKey, t.Largest.UserKey
	if t.Virtual || !s.ofKind(kindChunk, from) || !s.ofKind(kindChunk, to) || keyNumber(from) != keyNumber(to) {
		return 0, false
	}
	return keyNumber(from), true
}

// checkSizes compares the SSTables with the manifest, as pebble does at an opening. A missing
// or cut file is damage, unless it holds a part of one snapshot alone: then that snapshot is lost.
func (s *Store) checkSizes(fsys vfs.FS) error {
	s.lost, s.bad = map[uint64]error{}, nil
	s.see()
	for i := range s.seen {
		damage, err := s.checkSize(fsys, &s.seen[i])
		if err != nil {
			return err
		}
		if damage == nil {
			continue
		}
		g, ok := s.snapshotOf(&s.seen[i])
		if !ok {
			return damage
		}
		s.lost[g] = damage
		if path := s.tablePath(fsys, &s.seen[i]); !errors.Is(damage, os.ErrNotExist) {
			s.bad = append(s.bad, path)
		}
	}
	return nil
}

func (s *Store) checkSize(fsys vfs.FS, t *pebble.SSTableInfo) (damage *journal.DamageError, err error) {
	path := s.tablePath(fsys, t)
	info, err := fsys.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &journal.DamageError{Where: path, Err: err}, nil
	case err != nil:
		return nil, fmt.Errorf("cannot open journal %s: %w", s.cfg.Dir, err)
	case !t.Virtual && uint64(info.Size()) != t.Size:
		return &journal.DamageError{Where: path, Err: fmt.Errorf("it has %d bytes, and the manifest has %d", info.Size(), t.Size)}, nil
	}
	return nil, nil
}

// isBound compares a key of a file with a bound in the manifest. An ingested file has sequence
// number 0.
func isBound(key, bound pebble.InternalKey) bool {
	return string(key.UserKey) == string(bound.UserKey) && key.Kind() == bound.Kind() && (key.SeqNum() == bound.SeqNum() || key.SeqNum() == 0)
}

// tableBounds returns the first key of a SSTable, and the last end of its range deletions, if
// any. It reads one block of values and the range deletions.
func tableBounds(fsys vfs.FS, path string, o sstable.ReaderOptions) (smallest, largest pebble.InternalKey, err error) {
	r, err := pebbledir.OpenTable(fsys, path, o)
	if err != nil {
		return smallest, largest, err
	}
	smallest, err = firstPoint(r)
	if err == nil {
		smallest, largest, err = rangeBounds(r, o, smallest)
	}
	return smallest, largest, errors.Join(err, r.Close())
}

// firstPoint returns the first key that is no range deletion, or one without a user key.
func firstPoint(r *sstable.Reader) (k pebble.InternalKey, err error) {
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return k, err
	}
	if kv := it.First(); kv != nil {
		k = kv.K.Clone()
	}
	return k, errors.Join(it.Error(), it.Close())
}

// rangeBounds widens a first key to the range deletions of the file, and returns where they end.
func rangeBounds(r *sstable.Reader, o sstable.ReaderOptions, smallest pebble.InternalKey) (_, largest pebble.InternalKey, err error) {
	it, err := r.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err != nil || it == nil {
		return smallest, largest, err
	}
	defer it.Close()
	span, err := it.First()
	for ; span != nil && err == nil; span, err = it.Next() {
		if first := span.SmallestKey(); smallest.UserKey == nil || pebble.DefaultComparer.Compare(first.UserKey, smallest.UserKey) < 0 {
			smallest = first.Clone()
		}
		largest = span.LargestKey().Clone()
	}
	return smallest, largest, err
}

// look opens the database for reading only and compares it with the mark. An opening for writing
// would sort what is left of a damaged log and delete the log, and nothing could be saved.
func (s *Store) look() error {
	fsys := readFS{s.cfg.FS}
	was, err := readMarks(fsys, s.cfg.Dir)
	if err != nil {
		return err
	}
	s.was = was
	err = s.openForReading(fsys)
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		if err = s.absent(err); err != nil {
			return err
		}
		return s.own()
	}
	if err != nil {
		if err = s.lookBefore(fsys, err); err != nil {
			return err
		}
	}
	if err = s.checkTables(fsys); err != nil { // before pebble reads one: it panics on some that were exchanged
		return err
	}
	if err = s.readEarlyMetas(); err != nil {
		return err
	}
	first, last, err := s.lastBlock(s.db, maxIndex)
	if err != nil {
		return err
	}
	s.last.Store(first)
	if s.cut == nil {
		if err = s.compare(first, last); err != nil {
			return err
		}
	}
	if first != 0 && !s.was.closed {
		s.log.Warn("journal was not closed; its log was read up to the last whole block", "last_block", first, "marked", s.was.first)
	}
	return nil
}

// compare compares the last block, whose records are first to last, with the marks.
func (s *Store) compare(first, last journal.Index) error {
	damage := s.missing(first, last)
	switch {
	case damage != nil && !s.cfg.AcceptLoss:
		return damage
	case damage != nil:
		s.log.Warn("journal opens with a loss that was accepted", "err", damage)
	case len(s.was.lost) > 0:
		s.log.Warn("journal has lost one of its two marks, or is of an earlier version: the mark is made again", "files", s.was.lost)
	}
	return nil
}

// absent looks whether a directory without a database is a new one.
func (s *Store) absent(err error) error {
	names, failed := s.cfg.FS.List(s.cfg.Dir)
	if failed != nil {
		return fmt.Errorf("cannot read journal %s: %w", s.cfg.Dir, failed)
	}
	holds := func(name string) bool { k := kindOf(name); return k == fileLog || k == fileTable }
	if s.was.first > 0 || slices.ContainsFunc(names, holds) {
		return &journal.DamageError{Where: s.cfg.FS.PathJoin(s.cfg.Dir, "MANIFEST"), Err: err}
	}
	return nil
}

// openForReading opens the database as fsys shows it. What was in the log stays in memory.
func (s *Store) openForReading(fsys vfs.FS) error {
	o := s.options()
	s.torn = tornTail{}
	o.ReadOnly, o.FS, o.Logger = true, fsys, &s.torn
	o.DisableConsistencyCheck = true // checkSizes is less strict where a snapshot alone is lost
	db, err := s.openDB(o)
	if err == nil {
		s.db, err = db, s.torn.look(fsys, s.cfg.Dir)
	}
	if err == nil {
		err = s.checkSizes(fsys)
	}
	return err
}

// missing returns what is wrong where the last block, whose records are first to last, is before
// the marks, or where both marks are lost: nothing else shows then that a log is gone.
func (s *Store) missing(first, last journal.Index) *journal.DamageError {
	switch {
	case s.was.first > first:
		return &journal.DamageError{Where: s.cfg.Dir, Index: last + 1,
			Err: fmt.Errorf("the last block is at %d, but one at %d was synced: log files are cut, changed or missing", first, s.was.first)}
	case !s.was.ok && (last > 0 || !s.was.begun):
		return &journal.DamageError{Where: s.cfg.FS.PathJoin(s.cfg.Dir, markName), Index: last + 1,
			Err: fmt.Errorf("it and %s are missing or torn: whether the log is whole is not known", secondMarkName)}
	}
	return nil
}
