package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
)

const (
	markName    = "MARK"
	markMagic   = "TLMK"
	markVersion = 1
	markLen     = 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// markState is what a mark holds.
type markState struct {
	first  journal.Index
	closed bool
	ok     bool // false where there is none to be read: it is lost, new, or torn
}

// readMark reads the mark of dir.
func readMark(fsys vfs.FS, dir string) (m markState, err error) {
	b, err := readFile(fsys, fsys.PathJoin(dir, markName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return m, fmt.Errorf("cannot read journal %s: %w", dir, err)
	}
	m.first, m.closed, m.ok = parseMark(b)
	return m, nil
}

// mark is the file that remembers, outside the log, how far the log was synced. It is written after the sync and is not synced
// itself: an old value is as true as a new one, only less strict.
type mark struct {
	mu     sync.Mutex
	file   vfs.File
	first  journal.Index // as written
	closed bool          // as written
}

// openMark opens the mark of dir, which holds what was read, for writing.
func openMark(fsys vfs.FS, dir string, was markState) (*mark, error) {
	f, err := fsys.OpenReadWrite(fsys.PathJoin(dir, markName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("cannot open journal: %w", typed(err))
	}
	return &mark{file: f, first: was.first, closed: was.closed}, nil
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

// lower takes back what is about to be cut, and is synced: otherwise a crash after the cut would leave a mark that calls it damage.
func (m *mark) lower(first journal.Index) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first > first {
		if err := m.write(first, m.closed); err != nil {
			return err
		}
	}
	return typed(m.file.Sync())
}

func (m *mark) write(first journal.Index, closed bool) error {
	var b [markLen]byte
	if _, err := m.file.WriteAt(appendMark(b[:0], first, closed), 0); err != nil {
		return fmt.Errorf("cannot mark journal: %w", typed(err))
	}
	m.first, m.closed = first, closed
	return nil
}

func (m *mark) sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.file.Sync()
}
