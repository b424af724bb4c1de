package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

// typed wraps ErrFull around the errors that a full disk or a quota gives.
func typed(err error) error {
	if pebbledir.IsFull(err) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// panicError is the error of a panic of pebble while it reads: damage, unless an error of the
// system led to it.
func panicError(dir, doing string, value any) error {
	if err, ok := value.(error); ok && pebbledir.FromSystem(err) {
		return fmt.Errorf("cannot read journal %s: panic while %s: %w", dir, doing, typed(err))
	}
	return &journal.DamageError{Where: dir, Err: fmt.Errorf("panic while %s: %v", doing, value)}
}

// openError is the error of a database that does not open. A file that is missing or not as written
// is damage. An error of the system is not, whichever file it names.
func (s *Store) openError(err error) error {
	if failed := s.err(); failed != nil { // the reason; err is what followed
		if !pebble.IsCorruptionError(failed) || pebbledir.FromSystem(failed) {
			return failed
		}
		err = failed
	}
	if pebbledir.FromSystem(err) {
		return fmt.Errorf("cannot open journal %s: %w", s.cfg.Dir, typed(err))
	}
	text := fmt.Sprintf("%+v", err)
	where := pebbledir.FileIn(err.Error())
	if at, ok := findLogDamage(err); ok {
		where = at.name
	}
	if name := pebbledir.MissingTable(text); name != "" {
		where = name
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

// readError is the error of a read: damage if pebble reports so and the system did not refuse it.
func (s *Store) readError(what string, index journal.Index, err error) error {
	if pebbledir.FromSystem(err) || !pebble.IsCorruptionError(err) && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot read journal %s: %s: %w", s.cfg.Dir, what, err)
	}
	where := s.cfg.Dir + ", " + what
	if p := s.corrupt.Load(); p != nil {
		where = *p
	}
	return &journal.DamageError{Where: where, Index: index, Err: err}
}

// sober turns a panic of the database into damage: a file that was changed under it can cause one.
// A panic of the caller, in a function that gets what was read, stays a panic.
func (s *Store) sober(calls *bool, err *error) {
	if s.owned.Load() || *calls {
		return
	}
	if r := recover(); r != nil {
		*err = panicError(s.cfg.Dir, "reading", r)
	}
}
