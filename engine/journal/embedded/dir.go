package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
)

// stampName is the file that says what the directory is. It is in place before pebble makes its first file, so that files of
// pebble without it are not a journal of ours.
const stampName = "JOURNAL"

const stampVersion = "trunkline journal 1\n"

// realDir returns the one name of dir, made where there is none: locks of one process are told apart by name alone, so that two
// spellings of a directory would both open it.
func realDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		err = makeDir(vfs.Default, abs)
	}
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("cannot open journal: %w", typed(err))
	}
	return abs, nil
}

// makeDir makes dir and what is missing above it, and syncs each directory that got a new entry: a store that forgets its own
// directory in a power loss has lost everything.
func makeDir(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(dir); err == nil {
		return nil
	}
	parent := fsys.PathDir(dir)
	if parent != dir {
		if err := makeDir(fsys, parent); err != nil {
			return err
		}
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(fsys, parent)
}

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lockDir keeps every other opener out until the lock is closed.
func lockDir(fsys vfs.FS, dir string) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, fsys)
	if err == nil {
		return lock, nil
	}
	var path *fs.PathError
	held := strings.Contains(err.Error(), "lock held") || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES)
	if held && !errors.As(err, &path) {
		return nil, fmt.Errorf("%s: %w", dir, journal.ErrLocked)
	}
	return nil, fmt.Errorf("cannot lock journal %s: %w", dir, typed(err))
}

func stampText(m journal.Mode, f pebble.FormatMajorVersion) string {
	return fmt.Sprintf("%smode %s\nformat %d\n", stampVersion, m, uint64(f))
}

// checkStamp compares the stamp with what is asked for. Where there is none and the directory is empty, it makes it.
func checkStamp(fsys vfs.FS, dir string, mode journal.Mode) error {
	path := fsys.PathJoin(dir, stampName)
	got, err := readFile(fsys, path)
	if errors.Is(err, os.ErrNotExist) {
		return makeStamp(fsys, dir, mode)
	}
	if err != nil {
		return fmt.Errorf("cannot read journal %s: %w", path, err)
	}
	for _, made := range []journal.Mode{journal.Always, journal.Interval} {
		if string(got) != stampText(made, (&Config{Mode: made}).format()) {
			continue
		}
		if made != mode {
			return fmt.Errorf("%s: %w", dir, &journal.ErrModeMismatch{Made: made, Asked: mode})
		}
		return nil
	}
	if strings.HasPrefix(string(got), "trunkline journal ") && !strings.HasPrefix(string(got), stampVersion) {
		return fmt.Errorf("cannot open journal %s: made by another version: %.40q", dir, got)
	}
	return &journal.DamageError{Where: path, Err: fmt.Errorf("not a stamp: %.80q", got)}
}

// makeStamp stamps an empty directory. LOCK is ours already; what a crash left of an earlier try is replaced.
func makeStamp(fsys vfs.FS, dir string, mode journal.Mode) error {
	names, err := fsys.List(dir)
	if err != nil {
		return fmt.Errorf("cannot read journal %s: %w", dir, err)
	}
	for _, name := range names {
		if name != "LOCK" && name != stampName+".new" {
			return &journal.DamageError{Where: fsys.PathJoin(dir, stampName), Err: fmt.Errorf("it is missing, and the directory is not empty (%s)", name)}
		}
	}
	return writeStamp(fsys, dir, mode)
}

// writeStamp puts the stamp in place at once and as a whole.
func writeStamp(fsys vfs.FS, dir string, mode journal.Mode) error {
	path := fsys.PathJoin(dir, stampName)
	err := writeFile(fsys, path+".new", stampText(mode, (&Config{Mode: mode}).format()))
	if err == nil {
		err = fsys.Rename(path+".new", path)
	}
	if err == nil {
		err = syncDir(fsys, dir)
	}
	if err != nil {
		return fmt.Errorf("cannot make journal %s: %w", dir, typed(err))
	}
	return nil
}

func writeFile(fsys vfs.FS, path, text string) error {
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write([]byte(text)); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// maxStampBytes bounds what is read of a stamp: a file that is longer is none.
const maxStampBytes = 256

func readFile(fsys vfs.FS, path string) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(info.Size(), maxStampBytes))
	n, err := f.ReadAt(b, 0)
	if n == len(b) {
		err = nil
	}
	return b[:n], err
}
