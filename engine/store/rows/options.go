package rows

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"trunkline/engine/internal/pebbledir"
)

func (d *DB) options() *pebble.Options {
	o := &pebble.Options{
		FS:                          d.fs,
		Lock:                        d.lock,
		Logger:                      pebbledir.Logger{Log: d.log, Fail: d.fail},
		EventListener:               d.listener(),
		FormatMajorVersion:          format,
		DisableWAL:                  true,
		CacheSize:                   d.cfg.CacheBytes + memTables*int64(d.cfg.MemTableBytes), // memtables are taken off it
		MaxOpenFiles:                maxOpenFiles,
		MaxManifestFileSize:         manifestBytes,
		MemTableSize:                d.cfg.MemTableBytes,
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       l0Compaction,
		L0StopWritesThreshold:       l0Stop,
		LBaseMaxBytes:               baseBytes,
		FlushSplitBytes:             fileBytes,
		CompactionConcurrencyRange:  func() (int, int) { return mergesMin, mergesMax },
	}
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] = fileBytes
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(bloomBits)
	}
	// What is worth it was compressed once, before it became a row. Here each merge of files would
	// compress it again, which took a twelfth of the processor under a load of posts.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	return o
}

func (d *DB) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			switch {
			case errors.Is(err, pebble.ErrCancelledCompaction), d.closed.Load():
			case pebble.IsCorruptionError(err):
				d.room.set(rotten, err)
			case d.room.merge.Swap(false):
				d.room.set(mergeFailing, err)
			default:
				d.room.set(flushFailing, err)
			}
		},
		FlushEnd: func(info pebble.FlushInfo) {
			d.room.merge.Store(false)
			if info.Err == nil {
				d.room.clear(flushFailing)
			}
		},
		CompactionEnd: func(info pebble.CompactionInfo) {
			switch {
			case info.Err == nil:
				d.room.clear(mergeFailing)
			case !errors.Is(info.Err, pebble.ErrCancelledCompaction):
				d.room.merge.Store(true)
			}
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			d.log.Debug("rows wait for room", "reason", info.Reason)
			d.stallBegins()
		},
		WriteStallEnd: d.stallEnds,
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			d.log.Error("rows are damaged", "file", info.Path, "err", info.Details)
		},
	}
}
