package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
)

// snapshotWriter writes chunks into SSTables beside the database, which takes them over when
// all are on the disk. So a snapshot is written once and not in the log, where the sync of a block
// would wait for it.
type snapshotWriter struct {
	s        *Store
	g        uint64
	seq      uint32
	paths    []string        // of all files; one for chunkFileBytes, so that a snapshot of 1 GB has 64
	file     *chunkFile      // the last one, while it is open
	table    *sstable.Writer // of file; nil between two files
	held     int             // bytes of the chunks in it
	pace     pacer
	failed   error // of a Write: the snapshot cannot be completed any more
	ingested bool
	done     bool
}

// BeginSnapshot implements journal.Snapshots. One snapshot is written at a time: an earlier one
// that is not committed is discarded.
func (s *Store) BeginSnapshot(g uint64) (journal.SnapshotWriter, error) {
	if err := s.own(); err != nil {
		return nil, err
	}
	_, found, err := s.meta(g)
	if err != nil {
		return nil, err
	}
	if found {
		return nil, fmt.Errorf("cannot begin generation %d: it is complete", g)
	}
	if err := s.prepare(g); err != nil {
		return nil, fmt.Errorf("cannot begin generation %d: %w", g, err)
	}
	s.writing = &snapshotWriter{s: s, g: g, pace: pacer{rate: s.cfg.SnapshotRate}}
	return s.writing, nil
}

// prepare makes room for a snapshot: it removes that number from the database, and all that is
// incoming.
func (s *Store) prepare(g uint64) error {
	if s.writing != nil {
		if err := s.writing.Abort(); err != nil {
			return err
		}
	}
	if err := s.clearIncoming(); err != nil {
		return err
	}
	if err := s.dropUnfinished(g); err != nil {
		return err
	}
	if err := s.settle(g); err != nil {
		return err
	}
	return typed(s.cfg.FS.MkdirAll(s.incomingPath(), 0o700))
}

// settle flushes deletions of chunks of this snapshot from memory. Pebble would do it while it
// ingests, with all commits behind it, and without end on a full disk.
func (s *Store) settle(g uint64) error {
	if !s.undone || g > s.dropped {
		return s.err()
	}
	if err := s.flush(); err != nil {
		return err
	}
	s.undone = false
	return nil
}

// Write implements journal.SnapshotWriter. It waits where Config.SnapshotRate asks for it.
func (w *snapshotWriter) Write(chunk []byte) error {
	switch {
	case w.done:
		return fmt.Errorf("cannot write to generation %d: it is committed or aborted", w.g)
	case len(chunk) == 0 || len(chunk) > journal.MaxChunkBytes:
		return fmt.Errorf("cannot write to generation %d: chunk of %d bytes, want 1 to %d", w.g, len(chunk), journal.MaxChunkBytes)
	case w.seq == ^uint32(0):
		return fmt.Errorf("cannot write to generation %d: more than %d chunks", w.g, w.seq)
	}
	if w.failed == nil {
		w.failed = w.cause(w.add(chunk))
	}
	if w.failed != nil {
		return fmt.Errorf("cannot write to generation %d: %w", w.g, w.failed)
	}
	return nil
}

func (w *snapshotWriter) add(chunk []byte) error {
	if err := w.wait(w.pace.delay(time.Now(), len(chunk))); err != nil {
		return err
	}
	if w.table == nil {
		if err := w.create(); err != nil {
			return err
		}
	}
	err := w.table.Set(appendChunkKey(nil, w.s.cfg.Partition, w.g, w.seq), chunk)
	if err == nil {
		err = w.file.err()
	}
	if err != nil {
		return err
	}
	w.seq++
	if w.held += len(chunk); w.held < chunkFileBytes {
		return nil
	}
	return w.finish()
}

// cause is why an operation failed. Where the log has failed it is that, not its effect on this
// file.
func (w *snapshotWriter) cause(err error) error {
	if err != nil && w.s.fs.failed() {
		return w.s.fs.err()
	}
	return typed(err)
}

