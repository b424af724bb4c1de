package journal

import (
	"errors"
	"fmt"
)

var (
	// ErrLocked says that another process, or another part of this one, has the store open.
	ErrLocked = errors.New("cannot open journal: it is in use by another process")
	// ErrClosed says that Close was called before.
	ErrClosed = errors.New("cannot use journal: it is closed")
	// ErrFailed says that the store gave an error: nothing becomes durable any more. Log.Err wraps it together with that error.
	ErrFailed = errors.New("journal stopped after an error of its store")
	// ErrNotCommitted is in the error of a SnapshotWriter.Commit of which nothing came about: there was no room, say. The store works
	// on, and the snapshot can be tried again.
	ErrNotCommitted = errors.New("no part of the snapshot was committed")
	// ErrNotReplayed says that Append, WriteSnapshot or Barrier came before Replay had run to the end.
	ErrNotReplayed = errors.New("cannot write to journal: it was not replayed to its end")
)

// ErrModeMismatch says that a store made in one mode was opened in another. Their formats differ on purpose: what was written
// under a weaker promise must not be read as if it had been written under a stronger one.
type ErrModeMismatch struct {
	// Made is the mode that the place was made in.
	Made Mode
	// Asked is the mode that it was opened with.
	Asked Mode
}

// Error implements error.
func (e *ErrModeMismatch) Error() string {
	return fmt.Sprintf("cannot open journal in mode %s: it was made in mode %s", e.Asked, e.Made)
}

// DamageError says that what is stored is not what was written. It is never repaired without an operator: RecoverTo gives up
// everything after an index.
type DamageError struct {
	// Where names the place for a person: a file, a block, a snapshot.
	Where string
	// Index is the first index that cannot be had: everything before it is good. 0 where no index is known.
	Index Index
	// Err is what was found.
	Err error
}

// Error implements error.
func (e *DamageError) Error() string {
	return fmt.Sprintf("journal is damaged at index %d (%s): %v", e.Index, e.Where, e.Err)
}

// Unwrap returns what was found.
func (e *DamageError) Unwrap() error { return e.Err }
