package threads

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"

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

	mu   sync.Mutex // held while rows are archived
	has  archiveState
	open struct { // the set that this owner goes on with; no name: none
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
		lineage = make([]byte, lineageBytes)
		_, _ = rand.Read(lineage) // it does not fail
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
		a.to.Sweep(a.has.uses)
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
	case opThread, opMessage, opStatus, opJob, opAudit:
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
