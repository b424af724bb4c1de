package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFile is one file of the log.
type logFile struct {
	vfs.File
	fs    *logFS
	name  string
	dirty atomic.Bool
	// length counts what was written.
	length atomic.Int64

	mu     sync.Mutex // orders syncNow and Close
	closed bool
}

// Write implements vfs.File. A short write or an error fails the log.
func (f *logFile) Write(p []byte) (int, error) {
	if f.fs.failed() {
		return len(p), nil
	}
	op := f.fs.slow.begin(opWrite, f.name)
	_, err := f.File.Write(p)
	f.fs.slow.end(op)
	if err != nil {
		f.fs.fail(err)
	}
	f.length.Add(int64(len(p)))
	f.dirty.Store(true) // after the write: a sync that runs beside it may have come too early
	return len(p), nil
}

// Sync implements vfs.File.
func (f *logFile) Sync() error { return f.SyncData() }

// SyncData implements vfs.File.
func (f *logFile) SyncData() error {
	if !f.fs.lazy {
		f.syncNow()
	}
	return nil
}

// SyncTo implements vfs.File. It promises nothing, but may take the error that the next sync would
// give.
func (f *logFile) SyncTo(length int64) (bool, error) {
	if f.fs.lazy || f.fs.failed() {
		return false, nil
	}
	op := f.fs.slow.begin(opSync, f.name)
	full, err := f.File.SyncTo(length)
	f.fs.slow.end(op)
	if err != nil {
		f.fs.fail(err)
	}
	return full, nil
}

// Preallocate implements vfs.File.
func (f *logFile) Preallocate(offset, length int64) error {
	if f.fs.failed() {
		return nil
	}
	return f.File.Preallocate(offset, length)
}

func (f *logFile) syncNow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.fs.failed() || !f.dirty.Swap(false) {
		return
	}
	op := f.fs.slow.begin(opSync, f.name)
	err := f.File.SyncData()
	f.fs.slow.end(op)
	if err != nil {
		f.fs.fail(err)
	}
}

// Close implements vfs.File. It syncs, lazy or not: a log is closed when the next one begins, and
// the next one is only read if this one is whole.
func (f *logFile) Close() error {
	f.syncNow()
	f.fs.mu.Lock()
	delete(f.fs.open, f)
	f.fs.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if err := f.File.Close(); err != nil {
		f.fs.fail(err)
	}
	return nil
}

// logDir is the directory of the log: without a synced name a log is lost.
type logDir struct {
	vfs.File
	fs *logFS
}

// Sync implements vfs.File.
func (d *logDir) Sync() error {
	if d.fs.failed() {
		return nil
	}
	if err := d.fs.timed(d.fs.dir, d.File.Sync); err != nil {
		d.fs.fail(err)
	}
	return nil
}

// tableFile is any other file of the directory and of incoming/: it takes nothing after the log
// failed.
type tableFile struct {
	vfs.File
	fs   *logFS
	name string
}

// Write implements vfs.File.
func (f *tableFile) Write(p []byte) (int, error) {
	if f.fs.unreal() {
		return len(p), nil
	}
	if f.fs.failed() {
		return 0, errLogFailed
	}
	op := f.fs.slow.begin(opWrite, f.name)
	n, err := f.File.Write(p)
	f.fs.slow.end(op)
	if err != nil && f.fs.met(err) == nil {
		return len(p), nil
	}
	return n, err
}

// Sync implements vfs.File.
func (f *tableFile) Sync() error {
	return f.fs.change(func() error { return f.fs.timed(f.name, f.File.Sync) })
}

// SyncData implements vfs.File.
func (f *tableFile) SyncData() error {
	return f.fs.change(func() error { return f.fs.timed(f.name, f.File.SyncData) })
}

// logPrefix reads the beginning of a log.
type logPrefix struct {
	vfs.File
	left int64
}

// Read implements vfs.File.
func (p *logPrefix) Read(b []byte) (int, error) {
	if p.left == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	n, err := p.File.Read(b[:min(int64(len(b)), p.left)])
	p.left -= int64(n)
	return n, err
}

// endedAt finds where the replay of a log ended. Pebble reports it in its log only.
var endedAt = regexp.MustCompile(`stopped reading at offset: \((?:.*[/\\])?(\d+)\.log: (\d+)\)`)

// tornTail learns from pebble's log where the last log file ends, and checks whether it ends in a
// part of a record. It is the logger of a database that is opened for reading.
type tornTail struct {
	name   string // of the file, "" where nothing is torn
	number uint64
	offset int64
}

// Infof implements pebble.Logger.
func (t *tornTail) Infof(format string, args ...any) {
	m := endedAt.FindStringSubmatch(fmt.Sprintf(format, args...))
	if m == nil {
		return
	}
	number, err := strconv.ParseUint(m[1], 10, 64)
	offset, also := strconv.ParseInt(m[2], 10, 64)
	if errors.Join(err, also) == nil && number >= t.number {
		t.name, t.number, t.offset = m[1]+".log", number, offset
	}
}

// Errorf implements pebble.Logger.
func (t *tornTail) Errorf(string, ...any) {}

// Fatalf implements pebble.Logger. It cannot be reached without a write.
func (t *tornTail) Fatalf(string, ...any) {}

// The parts of a record's header that all formats of pebble's log share, and the chunk types with a
// log number.
const (
	chunkHeader    = 11 // checksum:4 length:2 type:1 log number:4, little endian
	longestHeader  = 19
	logPage        = 32 << 10
	firstTypedLog  = 5
	lastTypedLog   = 12
	chunkType      = 6
	chunkLogNumber = 7
)

// look keeps the place only for a part of a record. Zeros are space laid out ahead. A chunk with
// another log number is from the file's former life, or the mark of an orderly end.
func (t *tornTail) look(fsys vfs.FS, dir string) error {
	if t.name == "" {
		return nil
	}
	f, err := fsys.Open(fsys.PathJoin(dir, t.name))
	if errors.Is(err, os.ErrNotExist) {
		t.name = ""
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read journal %s: %w", dir, err)
	}
	defer f.Close()
	at := t.offset
	if rest := logPage - at%logPage; rest < longestHeader {
		at += rest // no chunk fits there
	}
	var b [chunkHeader]byte
	n, err := f.ReadAt(b[:], at)
	if err != nil && err != io.EOF {
		return fmt.Errorf("cannot read journal %s: %w", dir, err)
	}
	if !t.begun(b[:n]) {
		t.name = ""
	}
	return nil
}

// begun reports whether b, where the next chunk would be, is a part of one of this log.
func (t *tornTail) begun(b []byte) bool {
	if allZero(b) {
		return false
	}
	if len(b) < chunkHeader {
		return true
	}
	known := b[chunkType] >= firstTypedLog && b[chunkType] <= lastTypedLog
	return !known || binary.LittleEndian.Uint32(b[chunkLogNumber:]) == uint32(t.number)
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
