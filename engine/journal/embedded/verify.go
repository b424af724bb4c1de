package embedded

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
)

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
