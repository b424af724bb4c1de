package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
)

// ErrNoJournal means that there is no journal in a directory, or no directory.
var ErrNoJournal = errors.New("there is no journal")

// holding is a directory that is only read: locked, and known to be a journal of one mode.
type holding struct {
	fs   readFS
	dir  string
	mode journal.Mode
	lock *pebble.Lock
}

// hold locks a directory for reading. It makes nothing: it looks for a journal before it locks.
func hold(fsys vfs.FS, dir string) (h holding, err error) {
	if dir == "" {
		return h, errors.New("cannot inspect journal: no directory given")
	}
	if fsys == nil {
		fsys = disk
		if dir, err = nameOf(dir); err != nil {
			return h, err
		}
	}
	h = holding{fs: readFS{fsys}, dir: fsys.PathJoin(dir)}
	if h.mode, err = modeOf(h.fs, h.dir); err != nil {
		return h, err
	}
	h.lock, err = lockDir(h.fs, h.dir)
	return h, err
}

// nameOf returns the one name of an existing directory: locks of one process differ by name alone.
func nameOf(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(abs)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("cannot inspect journal %s: %w: %w", dir, ErrNoJournal, err)
	case err != nil:
		return "", fmt.Errorf("cannot inspect journal %s: %w", dir, err)
	case !info.IsDir():
		return "", fmt.Errorf("cannot inspect journal %s: %w: it is no directory", dir, ErrNoJournal)
	}
	return abs, nil
}

// modeOf reads the mode of a directory from its stamp. Files of a database without a stamp are
// damage.
func modeOf(fsys vfs.FS, dir string) (journal.Mode, error) {
	path := fsys.PathJoin(dir, stampName)
	if _, err := fsys.Stat(path); errors.Is(err, os.ErrNotExist) {
		return 0, noStamp(fsys, dir)
	}
	_, err := checkStamp(fsys, dir, journal.Always)
	var other *journal.ErrModeMismatch
	if errors.As(err, &other) {
		return other.Made, nil
	}
	return journal.Always, err
}

func noStamp(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return fmt.Errorf("cannot read journal %s: %w", dir, err)
	}
	for _, name := range names {
		if k := kindOf(name); k == fileLog || k == fileTable || k == fileManifest || k == fileMark {
			return &journal.DamageError{Where: fsys.PathJoin(dir, stampName), Err: fmt.Errorf("it is missing, and the directory is not empty (%s)", name)}
		}
	}
	return fmt.Errorf("cannot inspect journal %s: %w", dir, ErrNoJournal)
}

// RowsDir is where the owner of a journal keeps rows that are derived from it (engine/store/rows).
// It is no part of the journal: a copy takes it along, and nothing else looks into it.
const RowsDir = "rows"

// The kinds of file in the directory of a journal.
const (
	fileLog      = "log"      // what was not sorted yet, and logs kept to be written again
	fileTable    = "table"    // SSTables
	fileManifest = "manifest" // which of them count
	fileMark     = "mark"     // how far the log was synced
	fileStamp    = "stamp"    // what the directory is
	fileDamaged  = "damaged"  // logs that an operator gave up, kept aside
	fileIncoming = "incoming" // of a snapshot that did not become complete; the next opening removes them
	fileRows     = "rows"     // of RowsDir
	fileOther    = "other"
)

func kindOf(name string) string {
	switch {
	case strings.HasSuffix(name, ".log"):
		return fileLog
	case strings.HasSuffix(name, ".sst"), strings.HasSuffix(name, ".blob"):
		return fileTable
	case strings.HasPrefix(name, "MANIFEST-"), strings.HasPrefix(name, "marker.manifest."):
		return fileManifest
	case name == markName, name == secondMarkName:
		return fileMark
	case name == stampName:
		return fileStamp
	}
	return fileOther
}

// FileInfo is a file of a journal's directory. The name of a file in a subdirectory begins with
// that.
type FileInfo struct {
	Name  string
	Kind  string
	Bytes int64
}

// files lists the directory without LOCK, sorted by name.
func (h *holding) files() ([]FileInfo, error) {
	list, err := listFiles(h.fs, h.dir, "", "")
	if err != nil {
		return nil, err
	}
	for _, sub := range []struct{ dir, kind string }{{asideDir, fileDamaged}, {incomingDir, fileIncoming}, {RowsDir, fileRows}} {
		more, err := h.listDir(sub.dir, sub.kind)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// listDir lists a subdirectory, which may be missing.
func (h *holding) listDir(dir, kind string) ([]FileInfo, error) {
	list, err := listFiles(h.fs, h.fs.PathJoin(h.dir, dir), dir+"/", kind)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return list, err
}

func listFiles(fsys vfs.FS, dir, prefix, kind string) ([]FileInfo, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read journal %s: %w", dir, err)
	}
	var list []FileInfo
	for _, name := range names {
		info, err := fsys.Stat(fsys.PathJoin(dir, name))
		if err != nil {
			return nil, fmt.Errorf("cannot read journal %s: %w", dir, err)
		}
		if info.IsDir() || name == "LOCK" {
			continue
		}
		k := kind
		if k == "" {
			k = kindOf(name)
		}
		list = append(list, FileInfo{Name: prefix + name, Kind: k, Bytes: info.Size()})
	}
	return list, nil
}
