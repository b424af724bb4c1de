package embedded

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Stats is what an operator asks of a store. Sizes are in bytes.
type Stats struct {
	// DiskBytes is all that the directory takes.
	DiskBytes uint64
	// WALBytes is what of it is log, laid out ahead and kept for the next one included.
	WALBytes uint64
	// TableBytes and Tables are the sorted files.
	TableBytes uint64
	Tables     int64
	// IncomingBytes is what is written of a snapshot that is not complete yet.
	IncomingBytes uint64
	// MemTableBytes is what waits in memory for its file.
	MemTableBytes uint64
	// FlushedBytes and CompactedBytes are what was written into sorted files since Open, by flushes and by merging them.
	FlushedBytes   uint64
	CompactedBytes uint64
	// IngestedBytes is what was written as sorted files since Open: the chunks of snapshots.
	IngestedBytes uint64
	// FreeBytes is the free space of the disk when it was last looked at. 0 where it is not known.
	FreeBytes uint64
	// LastBlock is the first index of the last acknowledged block.
	LastBlock uint64
	// Full is Store.Full.
	Full bool
	// Unsynced is in mode Interval the age of the oldest block that was written and is not synced; 0 where all are.
	Unsynced time.Duration
	// HeldBlocks counts since Open the blocks that were acknowledged later because Unsynced was above MaxUnsynced.
	HeldBlocks uint64
}

// Stats collects the numbers. It takes locks of the database and allocates: for a scrape, not for a request.
func (s *Store) Stats() Stats {
	st := Stats{FreeBytes: s.space.freeBytes.Load(), LastBlock: s.last.Load(), Full: s.Full()}
	st.Unsynced, st.HeldBlocks = s.window.stats()
	s.using.RLock()
	defer s.using.RUnlock()
	if s.readable() != nil {
		return st
	}
	m := s.db.Metrics()
	st.IncomingBytes = s.incoming.Load()
	st.DiskBytes = m.DiskSpaceUsage() + st.IncomingBytes
	st.WALBytes = m.WAL.PhysicalSize + m.WAL.ObsoletePhysicalSize
	st.MemTableBytes = m.MemTable.Size
	for i := range m.Levels {
		l := &m.Levels[i]
		st.Tables += l.TablesCount
		st.TableBytes += uint64(l.TablesSize)
		st.FlushedBytes += l.TableBytesFlushed
		st.CompactedBytes += l.TableBytesCompacted
		st.IngestedBytes += l.TableBytesIngested
	}
	return st
}

// Checkpoint makes a copy of the store in dir, which must not be there yet: a backup that opens like any journal of the same
// mode. It may run beside everything but Close. Sorted files are linked where the file system can, so that a copy on the same
// disk is cheap, and does not outlive it.
func (s *Store) Checkpoint(dir string) error {
	if err := s.mayChange(); err != nil {
		return err
	}
	s.using.RLock()
	defer s.using.RUnlock()
	if err := s.err(); err != nil {
		return err
	}
	if _, err := s.cfg.FS.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot make checkpoint %s: it is there already", dir)
	}
	if err := s.awaitRoom(); err != nil {
		return fmt.Errorf("cannot make checkpoint %s: %w", dir, err)
	}
	if err := s.copyTo(dir); err != nil {
		// What is half made has no stamp, and is refused; it is only in the way of the next one.
		return fmt.Errorf("cannot make checkpoint %s: %w", dir, errors.Join(err, s.cfg.FS.RemoveAll(dir)))
	}
	return nil
}

// copyTo makes the copy. Pebble panics where a directory cannot be synced; here it is only the copy that fails.
func (s *Store) copyTo(dir string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			cause, ok := r.(error)
			if !ok {
				cause = fmt.Errorf("%v", r)
			}
			err = typed(cause)
		}
	}()
	first := s.last.Load()
	if err := s.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return typed(err)
	}
	if err := s.err(); err != nil {
		return err
	}
	if err := copyMarks(s.cfg.FS, dir, first); err != nil {
		return typed(err)
	}
	// The stamp comes last: a copy that a crash left half made has none, and is refused.
	return writeStamp(s.cfg.FS, dir, s.cfg.Mode)
}
