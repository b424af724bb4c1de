package app

import (
	"errors"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/obs"
)

// storeReading is what the metrics of the store come from.
type storeReading struct {
	*journal.Log
	stats journal.Stats
	disk  embedded.Stats
	last  *lastSnapshot // nil if there is none
}

// storeMetrics are those of the store.
var storeMetrics = []metric[storeReading]{
	gauge("trunkline_store_queue_bytes", "Bytes of records that wait to be written, the group being written included.",
		func(s *storeReading) float64 { return float64(s.stats.QueueBytes) }),
	gauge("trunkline_store_queue_records", "Records that wait to be written, the group being written included.",
		func(s *storeReading) float64 { return float64(s.stats.QueueRecords) }),
	counter("trunkline_store_groups_total", "Groups of records written, each with one write and in mode always one sync.",
		func(s *storeReading) float64 { return float64(s.stats.Groups) }),
	counter("trunkline_store_records_total", "Records written.",
		func(s *storeReading) float64 { return float64(s.stats.Records) }),
	counter("trunkline_store_bytes_total", "Bytes of groups written.",
		func(s *storeReading) float64 { return float64(s.stats.Bytes) }),
	gauge("trunkline_store_appended_index", "Index of the last record decided.",
		func(s *storeReading) float64 { return float64(s.Appended()) }),
	gauge("trunkline_store_durable_index", "Index up to which records are as safe as store.mode says.",
		func(s *storeReading) float64 { return float64(s.Durable()) }),
	gauge("trunkline_store_epoch", "Which start of a server on this store this is; 0 during recovery.",
		func(s *storeReading) float64 { return float64(s.Epoch()) }),
	gauge("trunkline_store_overloaded", "1 while so much waits to be written that changes are refused.",
		func(s *storeReading) float64 { return oneIf(s.Overloaded()) }),
	counter("trunkline_store_snapshots_total", "Snapshots written and verified.",
		func(s *storeReading) float64 { return float64(s.stats.Snapshots) }),
	counter("trunkline_store_snapshot_bytes_total", "Bytes of snapshots written.",
		func(s *storeReading) float64 { return float64(s.stats.SnapshotBytes) }),
	{Family: obs.Family{Name: "trunkline_store_last_snapshot_index", Help: "Index of the newest snapshot; nothing where there is none.", Kind: obs.Gauge},
		series: func(s *storeReading, put putSeries) {
			if s.last != nil {
				put(float64(s.last.index))
			}
		}},
	{Family: obs.Family{Name: "trunkline_store_last_snapshot_timestamp_seconds", Help: "When the newest snapshot was complete, in seconds since 1970.", Kind: obs.Gauge},
		series: func(s *storeReading, put putSeries) {
			if s.last != nil {
				put(float64(s.last.at.UnixNano()) / 1e9)
			}
		}},
	gauge("trunkline_store_disk_bytes", "Bytes that store.dir takes.",
		func(s *storeReading) float64 { return float64(s.disk.DiskBytes) }),
	gauge("trunkline_store_wal_bytes", "Bytes of log files in store.dir, laid out ahead included.",
		func(s *storeReading) float64 { return float64(s.disk.WALBytes) }),
	gauge("trunkline_store_table_bytes", "Bytes of sorted files in store.dir.",
		func(s *storeReading) float64 { return float64(s.disk.TableBytes) }),
	gauge("trunkline_store_tables", "Sorted files in store.dir.",
		func(s *storeReading) float64 { return float64(s.disk.Tables) }),
	gauge("trunkline_store_memtable_bytes", "Bytes in memory that wait for their sorted file.",
		func(s *storeReading) float64 { return float64(s.disk.MemTableBytes) }),
	counter("trunkline_store_flushed_bytes_total", "Bytes of sorted files written from memory.",
		func(s *storeReading) float64 { return float64(s.disk.FlushedBytes) }),
	counter("trunkline_store_compacted_bytes_total", "Bytes of sorted files written by merging others.",
		func(s *storeReading) float64 { return float64(s.disk.CompactedBytes) }),
	{Family: obs.Family{Name: "trunkline_store_free_bytes", Help: "Free bytes of the disk of store.dir; nothing where it is not known.", Kind: obs.Gauge},
		series: func(s *storeReading, put putSeries) {
			if s.disk.FreeBytes > 0 {
				put(float64(s.disk.FreeBytes))
			}
		}},
	gauge("trunkline_store_full", "1 while changes are refused because the disk has no room.",
		func(s *storeReading) float64 { return oneIf(s.disk.Full) }),
	gauge("trunkline_store_unsynced_seconds", "Age of the oldest change that was written and not synced yet, in mode interval.",
		func(s *storeReading) float64 { return s.disk.Unsynced.Seconds() }),
	counter("trunkline_store_held_groups_total", "Groups whose replies were held because what was not synced was too old, in mode interval.",
		func(s *storeReading) float64 { return float64(s.disk.HeldBlocks) }),
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
		addMetrics(reg, storeMetrics, s.reading),
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

// reading returns nil until the store is open.
func (s *storage) reading() *storeReading {
	log, w := s.log.Load(), s.store.Load()
	if log == nil {
		return nil
	}
	return &storeReading{Log: log, stats: log.Stats(), disk: w.Stats(), last: s.lastSnapshot(log)}
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
