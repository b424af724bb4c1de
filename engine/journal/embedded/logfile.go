package embedded

import (
	"io"
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
