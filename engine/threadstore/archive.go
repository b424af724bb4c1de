package threadstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"sync/atomic"

	"trunkline/engine/journal"
)

// archiveSets keeps rows for other nodes, in sets of chunks that are as safe as the journal. A set
// grows at its end. Which chunks count is in the journal (archived).
type archiveSets interface {
	// Put adds chunk n of a set, counted from 0, and is durable when it returns.
	Put(set string, n uint32, chunk []byte) error
	// Get calls f with the first n chunks of a set, lent. Fewer are an error. It stops at the first
	// error of f and returns it as it is.
	Get(set string, n uint32, f func(chunk []byte) error) error
	// Sweep drops the sets of this owner of the journal, and of those before it, that are not used.
	Sweep(used func(set string) bool)
}

const (
	// archiveSetBytes is about how long a set grows. A node that misses the end of one reads all of
	// it.
	archiveSetBytes = 64 << 20
	// maxArchiveSets bounds the sets. Each costs some 50 bytes in every snapshot.
	maxArchiveSets = 64 << 10
	// lineageBytes is the length of the random name of an archive.
	lineageBytes = 16
)

var errArchiveFull = fmt.Errorf("cannot archive rows: there are %d sets", maxArchiveSets)

// archive is what an Engine knows of its archive.
type archive struct {
	to archiveSets // nil: rows are kept by this node alone

	cut     atomic.Bool // messages were cut since rebuilt
	rebuilt int64

	mu        sync.Mutex // held while rows are archived
	has       archiveState
	sweepFrom uint64   // how many snapshots this owner has written then
	open      struct { // the set that this owner goes on with; no name: none
		name  string
		bytes int
	}
}

// SetArchive has the rows go to a, too, before each snapshot of the journal: nodes that follow the
// journal then have rows of their own, and get from a what the journal has purged
// (replicated.Archive). It comes before SetRows.
func (e *Engine) SetArchive(a archiveSets) { e.archive.to = a }

// archiveRows brings the archive up to all that was appended before the call. from is the index of
// the snapshot that this process has started from.
func (e *Engine) archiveRows(from journal.Index) error {
	a := &e.archive
	if a.to == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := e.store.Barrier(context.Background()); err != nil {
		return err
	}
	end, lineage := e.safe(), a.has.Lineage
	if err := e.storeUpTo(end); err != nil {
		return err
	}
	if len(lineage) == 0 {
		lineage = newLineage()
	}
	for more := true; more; {
		rec := archived{Lineage: lineage, UpTo: end, At: e.cfg.Now()}
		if e.stored.Load() > a.has.UpTo { // else the journal has no row since
			if err := e.archiveSince(max(a.has.UpTo, from), &rec); err != nil {
				a.open.name = "" // what was put counts nothing: the next attempt begins another set
				return fmt.Errorf("cannot archive rows: %w", err)
			}
		}
		e.record(opArchive, &rec)
		a.has.add(&rec)
		more = rec.UpTo < end
	}
	return nil
}

func newLineage() []byte {
	lineage := make([]byte, lineageBytes)
	_, _ = rand.Read(lineage) // it does not fail
	return lineage
}

// errArchived ends a replay.
var errArchived = errors.New("all is archived")

// archiveSince puts the records of rows behind an index, up to that of rec or until the set is long
// enough, and notes in rec where they are and how far they go. Caller holds archive.mu.
func (e *Engine) archiveSince(after journal.Index, rec *archived) error {
	a := &e.archive
	set := archivedSet{Name: a.open.name}
	if n := len(a.has.Sets); set.Name != "" && a.open.bytes < e.cfg.setBytes {
		set.Chunks = a.has.Sets[n-1].Chunks // nothing but this owner adds sets
	} else {
		if n == maxArchiveSets {
			return errArchiveFull
		}
		e.sweepArchive()
		set.Name, a.open.bytes = rand.Text(), 0
	}
	w := blockWriter{next: set.Chunks, put: func(n uint32, chunk []byte) error {
		a.open.bytes += len(chunk)
		return a.to.Put(set.Name, n, chunk)
	}}
	err := e.store.Log().Replay(after, func(i journal.Index, r []byte) error {
		switch {
		case i > rec.UpTo:
			return errArchived
		case w.next > set.Chunks && a.open.bytes >= e.cfg.setBytes:
			rec.UpTo = i - 1
			return errArchived
		case len(r) < 2 || r[0] != Tag || !hasRow(r[1]):
			return nil
		}
		return w.add(i, r[1:])
	})
	if err == nil || err == errArchived {
		err = w.flush()
	}
	if err != nil || w.next == set.Chunks {
		return err
	}
	set.Chunks, set.UpTo = w.next, rec.UpTo
	rec.Set, a.open.name = set, set.Name
	return nil
}

// hasRow reports whether records of a kind make rows.
func hasRow(kind byte) bool {
	switch kind {
	case opThread, opMessage, opStatus, opMembers, opJob, opAudit, opErasure, opCut:
		return true
	}
	return false
}

