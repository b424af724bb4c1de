package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

// Sizes of the database. It holds the log since the last but one snapshot, and two snapshots.
const (
	// memTableBytes is kept in memory before it is sorted into a file. It is small because blocks
	// are read at a start only, and large enough that a common block (512 KiB) never needs a file
	// of its own.
	memTableBytes = 8 << 20
	// memTables bounds the memory of blocks that wait for their file: 32 MiB, 0.1 s of a fast log.
	memTables = 4
	// cacheBytes is for blocks read back. It is small because a replay reads each block once.
	cacheBytes = 8 << 20
	// maxOpenFiles bounds the descriptors. Pebble's default of 1000 would take them from the
	// connections.
	maxOpenFiles = 256
	// fileBytes is the size of a SSTable. It is that of a memtable, so that a flush makes one
	// file.
	fileBytes = memTableBytes
	// baseBytes keeps everything in the first levels: blocks are written once and deleted by range,
	// so merging them into deeper levels would only write them again.
	baseBytes = 4 << 30
	// l0Sublevels and l0Stop are when overlapping files are merged, and when writes wait for it.
	// Only files that also hold a snapshot or a range deletion overlap.
	l0Sublevels, l0Stop = 8, 64
	// chunkFileBytes is how much of a snapshot goes into one SSTable: a large one has few
	// files.
	chunkFileBytes = 16 << 20
	// chunkSyncBytes is how much of it may wait for the disk: the next sync of the log waits for
	// that too.
	chunkSyncBytes = 1 << 20
	// reclaimAfter is how long the space of dropped blocks may stay taken while nothing is written.
	reclaimAfter = 10 * time.Second
)

// The formats of pebble, named and not "newest", so that an upgrade of the library changes no
// directory.
const (
	formatAlways   = pebble.FormatValueSeparation
	formatInterval = pebble.FormatColumnarBlocks // the last one below FormatWALSyncChunks
)

// Defaults of Config.
const (
	defaultSyncEvery    = time.Second
	defaultStallTimeout = 30 * time.Second
	// defaultSnapshotRate leaves most of a common disk to the log: a snapshot of 250 MB takes 4 s.
	defaultSnapshotRate = 64 << 20
	// MinFreeBytes is the least free space that Full tolerates, or 4 memtables if those are more: a
	// log file is laid out before it is used.
	MinFreeBytes = max(512<<20, 4*memTableBytes)
	// spaceEvery is how often the free space is read: at 1 GB/s the reserve lasts half of that.
	spaceEvery = 250 * time.Millisecond
)

// ErrFull means that the disk has no room. Errors that wrap it wrap the error of the system too.
// While Full is true it can pass. From WriteBlock it is final.
var ErrFull = errors.New("no space left for the journal")

// Config is what a Store is made of. Dir is needed; the zero value of the rest means the defaults.
type Config struct {
	// Dir is the directory; it is made where there is none. One process opens it at a time.
	Dir string
	// Mode is what an acknowledged block has survived: Always or Interval. The directory keeps its
	// mode.
	Mode journal.Mode
	// Partition is in every key.
	Partition uint32
	// SyncEvery is the time between two syncs in mode Interval, and between two marks. 0:
	// defaultSyncEvery.
	SyncEvery time.Duration
	// StallTimeout bounds how long WriteBlock waits for room in memory while the files of the
	// database cannot be written. Then it fails with ErrFull. 0: defaultStallTimeout.
	StallTimeout time.Duration
	// SnapshotRate bounds the writing of a snapshot, in bytes per second, so that the log has the
	// disk when it needs it. 0: defaultSnapshotRate. Negative: no bound.
	SnapshotRate int64
	// AcceptLoss opens a directory whose log is damaged, or that holds less than its mark. The log
	// is cut at the damage, and what was there is kept in the directory "damaged". It mends no
	// damaged SSTable.
	AcceptLoss bool
	// Bulk postpones the syncs of the log as in mode Interval: for a directory that counts for
	// nothing before all of it is written and Sync has returned.
	Bulk bool
	// OnFatal is called once, at the first final error, before the call that met it returns. The
	// process ends there: after a failed sync, the memory of the system is not what is on the disk.
	// It may run under locks of the database and must not use the Store. If it returns, every later
	// call fails.
	OnFatal func(error)
	// FreeBytes reads the free space of the disk. nil: that of Dir.
	FreeBytes func() (uint64, error)
	// Logger gets what an operator should know. nil: it is dropped.
	Logger *slog.Logger
	// FS is the file system. nil: the disk. Tests give one that tears, fills and forgets.
	FS vfs.FS
}

func (c *Config) complete() error {
	if c.Mode >= journal.Memory {
		return fmt.Errorf("cannot open journal in mode %s: it writes nothing", c.Mode)
	}
	if c.Dir == "" {
		return errors.New("cannot open journal: no directory given")
	}
	c.SyncEvery = cmp.Or(max(c.SyncEvery, 0), defaultSyncEvery)
	c.StallTimeout = cmp.Or(max(c.StallTimeout, 0), defaultStallTimeout)
	c.SnapshotRate = cmp.Or(c.SnapshotRate, defaultSnapshotRate)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.OnFatal == nil {
		c.OnFatal = func(error) {}
	}
	if c.FS == nil {
		dir, err := realDir(c.Dir)
		if err != nil {
			return err
		}
		c.FS, c.Dir = disk, dir
	}
	c.Dir = c.FS.PathJoin(c.Dir)
	if c.FreeBytes == nil {
		c.FreeBytes = func() (uint64, error) {
			u, err := c.FS.GetDiskUsage(c.Dir)
			return u.AvailBytes, err
		}
	}
	return nil
}

func (c *Config) format() pebble.FormatMajorVersion {
	if c.Mode == journal.Interval {
		return formatInterval
	}
	return formatAlways
}

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
	// The columnar writer of SSTables copies a value once more, and allocates for each one above
	// 256 KiB. Readers know both formats.
	o.Experimental.EnableColumnarBlocks = func() bool { return false }
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] = fileBytes
	}
	// The log is not compressed either, and most blocks are dropped unread.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	return o
}

// endFile decides where pebble ends a SSTable that begins with start: no file holds keys of two
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
