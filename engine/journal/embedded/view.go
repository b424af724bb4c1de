package embedded

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
)

// View is a journal in a directory, opened for reading only: a journal.Store that refuses every
// change and takes the mode from the directory. While it is open no server can start on the
// directory.
type View struct {
	holding
	s      *Store
	closed bool
	damage *journal.DamageError
	rotten bool
}

var _ journal.Store = (*View)(nil)

// Inspect opens the journal in a directory; of the Config only Partition, Dir and FS count. It
// refuses a directory that is in use (journal.ErrLocked), that holds no journal (ErrNoJournal), and
// one of which nothing can be read (*journal.DamageError). Where the log is damaged, the view shows
// what is before the damage, and Damage returns it.
func Inspect(cfg Config) (*View, error) {
	h, err := hold(cfg.FS, cfg.Dir)
	if err != nil {
		return nil, err
	}
	v := &View{holding: h, s: &Store{
		cfg:  Config{Dir: h.dir, Mode: h.mode, Partition: cfg.Partition, FS: h.fs, OnFatal: func(error) {}},
		log:  slog.New(slog.DiscardHandler),
		lock: h.lock,
		stop: make(chan struct{}),
	}}
	v.s.fs = newLogFS(h.fs, h.dir, false)
	v.s.fs.fatal, v.s.fs.pause = v.s.cfg.OnFatal, func() {}
	if err := v.open(); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

func (v *View) open() (err error) {
	if v.s.was, err = readMarks(v.fs, v.dir); err != nil {
		return err
	}
	err = v.s.openForReading(v.fs)
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		return v.absent(err)
	}
	if err != nil {
		err = v.showBefore(err)
	}
	if err != nil {
		return err
	}
	var first, last journal.Index
	if err = v.s.checkTables(v.fs); err == nil { // before pebble reads one, see Store.look
		err = v.s.readEarlyMetas()
	}
	if err == nil {
		first, last, err = v.s.lastBlock(v.s.db, maxIndex)
	}
	if err == nil {
		v.compare(first, last)
		return nil
	}
	if errors.As(err, &v.damage) { // of a SSTable; what is before it can still be shown
		v.rotten = true
		return nil
	}
	return err
}

// compare looks whether the last block that can be read is the last one that was synced.
func (v *View) compare(first, last journal.Index) {
	switch {
	case v.damage != nil:
		v.damage.Index = last + 1
	default:
		v.damage = v.s.missing(first, last)
		if v.damage != nil && v.damage.Where == v.dir && v.s.torn.name != "" {
			v.damage.Where = v.fs.PathJoin(v.dir, v.s.torn.name)
		}
	}
}

// absent is the damage of a stamped directory without a database: its server died at once, or it is
// lost.
func (v *View) absent(err error) error {
	if err = v.s.absent(err); err != nil {
		return err
	}
	return fmt.Errorf("cannot inspect journal %s: %w: nothing was ever written", v.dir, ErrNoJournal)
}

// showBefore shows what is before a damaged place of the log, if it is that which was refused.
func (v *View) showBefore(refused error) error {
	if _, _, err := v.s.showBefore(v.fs, refused); err != nil {
		return err
	}
	errors.As(refused, &v.damage)
	return nil
}

// Dir returns the name of the directory, absolute and without links.
func (v *View) Dir() string { return v.dir }

// Mode returns the mode that the directory was made in.
func (v *View) Mode() journal.Mode { return v.mode }

// Marked returns the first index of the last block that is known to be synced, and whether the
// store was closed after it. ok is false where the mark is missing or torn, which is no damage.
func (v *View) Marked() (first journal.Index, closed, ok bool) {
	return v.s.was.first, v.s.was.closed, v.s.was.ok
}

// LostMarks returns the names of the mark files that are missing or torn. One of them is no damage:
// the other still guards the log, and the next start makes it again.
func (v *View) LostMarks() []string { return v.s.was.lost }

// Damage returns why a server would not open the directory; nil if it would. The view ends before
// it.
func (v *View) Damage() *journal.DamageError { return v.damage }

// Mendable reports whether Damage is of the log, so that Config.AcceptLoss opens the directory with
// what is before it.
func (v *View) Mendable() bool { return v.damage != nil && !v.rotten }