func (w *snapshotWriter) wait(d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-w.s.stop:
			return journal.ErrClosed
		}
	}
	return w.s.err()
}

func (w *snapshotWriter) create() error {
	fs := w.s.fs
	path := fs.PathJoin(w.s.incomingPath(), fmt.Sprintf("%06d.chunks", len(w.paths)))
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	o := w.s.options()
	o.EnsureDefaults()
	w.paths = append(w.paths, path)
	w.file, w.held = &chunkFile{file: f, s: w.s}, 0
	w.table = sstable.NewWriter(w.file, o.MakeWriterOptions(0, w.s.db.TableFormat()))
	return nil
}

// finish completes the last file: when it returns nil, the file is on the disk.
func (w *snapshotWriter) finish() error {
	if w.table == nil {
		return nil
	}
	err := w.table.Close()
	w.table = nil
	if also := w.file.err(); also != nil {
		err = also // the first one
	}
	return err
}

// Commit implements journal.SnapshotWriter. The database takes over the chunks and the meta behind
// them all at once. A verification reads the disk, not the memory they were written from.
func (w *snapshotWriter) Commit(meta []byte) error {
	if w.done {
		return fmt.Errorf("cannot commit generation %d: it is committed or aborted", w.g)
	}
	if len(meta) > journal.MaxMetaBytes {
		return fmt.Errorf("cannot commit generation %d: meta of %d bytes, at most %d", w.g, len(meta), journal.MaxMetaBytes)
	}
	if w.failed == nil {
		w.failed = w.cause(w.complete(meta))
	}
	if w.failed != nil && !w.ingested && w.s.err() == nil {
		return fmt.Errorf("cannot commit generation %d: %w: %w", w.g, journal.ErrNotCommitted, w.failed)
	}
	if w.failed != nil {
		return fmt.Errorf("cannot commit generation %d: %w", w.g, w.failed)
	}
	w.end()
	return nil
}

func (w *snapshotWriter) complete(meta []byte) error {
	if w.table == nil {
		if err := w.create(); err != nil {
			return err
		}
	}
	value := append(binary.BigEndian.AppendUint32(nil, w.seq), meta...)
	err := w.table.Set(appendChunkKey(nil, w.s.cfg.Partition, w.g, metaSeq), value)
	if also := w.finish(); also != nil {
		err = also
	}
	if err == nil {
		err = w.syncBefore()
	}
	if err == nil {
		err = w.ingest()
	}
	return err
}

// syncBefore syncs all blocks before the snapshot, and then writes the marks: if the meta is lost
// with the end of the log, they still guard it.
func (w *snapshotWriter) syncBefore() error {
	if err := w.s.Sync(); err != nil {
		return err
	}
	return typed(w.s.mark.sync())
}

// ingest gives all files or none to the database, which syncs its directory and its manifest.
func (w *snapshotWriter) ingest() error {
	if err := w.s.settle(w.g); err != nil {
		return err
	}
	w.ingested = true
	if err := w.s.db.Ingest(context.Background(), w.paths); err != nil {
		return err
	}
	return w.s.err()
}

// Abort implements journal.SnapshotWriter.
func (w *snapshotWriter) Abort() error {
	if w.done {
		return nil
	}
	err := w.discard()
	if w.ingested {
		err = errors.Join(err, w.s.DropSnapshot(w.g))
	}
	return err
}

// discard gives up what is not in the database.
func (w *snapshotWriter) discard() error {
	if w.table != nil {
		w.file.fail(errDiscarded) // or Close would complete it
		_ = w.finish()
	}
	w.end()
	return w.s.clearIncoming()
}

func (w *snapshotWriter) end() {
	w.done = true
	w.s.incoming.Store(0)
	if w.s.writing == w {
		w.s.writing = nil
	}
}