// add notes what was archived last.
func (s *archiveState) add(rec *archived) {
	s.Lineage, s.UpTo = rec.Lineage, rec.UpTo
	switch n := len(s.Sets); {
	case rec.Set.Name == "":
	case n > 0 && s.Sets[n-1].Name == rec.Set.Name:
		s.Sets[n-1] = rec.Set
	default:
		s.Sets = append(s.Sets, rec.Set)
	}
}

func (s *archiveState) uses(set string) bool {
	return slices.ContainsFunc(s.Sets, func(have archivedSet) bool { return have.Name == set })
}

// A set of the archive holds blocks, one behind the other. A block is records in the order of the
// journal, kept as a run is, and cut into chunks:
//
//	 0      1      2        6        14      18
//	+------+------+--------+--------+-------+----------------+
//	| vers | more | number | last   | crc   | of the block   |
//	|      |      | u32    | u64    | u32   |                |
//	+------+------+--------+--------+-------+----------------+
//
// Integers are big endian. more is 1 where the next chunk goes on with the block. number counts the
// chunks of the set, last is the index of the last record of the block, crc is CRC32C of all else.
// A record is its index and its length as uvarints, its kind, and the rest of it.
const (
	archiveVersion = 1
	chunkHead      = 18
	chunkSum       = 14
	// blockBytes is how long a block grows. A record that is longer has its own.
	blockBytes = 224 << 10
	// maxKeptBlock bounds what is put together of chunks.
	maxKeptBlock = journal.MaxRecordBytes + 2*blockBytes
)

var errBadArchive = errors.New("cannot parse the archive of rows")

// blockWriter makes the chunks of a set.
type blockWriter struct {
	put  func(n uint32, chunk []byte) error
	next uint32 // number of a chunk
	last journal.Index

	raw, kept, work, chunk []byte
}

// add appends a record.
func (w *blockWriter) add(index journal.Index, rec []byte) error {
	w.raw = binary.AppendUvarint(binary.AppendUvarint(w.raw, index), uint64(len(rec)))
	w.raw, w.last = append(w.raw, rec...), index
	if len(w.raw) < blockBytes {
		return nil
	}
	return w.flush()
}

// flush ends a block.
func (w *blockWriter) flush() error {
	if len(w.raw) == 0 {
		return nil
	}
	w.kept = appendRun(w.kept[:0], w.raw, &w.work)
	w.raw = w.raw[:0]
	for rest, more := w.kept, true; more; w.next++ {
		n := min(len(rest), journal.MaxChunkBytes-chunkHead)
		more = n < len(rest)
		c := append(w.chunk[:0], archiveVersion, 0)
		if more {
			c[1] = 1
		}
		c = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(c, w.next), w.last)
		c = append(append(c, 0, 0, 0, 0), rest[:n]...)
		binary.BigEndian.PutUint32(c[chunkSum:], sumOfChunk(c))
		if err := w.put(w.next, c); err != nil {
			return err
		}
		w.chunk, rest = c, rest[n:]
	}
	return nil
}

// sumOfChunk returns the checksum of a chunk without the sum that it has.
func sumOfChunk(c []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(c[:chunkSum], table), table, c[chunkHead:])
}

// blockReader takes the chunks of a set.
type blockReader struct {
	after journal.Index // records up to it are not shown
	// f is called with the records; rec begins with its kind, and is lent.
	f func(index journal.Index, rec []byte) error

	next uint32
	more bool // kept is the begin of a block that ends at last
	last journal.Index

	kept, work []byte
}

// take takes the next chunk.
func (r *blockReader) take(c []byte) error {
	if len(c) < chunkHead || c[0] != archiveVersion || c[1] > 1 || binary.BigEndian.Uint32(c[2:]) != r.next ||
		binary.BigEndian.Uint32(c[chunkSum:]) != sumOfChunk(c) {
		return errBadArchive
	}
	last := binary.BigEndian.Uint64(c[6:])
	if r.more && last != r.last || !r.more && last <= r.last || len(r.kept)+len(c) > maxKeptBlock {
		return errBadArchive
	}
	r.next, r.more, r.last = r.next+1, c[1] == 1, last
	if last <= r.after {
		return nil
	}
	r.kept = append(r.kept, c[chunkHead:]...)
	if r.more {
		return nil
	}
	run, err := openRun(r.kept, &r.work)
	r.kept = r.kept[:0]
	if err != nil {
		return fmt.Errorf("%w: %w", errBadArchive, err)
	}
	return r.records(run)
}

// records calls f with those of a block.
func (r *blockReader) records(run []byte) error {
	for before := journal.Index(0); len(run) > 0; {
		index, n := binary.Uvarint(run)
		length, m := binary.Uvarint(run[max(n, 0):])
		if n <= 0 || m <= 0 || index <= before || index > r.last || length == 0 || length > uint64(len(run)-n-m) {
			return errBadArchive
		}
		rec := run[n+m:][:length]
		run, before = run[n+m:][length:], index
		if index > r.after {
			if err := r.f(index, rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// end returns an error where the set ends inside of a block.
func (r *blockReader) end() error {
	if r.more {
		return errBadArchive
	}
	return nil
}
