package rows

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

var (
	// errLocked means that another process, or another part of this one, has the rows open.
	errLocked = errors.New("they are in use by another process")
	// errClosed means that Close was called before.
	errClosed = errors.New("cannot use rows: they are closed")
	// errFull means that the disk has no room. Errors that wrap it wrap the error of the system
	// too.
	errFull = errors.New("no space left for the rows")
	// errRow means that a batch has a row whose key or value is out of bounds. Nothing of the batch
	// was put.
	errRow = errors.New("cannot put row")
)

// typed wraps errFull around the errors that a full disk or a quota gives.
func typed(err error) error {
	if pebbledir.IsFull(err) {
		return fmt.Errorf("%w: %w", errFull, err)
	}
	return err
}

// damaged reports whether an error comes from the content of the directory and not from the system.
// A missing file counts as content.
func damaged(err error) bool {
	if pebbledir.FromSystem(err) {
		return false
	}
	return pebble.IsCorruptionError(err) || errors.Is(err, os.ErrNotExist)
}

// readError is the error of a read: damage with the name of the file, unless the system refused it.
func (d *DB) readError(doing string, err error) error {
	if !damaged(err) {
		return fmt.Errorf("cannot %s rows %s: %w", doing, d.cfg.Dir, typed(err))
	}
	where, text := d.cfg.Dir, fmt.Sprintf("%+v", err)
	if name := pebbledir.FileIn(text); name != "" {
		where = d.cfg.FS.PathJoin(d.cfg.Dir, d.cfg.FS.PathBase(name))
	} else if name = pebbledir.MissingTable(text); name != "" {
		where = d.cfg.FS.PathJoin(d.cfg.Dir, name)
	}
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil && info.Path != "" {
		where = info.Path
	}
	return &journal.DamageError{Where: where, Err: err}
}

// openError is the error of a database that does not open. Pebble marks only some of what it cannot
// read as damage; what is left names a file, and is not the system's.
func (d *DB) openError(err error) error {
	var errno syscall.Errno
	if name := pebbledir.FileIn(err.Error()); name != "" && !damaged(err) && !errors.As(err, &errno) {
		return &journal.DamageError{Where: d.cfg.FS.PathJoin(d.cfg.Dir, d.cfg.FS.PathBase(name)), Err: err}
	}
	return d.readError("open", err)
}

// sober turns a panic of the database while it reads into damage: a file that was changed under it
// can cause one. A panic of the caller, in a function that gets what was read, stays a panic.
func (d *DB) sober(calls *bool, err *error) {
	if *calls {
		return
	}
	if r := recover(); r != nil {
		*err = d.panicError("reading", r)
	}
}

func (d *DB) panicError(doing string, value any) error {
	if err, ok := value.(error); ok && pebbledir.FromSystem(err) {
		return fmt.Errorf("panic while %s rows %s: %w", doing, d.cfg.Dir, typed(err))
	}
	return &journal.DamageError{Where: d.cfg.Dir, Err: fmt.Errorf("panic while %s: %v", doing, value)}
}
