package embedded

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/internal/pebbledir"
)

func (s *Store) options() *pebble.Options {
	o := &pebble.Options{
		FS:                          s.fs,
		Lock:                        s.lock,
		Logger:                      pebbledir.Logger{Log: s.log, Fail: s.fs.fail},
		EventListener:               s.listener(),
		FormatMajorVersion:          s.cfg.format(),
		CacheSize:                   cacheBytes,
		MaxOpenFiles:                maxOpenFiles,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       l0Sublevels,
		L0StopWritesThreshold:       l0Stop,
		LBaseMaxBytes:               baseBytes,
		FlushSplitBytes:             fileBytes,
		FlushDelayDeleteRange:       reclaimAfter,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 1 },
	}
	// A snapshot that is ingested never waits for the log, and never becomes a part of it: see
	// settle.
	o.Experimental.DisableIngestAsFlushable = func() bool { return true }
	o.Experimental.SpanPolicyFunc = endFile
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] = fileBytes
	}
	// The log is not compressed either, and most blocks are dropped unread.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	return o
}

// endFile decides where pebble ends a sorted file that begins with start: no file holds keys of two
// kinds, or of two snapshots. Such a file would span all chunks between, and a merge would rewrite
// them.
func endFile(start []byte) (_ pebble.SpanPolicy, end []byte, _ error) {
	if len(start) >= numberLen && start[0] == kindChunk {
		return pebble.SpanPolicy{}, after(append([]byte(nil), start[:numberLen]...)), nil
	}
	if len(start) == 0 {
		return pebble.SpanPolicy{}, nil, nil
	}
	return pebble.SpanPolicy{}, []byte{start[0] + 1}, nil
}

func (s *Store) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			switch {
			case errors.Is(err, pebble.ErrCancelledCompaction):
			case s.fs.opening.Load() && !pebble.IsCorruptionError(err): // damage in what no start reads ends none
				s.fs.fail(err)
			default:
				s.space.cause.Store(&err)
				if s.space.compaction.Swap(false) {
					s.space.set(compactionFailing, err)
					break
				}
				s.space.set(flushFailing, err)
			}
		},
		FlushEnd: func(info pebble.FlushInfo) {
			s.space.compaction.Store(false)
			if info.Err == nil {
				s.space.clear(flushFailing)
				s.space.clear(compactionFailing)
			}
		},
		CompactionEnd: func(info pebble.CompactionInfo) {
			switch {
			case info.Err == nil:
				s.space.clear(compactionFailing)
			case !errors.Is(info.Err, pebble.ErrCancelledCompaction):
				s.space.compaction.Store(true)
			}
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) { s.space.stallBegins(info.Reason) },
		WriteStallEnd:   s.space.stallEnds,
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			s.corrupt.Store(&info.Path)
			s.log.Error("journal is damaged", "file", info.Path, "err", info.Details)
		},
	}
}
