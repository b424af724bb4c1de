package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

const (
	markName = "MARK"
	// secondMarkName differs from the first, so that what removes one by its name leaves the other.
	secondMarkName = "SYNCED"

	markMagic   = "TLMK"
	markVersion = 1
	markLen     = 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// markNames are the two marks, which hold the same. The loss of one is seen, and the other still
// guards.
var markNames = [2]string{markName, secondMarkName}

// markState is what the marks hold.
type markState struct {
	first  journal.Index // the higher one
	closed bool          // both, if there are two
	ok     bool          // false where there is none to be read: both are lost, new, or torn
	lost   []string      // the names of those that cannot be read
	begun  bool          // MARK is there and empty: the first opening ended before anything was written
}

// readMarks reads the marks of dir.
func readMarks(fsys vfs.FS, dir string) (m markState, err error) {
	m.closed = true
	for _, name := range markNames {
		b, err := pebbledir.Read(fsys, fsys.PathJoin(dir, name), maxStampBytes)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return m, fmt.Errorf("cannot read journal %s: %w", dir, err)
		}
		first, closed, ok := parseMark(b)
		if !ok {
			m.lost = append(m.lost, name)
			m.begun = m.begun || err == nil && len(b) == 0 && name == markName
			continue
		}
		m.ok, m.first, m.closed = true, max(m.first, first), m.closed && closed
	}
	m.closed = m.closed && m.ok
	return m, nil
}

// mark is the pair of files that record, outside the log, how far the log was synced. They are
// written after the sync and are not synced themselves: an old value is true too, only less strict.
type mark struct {
	mu     sync.Mutex
	files  []vfs.File
	first  journal.Index // as written
	closed bool          // as written
}

// openMark opens the marks of dir, which hold what was read, for writing. Missing ones are made and
// synced before a database is made, so that a database without them has lost them.
func openMark(fsys vfs.FS, dir string, was markState) (*mark, error) {
	m := &mark{first: was.first, closed: was.closed}
	err := m.open(fsys, dir)
	if err == nil && len(was.lost) > 0 {
		err = m.write(was.first, was.closed)
		if err == nil {
			err = errors.Join(m.sync(), pebbledir.Sync(fsys, dir))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open journal: %w", typed(errors.Join(err, m.close())))
	}
	return m, nil
}

func (m *mark) open(fsys vfs.FS, dir string) error {
	for _, name := range markNames {
		f, err := fsys.OpenReadWrite(fsys.PathJoin(dir, name), vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		m.files = append(m.files, f)
	}
	return nil
}

func appendMark(dst []byte, first journal.Index, closed bool) []byte {
	at := len(dst)
	dst = append(dst, markMagic...)
	dst = append(dst, markVersion, 0, 0, 0)
	if closed {
		dst[at+5] = 1
	}
	dst = binary.LittleEndian.AppendUint64(dst, first)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
}

func parseMark(b []byte) (first journal.Index, closed, ok bool) {
	if len(b) != markLen || string(b[:4]) != markMagic || b[4] != markVersion {
		return 0, false, false
	}
	if crc32.Checksum(b[:16], castagnoli) != binary.LittleEndian.Uint32(b[16:]) {
		return 0, false, false
	}
	return binary.LittleEndian.Uint64(b[8:]), b[5] == 1, true
}

// set writes that the block at first is on the disk. It is true already when set is called.
func (m *mark) set(first journal.Index, closed bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first == first && m.closed == closed {
		return nil
	}
	return m.write(first, closed)
}

// lower takes back what is about to be cut, and is synced: after a crash behind the cut a higher
// mark would report damage.
func (m *mark) lower(first journal.Index) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first > first {
		if err := m.write(first, m.closed); err != nil {
			return err
		}
	}
	return typed(m.syncFiles())
}

func (m *mark) write(first journal.Index, closed bool) error {
	var b [markLen]byte
	appendMark(b[:0], first, closed)
	for _, f := range m.files {
		if _, err := f.WriteAt(b[:], 0); err != nil {
			return fmt.Errorf("cannot mark journal: %w", typed(err))
		}
	}
	m.first, m.closed = first, closed
	return nil
}

func (m *mark) sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.syncFiles()
}

func (m *mark) syncFiles() (err error) {
	for _, f := range m.files {
		err = errors.Join(err, f.Sync())
	}
	return err
}

func (m *mark) close() (err error) {
	for _, f := range m.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

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
