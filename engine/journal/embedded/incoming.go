package embedded

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// incomingDir is where the SSTables of a snapshot are before they belong to the database. Begin
// and Open empty it.
const incomingDir = "incoming"

func (s *Store) incomingPath() string { return s.cfg.FS.PathJoin(s.cfg.Dir, incomingDir) }

// clearIncoming removes the directory and its content. A file there may be the second name of one
// that the database has by now; only the name goes.
func (s *Store) clearIncoming() error {
	s.incoming.Store(0)
	dir := s.incomingPath()
	if _, err := s.cfg.FS.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := s.fs.RemoveAll(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot remove %s: %w", dir, typed(err))
	}
	return nil
}

// sweep removes what is left of incomplete snapshots. A failure only costs room: it does not
// prevent the opening, and the next snapshot tries again.
func (s *Store) sweep() error {
	if err := errors.Join(s.clearIncoming(), s.sweepChunks()); err != nil {
		s.log.Warn("journal keeps what is left of an unfinished snapshot", "err", err)
	}
	return s.err()
}

// sweepChunks drops the chunks of snapshots without a meta, which a crash of an earlier version
// left.
func (s *Store) sweepChunks() error {
	numbers, err := s.numbers()
	for _, g := range numbers {
		err = errors.Join(err, s.dropUnfinished(g))
	}
	return err
}

func (s *Store) dropUnfinished(g uint64) error {
	_, found, err := s.meta(g)
	if err != nil || found {
		return err
	}
	if found, err = s.hasChunks(g); err != nil || !found {
		return err
	}
	return s.drop(g)
}

var errDiscarded = errors.New("the generation is discarded")

// chunkFile is a file of chunks on its way to the disk: an objstorage.Writable. The table's writer
// calls it from its own goroutine and reports an error only when it is closed, so the first one is
// kept here.
type chunkFile struct {
	file     vfs.File
	s        *Store
	unsynced int
	failed   atomic.Pointer[error]
}

func (f *chunkFile) err() error {
	if p := f.failed.Load(); p != nil {
		return *p
	}
	return nil
}

func (f *chunkFile) fail(err error) error {
	if err != nil {
		f.failed.CompareAndSwap(nil, &err)
	}
	return f.err()
}

// Write implements objstorage.Writable.
func (f *chunkFile) Write(p []byte) error {
	if err := f.err(); err != nil {
		return err
	}
	n, err := f.file.Write(p)
	f.s.incoming.Add(uint64(n))
	if f.unsynced += n; err == nil && f.unsynced >= chunkSyncBytes {
		err = f.sync(f.file.SyncData)
	}
	return f.fail(err)
}

// sync syncs the file by one of its methods. Lack of room is an error of this snapshot. Any other
// error is final, as for the log.
func (f *chunkFile) sync(by func() error) error {
	f.unsynced = 0
	err := by()
	if err != nil && !errors.Is(typed(err), ErrFull) && !errors.Is(err, errLogFailed) {
		f.s.fs.fail(err)
	}
	return err
}

// Finish implements objstorage.Writable.
func (f *chunkFile) Finish() error {
	err := f.err()
	if err == nil {
		err = f.sync(f.file.Sync)
	}
	return f.fail(errors.Join(err, f.file.Close()))
}

// Abort implements objstorage.Writable.
func (f *chunkFile) Abort() { f.fail(errors.Join(errDiscarded, f.file.Close())) }

// pacer spreads writes over time.
type pacer struct {
	rate int64 // bytes per second, none if not positive
	next time.Time
}

// delay returns how long to wait before n bytes are written at now. Unused time does not add up.
func (p *pacer) delay(now time.Time, n int) (wait time.Duration) {
	if p.rate <= 0 {
		return 0
	}
	if p.next.Before(now) {
		p.next = now
	}
	wait = p.next.Sub(now)
	p.next = p.next.Add(time.Duration(int64(n) * int64(time.Second) / p.rate))
	return wait
}
