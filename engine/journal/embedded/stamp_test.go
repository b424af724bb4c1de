package embedded

import (
	"errors"
	"path/filepath"
	"testing"

	"trunkline/engine/journal"
)

// TestCheckStamp: a look at a directory is right while a store has it open, too.
func TestCheckStamp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	f := func(mode journal.Mode, want bool) error {
		t.Helper()
		stamped, err := CheckStamp(dir, mode)
		if stamped != want {
			t.Errorf("stamped: %v, want %v (%v)", stamped, want, err)
		}
		return err
	}
	if err := f(journal.Always, false); err != nil { // there is no directory
		t.Error(err)
	}
	s, err := Open(Config{Dir: dir, Mode: journal.Interval})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := f(journal.Interval, true); err != nil {
		t.Error(err)
	}
	var other *journal.ErrModeMismatch
	if err := f(journal.Always, true); !errors.As(err, &other) || other.Made != journal.Interval {
		t.Error(err)
	}
}
