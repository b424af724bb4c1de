package journaltool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"trunkline/engine/journal/embedded"
)

// archiveSuffix is that of a backup in one file.
const archiveSuffix = ".tar"

// IsArchive reports whether a path names a backup in one file.
func IsArchive(path string) bool { return strings.HasSuffix(path, archiveSuffix) }

// progressOf returns a function that reports a copy to m.
func progressOf(m Meter, phase string, copied *uint64) func(done, total int64) {
	begun := false
	return func(done, total int64) {
		if !begun {
			begun = true
			m.Begin(phase, "bytes", uint64(total))
		}
		*copied = uint64(done)
		m.Set(*copied)
	}
}

// Archive writes the journal in dir to the file dest, which must not be there, as Backup does to a
// directory. The file gets its name when it is whole, synced and read again. It returns how much
// was written and the SHA-256 of the file.
func Archive(ctx context.Context, dir, dest string, m Meter) (written uint64, sum [sha256.Size]byte, err error) {
	if err = Outside(dir, dest); err != nil {
		return 0, sum, err
	}
	there := fmt.Errorf("cannot archive journal %s to %s: %w", dir, dest, embedded.ErrThere)
	if _, err = os.Lstat(dest); err == nil {
		return 0, sum, there
	}
	f, err := os.CreateTemp(filepath.Dir(dest), filepath.Base(dest)+".*.part")
	if err != nil {
		return 0, sum, err
	}
	h := sha256.New()
	err = embedded.Archive(ctx, embedded.Config{Dir: dir}, io.MultiWriter(f, h), progressOf(m, "copy", &written))
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		sum = [sha256.Size]byte(h.Sum(nil))
		err = sameSum(f.Name(), sum)
	}
	if err == nil {
		// A hard link does not replace a file that came meanwhile. Some file systems have none.
		if err = os.Link(f.Name(), dest); errors.Is(err, os.ErrExist) {
			err = there
		} else if err != nil {
			err = os.Rename(f.Name(), dest)
		}
	}
	if also := os.Remove(f.Name()); !errors.Is(also, os.ErrNotExist) {
		err = errors.Join(err, also)
	}
	if err == nil {
		err = syncDir(filepath.Dir(dest))
	}
	return written, sum, err
}

// sameSum reads a file again.
func sameSum(path string, want [sha256.Size]byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	if err = errors.Join(err, f.Close()); err == nil && !bytes.Equal(h.Sum(nil), want[:]) {
		err = fmt.Errorf("cannot archive to %s: it does not read as it was written", path)
	}
	return err
}

// Restore copies a backup, a directory or an archive, to dir, which must be missing or empty. After
// an error nothing is left. It returns how much was copied.
func Restore(ctx context.Context, from, dir string, m Meter) (copied uint64, err error) {
	progress := progressOf(m, "restore", &copied)
	info, err := os.Stat(from)
	if err != nil {
		return 0, fmt.Errorf("cannot restore %s: %w", from, err)
	}
	if info.IsDir() {
		if err = Outside(from, dir); err == nil {
			err = embedded.Restore(ctx, embedded.Config{Dir: from}, dir, progress)
		}
		return copied, err
	}
	f, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	err = embedded.Extract(ctx, embedded.Config{Dir: dir}, f, info.Size(), progress)
	return copied, errors.Join(err, f.Close())
}

// syncDir has the names in a directory on the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
