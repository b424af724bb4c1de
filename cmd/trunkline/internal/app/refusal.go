package app

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"trunkline/engine/journal"
)

// unrecovered is the error of a recovery whose log was open: end is its last index.
type unrecovered struct {
	err error
	end journal.Index
}

// Error implements error.
func (e *unrecovered) Error() string { return e.err.Error() }

// Unwrap returns what was found.
func (e *unrecovered) Unwrap() error { return e.err }

// Hint describes what to do about an error of Run that comes from the store: damage, a directory in
// use, another mode. It is empty for other errors.
func Hint(err error) string {
	var damage *journal.DamageError
	var mismatch *journal.ErrModeMismatch
	switch {
	case err == nil:
		return ""
	case errors.As(err, &mismatch):
		return fmt.Sprintf("the directory was made with store.mode=%s and the settings say %s: set store.mode=%s, or name another store.dir",
			mismatch.Made, mismatch.Asked, mismatch.Made)
	case errors.As(err, &damage):
		return damageHint(err, damage)
	case errors.Is(err, journal.ErrLocked):
		return "another server uses this directory: stop it, or name another store.dir"
	}
	return ""
}

const copyFirst = "; 'trunkline store verify' says what is lost, and a copy made first can be tried again"

func damageHint(err error, d *journal.DamageError) string {
	switch {
	case strings.Contains(d.Where, "generation ") && !beyondLog(err, d):
		end := journal.Index(math.MaxUint64)
		if u := (*unrecovered)(nil); errors.As(err, &u) {
			end = u.end
		}
		return fmt.Sprintf("serve --recover-to-index %d gives up the damaged snapshot and uses the one before, if the log reaches back to it%s", end, copyFirst)
	case d.Index > 1:
		return fmt.Sprintf("serve --recover-to-index %d keeps what is before%s", d.Index-1, copyFirst)
	case d.Index == 1:
		return "nothing is left before the damage: restore a copy, or move the directory away to start empty"
	}
	return "it is not known what is left before the damage, 'trunkline store verify' may tell: restore a copy, or move the directory away to start empty"
}

// beyondLog reports whether a snapshot is refused because the log lost its end. Only then it names
// the index after that end.
func beyondLog(err error, d *journal.DamageError) bool {
	u := (*unrecovered)(nil)
	return d.Index > 0 && !errors.As(err, &u)
}
