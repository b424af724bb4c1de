package journal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
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

// LayoutError means that a directory was made by another version of the program, with files that
// are laid out in another way. It is no damage: the version that made it reads it.
type LayoutError struct {
	// Where names the directory.
	Where string
	// What is what differs: "layout", or "format" for that of the database below it.
	What string
	// Found is the number in the directory, Known that of this version.
	Found, Known uint64
}

// Error implements error.
func (e *LayoutError) Error() string {
	return fmt.Sprintf("cannot open journal %s: made by another version: it has %s %d, and this version knows %s %d", e.Where, e.What, e.Found, e.What, e.Known)
}

// Newer reports whether a later version made the directory.
func (e *LayoutError) Newer() bool { return e.Found > e.Known }

// Advice returns what to do about it.
func (e *LayoutError) Advice() string {
	made := "an earlier"
	if e.Newer() {
		made = "a later"
	}
	return made + " version of trunkline made this store: start that version, or carry the store over: 'trunkline store export' with that version, 'trunkline store import' with this one"
}

// CheckLayout reads the stamp of a directory: a first line of magic and the layout, and behind it,
// among others, a line of "format " and the format of the database. It returns a *LayoutError where
// one of the two numbers is another one than this version's, and nil for everything else, a stamp
// that is torn or none included. A later layout may have other lines.
func CheckLayout(where, magic, stamp string, layout, format uint64) error {
	for i, rest := 0, stamp; ; i++ {
		line, next, whole := strings.Cut(rest, "\n")
		if !whole {
			return nil
		}
		e := &LayoutError{Where: where, What: "layout", Known: layout}
		if i > 0 {
			e.What, e.Known, magic = "format", format, "format "
		}
		number, ok := strings.CutPrefix(line, magic)
		n, err := strconv.ParseUint(number, 10, 32)
		switch e.Found = n; {
		case i == 0 && (!ok || err != nil):
			return nil
		case ok && err == nil && e.Found != e.Known:
			return e
		}
		rest = next
	}
}
