package journal

import (
	"errors"
	"fmt"
)

var (
	// ErrLocked means that another process, or another part of this one, has the store open.
	ErrLocked = errors.New("cannot open journal: it is in use by another process")
	// ErrClosed means that Close was called before.
	ErrClosed = errors.New("cannot use journal: it is closed")
	// ErrFailed means that the store failed: nothing becomes durable any more. Log.Err wraps it
	// with the error of the store.
	ErrFailed = errors.New("journal stopped after an error of its store")
	// ErrNotCommitted is in the error of a SnapshotWriter.Commit without effect, such as one
	// without room. The store works on, and the snapshot can be tried again.
	ErrNotCommitted = errors.New("no part of the snapshot was committed")
	// ErrNotReplayed means that Append, WriteSnapshot or Barrier came before the end of Replay.
	ErrNotReplayed = errors.New("cannot write to journal: it was not replayed to its end")
)

// ErrModeMismatch means that a store was made in another mode. The formats differ on purpose: what
// was written under a weaker promise must not be read as if it had been written under a stronger
// one.
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

// DamageError means that what is stored is not what was written. Only an operator repairs it:
// RecoverTo drops everything after an index.
type DamageError struct {
	// Where names the place for a person: a file, a block, a snapshot.
	Where string
	// Index is the first index that is lost: everything before it is good. 0 where it is not known.
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
