package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"trunkline/engine/journal"
)

// CheckStamp compares the layout and the mode of a directory with what Open would use, and returns
// its errors: *journal.ErrModeMismatch, *journal.DamageError, or that of a directory of another
// version. It reads one file, locks nothing and changes nothing. stamped is false for a directory
// that is empty or missing.
func CheckStamp(dir string, mode journal.Mode) (stamped bool, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return false, fmt.Errorf("cannot read journal %s: %w", dir, err)
	}
	stamped, err = checkStamp(disk, abs, mode)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return stamped, err
}
