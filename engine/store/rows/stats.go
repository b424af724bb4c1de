package rows

// Stats is what an operator asks of rows. Sizes are in bytes.
type Stats struct {
	// DiskBytes is all that the directory takes, as pebbledir.Used has it. Files are its SSTables.
	DiskBytes uint64
	Files     int64
	// CacheBytes is what of blocks is in memory. MemTableBytes is what of rows waits for its file,
	// or is still being read. OpenFileBytes is what the open files need.
	CacheBytes    uint64
	MemTableBytes uint64
	OpenFileBytes uint64
	// MemoryBytes is the sum of the three.
	MemoryBytes uint64
	// FlushedBytes and MergedBytes were written into sorted files since Open.
	FlushedBytes uint64
	MergedBytes  uint64
	// Full is DB.Full.
	Full bool
}

// Stats collects the numbers. It takes locks of the database and allocates: for a scrape, no
// request.
func (d *DB) Stats() Stats {
	st := Stats{Full: d.Full()}
	used := d.usage.Read(d.cfg.FS, d.cfg.Dir) // without the lock: the disk may be slow
	d.gate.RLock()
	defer d.gate.RUnlock()
	if d.readable() != nil {
		return st
	}
	if st.DiskBytes = used.Bytes; d.db == nil {
		return st
	}
	m := d.db.Metrics()
	st.CacheBytes = uint64(m.BlockCache.Size)
	st.MemTableBytes = m.MemTable.Size + m.MemTable.ZombieSize
	st.OpenFileBytes = uint64(m.FileCache.Size)
	st.MemoryBytes = st.CacheBytes + st.MemTableBytes + st.OpenFileBytes
	for i := range m.Levels {
		l := &m.Levels[i]
		st.Files += l.TablesCount
		st.FlushedBytes += l.TableBytesFlushed
		st.MergedBytes += l.TableBytesCompacted
	}
	return st
}