// Torn returns where the log ends in a part of a record, which a crash left and a server cuts off;
// "" where it ends in a whole one. That record was never acknowledged.
func (v *View) Torn() (file string, offset int64) {
	if v.damage != nil {
		return "", 0
	}
	return v.s.torn.name, v.s.torn.offset
}

// Files lists what is in the directory.
func (v *View) Files() ([]FileInfo, error) { return v.files() }

// Close gives the directory free. A second call does nothing.
func (v *View) Close() (err error) {
	if v.closed {
		return nil
	}
	v.closed = true
	v.s.closed.Store(true)
	if v.s.db != nil {
		err = v.s.closeDB(v.s.db)
	}
	return errors.Join(err, v.lock.Close())
}

// Blocks implements journal.Blocks.
func (v *View) Blocks(from journal.Index, f func(first journal.Index, block []byte) error) error {
	return v.s.Blocks(from, f)
}

// ListSnapshots implements journal.Snapshots.
func (v *View) ListSnapshots() ([]journal.Snapshot, error) { return v.s.ListSnapshots() }

// ReadSnapshot implements journal.Snapshots.
func (v *View) ReadSnapshot(g uint64, f func(chunk []byte) error) error {
	return v.s.ReadSnapshot(g, f)
}

func (v *View) refuse() error {
	return fmt.Errorf("cannot change journal %s: %w", v.dir, errReadOnly)
}

// WriteBlock implements journal.Blocks; it refuses.
func (v *View) WriteBlock(journal.Index, []byte) error { return v.refuse() }

// DropBlocks implements journal.Blocks; it refuses.
func (v *View) DropBlocks(journal.Index) error { return v.refuse() }

// CutBlocks implements journal.Blocks; it refuses.
func (v *View) CutBlocks(journal.Index) error { return v.refuse() }

// BeginSnapshot implements journal.Snapshots; it refuses.
func (v *View) BeginSnapshot(uint64) (journal.SnapshotWriter, error) { return nil, v.refuse() }

// DropSnapshot implements journal.Snapshots; it refuses.
func (v *View) DropSnapshot(uint64) error { return v.refuse() }

// Sync implements journal.Store; it refuses.
func (v *View) Sync() error { return v.refuse() }

// errReadOnly is what everything gets that would change a directory which is only looked at.
var errReadOnly = errors.New("the journal is open for reading only")

// readFS is a file system that refuses every change, so that pebble cannot tidy up during an
// inspection. The lock is the exception: it keeps a server from starting meanwhile.
type readFS struct{ vfs.FS }

// Lock implements vfs.FS. On a read-only disk no process can have the directory open for writing,
// and no lock is needed.
func (r readFS) Lock(name string) (io.Closer, error) {
	c, err := r.FS.Lock(name)
	if errors.Is(err, syscall.EROFS) {
		return noLock{}, nil
	}
	return c, err
}

type noLock struct{}

// Close implements io.Closer.
func (noLock) Close() error { return nil }

func refused(what, name string) error {
	return &os.PathError{Op: what, Path: name, Err: errReadOnly}
}

// Create implements vfs.FS.
func (readFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refused("create", name)
}

// OpenReadWrite implements vfs.FS.
func (readFS) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, refused("open", name)
}

// ReuseForWrite implements vfs.FS.
func (readFS) ReuseForWrite(oldname, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refused("reuse", oldname)
}

// Link implements vfs.FS.
func (readFS) Link(oldname, _ string) error { return refused("link", oldname) }

// Remove implements vfs.FS.
func (readFS) Remove(name string) error { return refused("remove", name) }

// RemoveAll implements vfs.FS.
func (readFS) RemoveAll(name string) error { return refused("remove", name) }

// Rename implements vfs.FS.
func (readFS) Rename(oldname, _ string) error { return refused("rename", oldname) }

// MkdirAll implements vfs.FS.
func (readFS) MkdirAll(dir string, _ os.FileMode) error { return refused("make", dir) }

// Unwrap implements vfs.FS.
func (r readFS) Unwrap() vfs.FS { return r.FS }
