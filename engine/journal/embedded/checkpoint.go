package embedded

import (
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/internal/pebbledir"
)

// Checkpoint makes in dir, which must not exist, a journal with every block that was acknowledged
// before the call, beside the writing of further ones. Sorted files are linked where the system can
// and copied where it cannot; the log is copied up to the end of a write. The caller has no
// snapshot written meanwhile (journal.Log.Checkpoint).
//
// rows, if not nil, makes a checkpoint of the rows in a directory that is not there: before that of
// the log, so that the log has the records of all rows.
//
// The stamp comes last, as in Copy. After an error nothing is left. It refuses while Full is true:
// ErrFull.
func (s *Store) Checkpoint(dir string, rows func(dir string) error) error {
	if err := s.checkpoint(dir, rows); err != nil {
		return fmt.Errorf("cannot copy journal %s to %s: %w", s.cfg.Dir, dir, typed(err))
	}
	return nil
}

func (s *Store) checkpoint(dir string, rows func(dir string) error) error {
	if err := s.own(); err != nil {
		return err
	}
	s.using.RLock()
	defer s.using.RUnlock()
	if err := s.err(); err != nil {
		return err
	}
	if s.Full() {
		return ErrFull
	}
	fsys := s.cfg.FS
	if _, err := fsys.Stat(dir); err == nil {
		return ErrThere
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	beside := dir + "." + RowsDir
	if err := s.fillCheckpoint(dir, beside, rows); err != nil {
		return errors.Join(err, fsys.RemoveAll(dir), fsys.RemoveAll(beside))
	}
	return nil
}

func (s *Store) fillCheckpoint(dir, beside string, rows func(dir string) error) error {
	fsys := s.cfg.FS
	if rows != nil {
		if err := rows(beside); err != nil {
			return err
		}
	}
	first := s.last.Load() // before the copy, so that the mark is not ahead of it
	if err := s.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return err
	}
	if err := s.err(); err != nil {
		return err
	}
	if rows != nil {
		if err := fsys.Rename(beside, fsys.PathJoin(dir, RowsDir)); err != nil {
			return err
		}
	}
	for _, name := range markNames {
		if err := pebbledir.Replace(fsys, dir, name, string(appendMark(nil, first, false))); err != nil {
			return err
		}
	}
	return writeStamp(fsys, dir, s.cfg.Mode)
}
