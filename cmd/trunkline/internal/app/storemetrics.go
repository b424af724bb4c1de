package app

import (
	"errors"

	"trunkline/engine/journal"
	"trunkline/engine/obs"
)

// The families of the store.
const (
	famQueueBytes = iota
	famQueueRecords
	famGroups
	famRecords
	famJournalBytes
	famAppended
	famDurable
	famEpoch
	famOverloaded
	famSnapshots
	famSnapshotBytes
	famLastSnapshot
	famLastSnapshotTime
	famDiskBytes
	famWALBytes
	famTableBytes
	famTables
	famMemTableBytes
	famFlushedBytes
	famCompactedBytes
	famFreeBytes
	famFull
	famUnsynced
	famHeld
)

func storeFamilies() []obs.Family {
	return []obs.Family{
		famQueueBytes:    {Name: "trunkline_store_queue_bytes", Help: "Bytes of records that wait to be written, the group being written included.", Kind: obs.Gauge},
		famQueueRecords:  {Name: "trunkline_store_queue_records", Help: "Records that wait to be written, the group being written included.", Kind: obs.Gauge},
		famGroups:        {Name: "trunkline_store_groups_total", Help: "Groups of records written, each with one write and in mode always one sync."},
		famRecords:       {Name: "trunkline_store_records_total", Help: "Records written."},
		famJournalBytes:  {Name: "trunkline_store_bytes_total", Help: "Bytes of groups written."},
		famAppended:      {Name: "trunkline_store_appended_index", Help: "Index of the last record decided.", Kind: obs.Gauge},
		famDurable:       {Name: "trunkline_store_durable_index", Help: "Index up to which records are as safe as store.mode says.", Kind: obs.Gauge},
		famEpoch:         {Name: "trunkline_store_epoch", Help: "Which start of a server on this store this is; 0 during recovery.", Kind: obs.Gauge},
		famOverloaded:    {Name: "trunkline_store_overloaded", Help: "1 while so much waits to be written that changes are refused.", Kind: obs.Gauge},
		famSnapshots:     {Name: "trunkline_store_snapshots_total", Help: "Snapshots written and verified."},
		famSnapshotBytes: {Name: "trunkline_store_snapshot_bytes_total", Help: "Bytes of snapshots written."},

		famLastSnapshot:     {Name: "trunkline_store_last_snapshot_index", Help: "Index of the newest snapshot; nothing where there is none.", Kind: obs.Gauge},
		famLastSnapshotTime: {Name: "trunkline_store_last_snapshot_timestamp_seconds", Help: "When the newest snapshot was complete, in seconds since 1970.", Kind: obs.Gauge},

		famDiskBytes:      {Name: "trunkline_store_disk_bytes", Help: "Bytes that store.dir takes.", Kind: obs.Gauge},
		famWALBytes:       {Name: "trunkline_store_wal_bytes", Help: "Bytes of log files in store.dir, laid out ahead included.", Kind: obs.Gauge},
		famTableBytes:     {Name: "trunkline_store_table_bytes", Help: "Bytes of sorted files in store.dir.", Kind: obs.Gauge},
		famTables:         {Name: "trunkline_store_tables", Help: "Sorted files in store.dir.", Kind: obs.Gauge},
		famMemTableBytes:  {Name: "trunkline_store_memtable_bytes", Help: "Bytes in memory that wait for their sorted file.", Kind: obs.Gauge},
		famFlushedBytes:   {Name: "trunkline_store_flushed_bytes_total", Help: "Bytes of sorted files written from memory."},
		famCompactedBytes: {Name: "trunkline_store_compacted_bytes_total", Help: "Bytes of sorted files written by merging others."},
		famFreeBytes:      {Name: "trunkline_store_free_bytes", Help: "Free bytes of the disk of store.dir; nothing where it is not known.", Kind: obs.Gauge},
		famFull:           {Name: "trunkline_store_full", Help: "1 while changes are refused because the disk has no room.", Kind: obs.Gauge},
		famUnsynced:       {Name: "trunkline_store_unsynced_seconds", Help: "Age of the oldest change that was written and not synced yet, in mode interval.", Kind: obs.Gauge},
		famHeld:           {Name: "trunkline_store_held_groups_total", Help: "Groups whose replies were held because what was not synced was too old, in mode interval."},
	}
}

const (
	writeSecondsName = "trunkline_store_write_seconds"
	writeSecondsHelp = "Time that a group took to be written, with its sync in mode always."
)

// register adds the metrics of the store; in mode memory there are none. Until the store is open
// they show nothing.
func (s *storage) register(reg *obs.Registry) error {
	if s == nil {
		return nil
	}
	return errors.Join(
		reg.AddGroup(storeFamilies(), s.putStore),
		reg.AddHistogram(writeSecondsName, writeSecondsHelp, func() (obs.Histogram, bool) {
			log := s.log.Load()
			if log == nil {
				return obs.Histogram{}, false
			}
			st := log.Stats()
			return writeSeconds(&st), true
		}),
	)
}

func (s *storage) putStore(put obs.Put) {
	log, w := s.log.Load(), s.store.Load()
	if log == nil {
		return
	}
	st := log.Stats()
	put(famQueueBytes, float64(st.QueueBytes))
	put(famQueueRecords, float64(st.QueueRecords))
	put(famGroups, float64(st.Groups))
	put(famRecords, float64(st.Records))
	put(famJournalBytes, float64(st.Bytes))
	put(famAppended, float64(log.Appended()))
	put(famDurable, float64(log.Durable()))
	put(famEpoch, float64(log.Epoch()))
	put(famOverloaded, oneIf(log.Overloaded()))
	put(famSnapshots, float64(st.Snapshots))
	put(famSnapshotBytes, float64(st.SnapshotBytes))
	if last := s.lastSnapshot(log); last != nil {
		put(famLastSnapshot, float64(last.index))
		put(famLastSnapshotTime, float64(last.at.UnixNano())/1e9)
	}
	putDisk(put, w)
}

func putDisk(put obs.Put, store diskStore) {
	d := store.Stats()
	put(famDiskBytes, float64(d.DiskBytes))
	put(famWALBytes, float64(d.WALBytes))
	put(famTableBytes, float64(d.TableBytes))
	put(famTables, float64(d.Tables))
	put(famMemTableBytes, float64(d.MemTableBytes))
	put(famFlushedBytes, float64(d.FlushedBytes))
	put(famCompactedBytes, float64(d.CompactedBytes))
	if d.FreeBytes > 0 {
		put(famFreeBytes, float64(d.FreeBytes))
	}
	put(famFull, oneIf(d.Full))
	put(famUnsynced, d.Unsynced.Seconds())
	put(famHeld, float64(d.HeldBlocks))
}

// writeSeconds adds up the buckets of the journal, each of which counts only what is not in the
// ones before. The count comes from them too, for they are of one reading.
func writeSeconds(st *journal.Stats) obs.Histogram {
	h := obs.Histogram{Sum: st.LatencySum.Seconds(), Buckets: make(map[float64]uint64, journal.LatencyBuckets)}
	for i, n := range st.Latency {
		h.Count += n
		if bound := journal.LatencyBound(i); bound > 0 {
			h.Buckets[bound.Seconds()] = h.Count
		}
	}
	return h
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
