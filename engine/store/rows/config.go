package rows

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

// Limits of a row.
const (
	// maxKeyBytes bounds a key.
	maxKeyBytes = 1 << 10
	// maxValueBytes bounds a value: what a record of the journal holds fits.
	maxValueBytes = journal.MaxRecordBytes
)

// Sizes of the database. With the defaults it takes less than 50 MiB of memory whatever it holds:
// the cache, the memtables and one more that is still being read, the open files. To that comes
// about 1 KiB for each SSTable, so a megabyte for 8 GB of history.
const (
	defaultCacheBytes = 16 << 20
	// defaultMemTableBytes is gathered in memory before it is sorted into a file.
	defaultMemTableBytes = 8 << 20
	// memTables bounds the memory of rows that wait for their file. A batch of more than half a
	// memtable counts as one of its own.
	memTables = 3
	// maxOpenFiles bounds the descriptors, and the memory of open files.
	maxOpenFiles = 128
	// fileBytes is the size of a SSTable. Larger ones make fewer files of a long history, and
	// longer filters to be read at once.
	fileBytes = 8 << 20
	// baseBytes is the size of the first level below L0.
	baseBytes = 64 << 20
	// l0Compaction and l0Stop count overlapping flushed files: how many are merged, and at how many
	// Commit waits for a merge. The distance between them is what a burst may fill.
	l0Compaction, l0Stop = 16, 48
	// mergesMin and mergesMax bound the merges that run at once. The second one starts when many
	// files wait, so that the journal has the disk and a core to itself most of the time.
	mergesMin, mergesMax = 1, 2
	// bloomBits is bits per key in a filter: one look-up of a missing key in 120 reads a block.
	bloomBits = 10
	// manifestBytes is when the manifest is begun again: it is read as a whole at a start.
	manifestBytes = 1 << 20
)

const defaultStallTimeout = 30 * time.Second

// format is named and not "newest", so that an upgrade of the library changes no directory.
const format = pebble.FormatValueSeparation

// Config is what a DB is made of. Dir or Memory is needed; the zero value of the rest means the
// defaults.
type Config struct {
	// Dir is the directory; it is made where there is none.
	Dir string
	// Memory keeps the rows in memory instead, all of them, and forgets them at Close.
	Memory bool
	// Identity is what a new directory gets: that of rows which are put into it as they were. The
	// zero identity lets Open choose one.
	Identity [16]byte
	// CacheBytes bounds the memory of blocks that were read.
	CacheBytes int64
	// MemTableBytes is gathered in memory before it is written; a few times as much may wait.
	MemTableBytes uint64
	// Barrier returns once everything that was appended to the journal before the call cannot be
	// lost. It is called before new rows are written to a file, on a goroutine of pebble, and not
	// under a lock. nil: rows may be on the disk whose records are not.
	Barrier func(context.Context) error
	// StallTimeout bounds how long Commit waits for room in memory while files cannot be written.
	StallTimeout time.Duration
	// OnFatal is called once, at the first final error, before the call that met it returns. It may
	// run under locks of the database and must not use the DB. If it returns, nothing is put any
	// more.
	OnFatal func(error)
	// Logger gets what an operator should know. nil: it is dropped.
	Logger *slog.Logger
	// FS is the file system. nil: the disk.
	FS vfs.FS
}

func (c *Config) complete() error {
	switch {
	case c.Memory:
		c.Dir, c.FS = "rows", vfs.NewMem()
	case c.Dir == "":
		return errors.New("cannot open rows: no directory given")
	case c.FS == nil:
		dir, err := nameOf(c.Dir)
		if err != nil {
			return err
		}
		c.Dir, c.FS = dir, pebbledir.Disk
	}
	c.Dir = c.FS.PathJoin(c.Dir)
	c.CacheBytes = cmp.Or(max(c.CacheBytes, 0), defaultCacheBytes)
	c.MemTableBytes = cmp.Or(c.MemTableBytes, defaultMemTableBytes)
	if c.Barrier == nil {
		c.Barrier = func(context.Context) error { return nil }
	}
	c.StallTimeout = cmp.Or(max(c.StallTimeout, 0), defaultStallTimeout)
	if c.OnFatal == nil {
		c.OnFatal = func(error) {}
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return nil
}

// nameOf returns the one name of dir: locks of one process differ by name alone. What is missing of
// it stays as it was given.
func nameOf(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return abs, nil
	}
	return filepath.Join(parent, filepath.Base(abs)), nil
}

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
