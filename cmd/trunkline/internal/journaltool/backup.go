package journaltool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"trunkline/engine/journal/embedded"
)

// ErrInside: a file or directory to be written would be in the directory that is read.
var ErrInside = errors.New("it is inside of the journal's own directory")

// Backup copies the journal in dir to dest, which must not be there and is removed again if that
// fails. A damaged journal is copied as it is; Verify of dest reports the damage. It returns how
// much was copied.
func Backup(ctx context.Context, dir, dest string, m Meter) (bytes uint64, err error) {
	if err := Outside(dir, dest); err != nil {
		return 0, err
	}
	begun := false
	err = embedded.Copy(ctx, embedded.Config{Dir: dir}, dest, func(done, total int64) {
		if !begun {
			begun = true
			m.Begin("copy", "bytes", uint64(total))
		}
		bytes = uint64(done)
		m.Set(bytes)
	})
	return bytes, err
}

// Outside returns an error that is ErrInside where path is in dir, by any of its names.
func Outside(dir, path string) error {
	real, err := trueName(dir)
	if err != nil {
		return err
	}
	to, err := trueName(path)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(real, to); err != nil || rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return fmt.Errorf("cannot write %s: %w", path, ErrInside)
	}
	return nil
}

// trueName resolves as much of a path as is there.
func trueName(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", path, err)
	}
	rest := ""
	for at := abs; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest), nil
		}
		if at == filepath.Dir(at) {
			return abs, nil
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
