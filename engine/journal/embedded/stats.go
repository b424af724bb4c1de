package embedded

import (
	"time"
)

// Stats is what an operator asks of a store. Sizes are in bytes.
type Stats struct {
	// DiskBytes is all that the directory takes, as pebbledir.Used has it.
	DiskBytes uint64
	// WALBytes is what of it is log, laid out ahead and kept for the next one included.
	WALBytes uint64
	// TableBytes and Tables are the sorted files.
	TableBytes uint64
	Tables     int64
	// IncomingBytes is what is written of a snapshot that is not complete yet.
	IncomingBytes uint64
	// memTableBytes is what waits in memory for its file.
	MemTableBytes uint64
	// FlushedBytes and CompactedBytes were written into sorted files since Open, by flushes and by
	// merging.
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
	// Unsynced is in mode Interval the age of the oldest block that is not synced; 0 where all are.
	Unsynced time.Duration
	// HeldBlocks counts the blocks that were acknowledged late because Unsynced was above
	// maxUnsynced.
	HeldBlocks uint64
}

// Stats collects the numbers. It takes locks of the database and allocates: for a scrape, no
// request.
func (s *Store) Stats() Stats {
	st := Stats{FreeBytes: s.space.freeBytes.Load(), LastBlock: s.last.Load(), Full: s.Full()}
	st.Unsynced, st.HeldBlocks = s.window.stats()
	used := s.usage.Read(s.cfg.FS, s.cfg.Dir) // without the lock: the disk may be slow
	s.using.RLock()
	defer s.using.RUnlock()
	if s.readable() != nil {
		return st
	}
	m := s.db.Metrics()
	st.IncomingBytes = s.incoming.Load()
	st.DiskBytes, st.WALBytes = used.Bytes, used.LogBytes
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
