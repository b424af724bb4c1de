package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

// stampName is the file that identifies the directory. It is made before pebble's first file, so
// files of pebble without it are not a journal of ours.
const stampName = "JOURNAL"

// stampLayout is the layout of this version, in the first line of the stamp.
const (
	stampMagic  = "trunkline journal "
	stampLayout = 1
)

// realDir returns the one name of dir, which it makes where it is missing: locks of one process
// differ by name alone, so two spellings of a directory would both open it.
func realDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		err = pebbledir.Make(pebbledir.Disk, abs)
	}
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("cannot open journal: %w", typed(err))
	}
	return abs, nil
}

// disk is the file system of the machine.
var disk vfs.FS = diskFS{pebbledir.Disk}

// diskFS leaves the time of change of a lock's directory as it was.
type diskFS struct{ vfs.FS }

// Lock implements vfs.FS.
func (d diskFS) Lock(name string) (io.Closer, error) {
	before, missing := os.Stat(name)
	lock, err := d.FS.Lock(name)
	if missing == nil {
		_ = os.Chtimes(name, time.Time{}, before.ModTime()) // fails for a file of another user, where it has no meaning
	}
	return lock, err
}

// Unwrap implements vfs.FS.
func (d diskFS) Unwrap() vfs.FS { return d.FS }

// lockDir keeps every other opener out until the lock is closed.
func lockDir(fsys vfs.FS, dir string) (*pebble.Lock, error) {
	lock, held, err := pebbledir.Lock(fsys, dir)
	switch {
	case held:
		return nil, fmt.Errorf("%s: %w", dir, journal.ErrLocked)
	case err != nil:
		return nil, fmt.Errorf("cannot lock journal %s: %w", dir, typed(err))
	}
	return lock, nil
}

func stampText(m journal.Mode, f pebble.FormatMajorVersion) string {
	return fmt.Sprintf("%s%d\nmode %s\nformat %d\n", stampMagic, stampLayout, m, uint64(f))
}

// checkStamp compares the stamp with the configuration. stamped is false for an empty directory.
func checkStamp(fsys vfs.FS, dir string, mode journal.Mode) (stamped bool, err error) {
	path := fsys.PathJoin(dir, stampName)
	got, err := pebbledir.Read(fsys, path, maxStampBytes)
	if errors.Is(err, os.ErrNotExist) {
		return false, checkEmpty(fsys, dir)
	}
	if err != nil {
		return false, fmt.Errorf("cannot read journal %s: %w", path, err)
	}
	return true, compareStamp(path, dir, string(got), mode)
}

func compareStamp(path, dir, got string, mode journal.Mode) error {
	for _, made := range []journal.Mode{journal.Always, journal.Interval} {
		if got != stampText(made, (&Config{Mode: made}).format()) {
			continue
		}
		if made != mode {
			return fmt.Errorf("%s: %w", dir, &journal.ErrModeMismatch{Made: made, Asked: mode})
		}
		return nil
	}
	known, moded := formatAlways, strings.Contains(got, "\nmode "+journal.Always.String()+"\n")
	if strings.Contains(got, "\nmode "+journal.Interval.String()+"\n") {
		known, moded = formatInterval, true
	}
	// Which format is known depends on the mode: without one, only the layout counts.
	var other *journal.LayoutError
	if err := journal.CheckLayout(dir, stampMagic, got, stampLayout, uint64(known)); errors.As(err, &other) && (moded || other.What == "layout") {
		return err
	}
	return &journal.DamageError{Where: path, Err: fmt.Errorf("not a stamp: %.80q", got)}
}

// checkEmpty refuses a directory with anything but LOCK and what a crash left of an earlier stamp.
func checkEmpty(fsys vfs.FS, dir string) error {
	name, err := pebbledir.Foreign(fsys, dir, stampName)
	switch {
	case err != nil:
		return fmt.Errorf("cannot read journal %s: %w", dir, err)
	case name != "":
		return &journal.DamageError{Where: fsys.PathJoin(dir, stampName), Err: fmt.Errorf("it is missing, and the directory is not empty (%s)", name)}
	}
	return nil
}

// makeStamp stamps an empty directory, which is locked now. Another opener may have been faster.
func makeStamp(fsys vfs.FS, dir string, mode journal.Mode) error {
	if stamped, err := checkStamp(fsys, dir, mode); stamped || err != nil {
		return err
	}
	return writeStamp(fsys, dir, mode)
}

// writeStamp puts the stamp in place at once and as a whole.
func writeStamp(fsys vfs.FS, dir string, mode journal.Mode) error {
	err := pebbledir.Replace(fsys, dir, stampName, stampText(mode, (&Config{Mode: mode}).format()))
	if err != nil {
		return fmt.Errorf("cannot make journal %s: %w", dir, typed(err))
	}
	return nil
}

// maxStampBytes bounds what is read of a stamp: a file that is longer is none.
const maxStampBytes = 256

// IsStore reports whether dir has a store, sound or not. It reads nothing of it.
func IsStore(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, stampName))
	return err == nil
}

// Checkpoint makes in dir, which must not exist, a journal with every block that was acknowledged
// before the call, beside the writing of further ones. SSTables are linked where the system can
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
