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

// fromSystem reports whether an error is what the system answered, and not what a file holds. A file that is missing is no such
// answer: it is what the directory holds.
func fromSystem(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && errno != syscall.ENOENT
}

// panicError is the error of a panic of pebble in a place that reads: damage, unless an answer of the system led to it.
func panicError(dir, doing string, value any) error {
	if err, ok := value.(error); ok && fromSystem(err) {
		return fmt.Errorf("cannot read journal %s: panic while %s: %w", dir, doing, typed(err))
	}
	return &journal.DamageError{Where: dir, Err: fmt.Errorf("panic while %s: %v", doing, value)}
}

// fileOf finds any other file that an error names.
var fileOf = regexp.MustCompile(`[^\s"':()]*\b(?:\d{6,}\.(?:sst|log|blob)|MANIFEST-\d+|OPTIONS-\d+)`)

// missingOf finds the number of a sorted file that is not there.
var missingOf = regexp.MustCompile(`file (\d{6,}) \(type (sst)able\)`)

// openError is the error of a database that does not open. A file that was read and is not as it was written, or is not there, is
// damage; what the system refused or could not do is not, whichever file it names.
func (s *Store) openError(err error) error {
	if failed := s.err(); failed != nil { // the reason; err is what followed
		if !pebble.IsCorruptionError(failed) || fromSystem(failed) {
			return failed
		}
		err = failed
	}
	if fromSystem(err) {
		return fmt.Errorf("cannot open journal %s: %w", s.cfg.Dir, typed(err))
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
		return fmt.Errorf("cannot open journal %s: %w", s.cfg.Dir, err)
	}
	if !filepath.IsAbs(where) {
		where = s.cfg.FS.PathJoin(s.cfg.Dir, where)
	}
	return &journal.DamageError{Where: where, Err: err}
}

// readError is the error of a read of what (about index): damage if pebble says so and the system
// did not refuse it.
func (s *Store) readError(what string, index journal.Index, err error) error {
	if fromSystem(err) || !pebble.IsCorruptionError(err) && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot read journal %s: %s: %w", s.cfg.Dir, what, err)
	}
	where := s.cfg.Dir + ", " + what
	if p := s.corrupt.Load(); p != nil {
		where = *p
	}
	return &journal.DamageError{Where: where, Index: index, Err: err}
}

// sober makes damage of a panic of the database: it has some that a file which was changed under it can reach. One of the caller,
// in a function that is called with what was read, is the caller's.
func (s *Store) sober(calls *bool, err *error) {
	if s.owned.Load() || *calls {
		return
	}
	if r := recover(); r != nil {
		*err = panicError(s.cfg.Dir, "reading", r)
	}
}
