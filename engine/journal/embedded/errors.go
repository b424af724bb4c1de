package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/journal"
)

// typed wraps ErrFull around the errors that a full disk or a quota gives.
func typed(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// fileOf finds any other file that an error names.
var fileOf = regexp.MustCompile(`[^\s"':()]*\b(?:\d{6,}\.(?:sst|log|blob)|MANIFEST-\d+|OPTIONS-\d+)`)

// missingOf finds the number of a sorted file that is not there.
var missingOf = regexp.MustCompile(`file (\d{6,}) \(type (sst)able\)`)

// openError is the error of a database that does not open. A file that is not as it was written, or not there, is damage.
func (s *Store) openError(err error) error {
	if failed := s.err(); failed != nil {
		return failed
	}
	text := fmt.Sprintf("%+v", err)
	where := fileOf.FindString(err.Error())
	if at, ok := findLogDamage(err); ok {
		where = at.name
	}
	if m := missingOf.FindStringSubmatch(text); m != nil {
		where = m[1] + "." + m[2]
	}
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		return err
	}
	damaged := pebble.IsCorruptionError(err) || errors.Is(err, os.ErrNotExist) || errors.Is(err, pebble.ErrDBNotPristine)
	if !damaged && where == "" {
		return fmt.Errorf("cannot open journal %s: %w", s.cfg.Dir, typed(err))
	}
	if !filepath.IsAbs(where) {
		where = s.cfg.FS.PathJoin(s.cfg.Dir, where)
	}
	return &journal.DamageError{Where: where, Err: err}
}

// readError is the error of a read of what (about index): damage if pebble says so.
func (s *Store) readError(what string, index journal.Index, err error) error {
	if !pebble.IsCorruptionError(err) && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot read journal %s: %s: %w", s.cfg.Dir, what, err)
	}
	where := s.cfg.Dir + ", " + what
	if p := s.corrupt.Load(); p != nil {
		where = *p
	}
	return &journal.DamageError{Where: where, Index: index, Err: err}
}
