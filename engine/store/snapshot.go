package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"trunkline/engine/journal"
)

// Tags of a snapshot's records, beside those of the machines.
const (
	// clockTag: the reading of the monotonic clock when the snapshot was begun.
	clockTag byte = 't'
	// endTag: the last index that may be in the snapshot. Up to it, replay meets what is known
	// already.
	endTag byte = 'e'
	// beatTag: a record of the log, by which an owner shows that it is there. No snapshot has it.
	beatTag byte = 'h'
)

// SnapshotCheck is how often it is looked whether a snapshot is due.
const SnapshotCheck = 100 * time.Millisecond

// maxSnapshotRecord bounds a record of a snapshot: an envelope of the largest frame with its
// pipeline, and some room.
const maxSnapshotRecord = journal.MaxRecordBytes

// errBadRecord: a record, of the log or of a snapshot, is not one of the store.
var errBadRecord = errors.New("cannot parse change")

// Snapshot writes the present state into the journal, so that a restart need not replay what came
// before. Requests go on meanwhile.
func (s *Store) Snapshot() error {
	log := s.log
	if log == nil {
		return errors.New("cannot write a snapshot: nothing is journaled")
	}
	index := log.Appended()
	for i := range s.cfg.Machines {
		if prepare := s.cfg.Machines[i].Prepare; prepare != nil {
			if err := prepare(s.from); err != nil {
				return err
			}
		}
	}
	return log.WriteSnapshot(index, func(w io.Writer) error {
		out := &snapshotWriter{w: bufio.NewWriterSize(w, 64<<10)}
		out.number(clockTag, uint64(s.cfg.Now()))
		for _, m := range s.cfg.Machines {
			if err := m.State.WriteSnapshot(func(rec []byte) error { return out.put(m.Tag, rec) }); err != nil {
				return err
			}
		}
		s.changing.wait() // for the records of what was met
		out.number(endTag, log.Appended())
		return out.w.Flush()
	})
}

// snapshotWriter frames records: a length as uvarint, the tag, the record.
type snapshotWriter struct {
	w *bufio.Writer
}

func (o *snapshotWriter) put(tag byte, rec []byte) error {
	var head [binary.MaxVarintLen64 + 1]byte
	b := append(binary.AppendUvarint(head[:0], uint64(len(rec)+1)), tag)
	if _, err := o.w.Write(b); err != nil {
		return err
	}
	_, err := o.w.Write(rec)
	return err
}

// number writes a record that is one number; an error shows at the flush.
func (o *snapshotWriter) number(tag byte, n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	_ = o.put(tag, b[:])
}

// LazyFlush is how long a change that no reply waits for may stay unwritten.
const LazyFlush = 100 * time.Millisecond

// writeLazy has such changes written, until Close.
func (s *Store) writeLazy() {
	tick := time.NewTicker(LazyFlush)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.log.Flush()
		}
	}
}

// keepSnapshots takes snapshots when they are due, until Close.
func (s *Store) keepSnapshots() {
	log := s.log
	tick := time.NewTicker(SnapshotCheck)
	defer tick.Stop()
	at, index, size := time.Now(), log.Appended(), log.Stats()
	last, tail := s.snapshot, s.tail // what was replayed counts: the next start is to find less
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		now := log.Stats()
		grown := tail + now.Bytes - size.Bytes
		due := grown >= max(uint64(s.cfg.SnapshotBytes), last) || time.Since(at) >= s.cfg.SnapshotInterval && log.Appended() > index
		if !due || s.full != nil && s.full() {
			continue // on a full disk it would only fail, and take what is left
		}
		began := time.Now()
		index = log.Appended()
		if err := s.Snapshot(); err != nil {
			s.cfg.Logger.Error("cannot write a snapshot; the journal grows until one succeeds", "error", err)
			at, size, tail = time.Now(), now, 0 // not at once again
			continue
		}
		after := log.Stats()
		last, size, tail, at = after.SnapshotBytes-now.SnapshotBytes, now, 0, time.Now()
		s.cfg.Logger.Info("snapshot written", "index", index, "secs", time.Since(began).Seconds())
	}
}

// snapshotRead is how much of a snapshot is read ahead. Longer records are read into memory of
// their own.
const snapshotRead = 64 << 10

// snapshotReader reads the records of a snapshot.
type snapshotReader struct {
	in    *bufio.Reader
	read  uint64 // bytes that were read
	ended bool   // the end record was
}

func newSnapshotReader(r io.Reader) *snapshotReader {
	return &snapshotReader{in: bufio.NewReaderSize(r, snapshotRead)}
}

// next returns the next record, valid until the next call; io.EOF after the end record.
func (r *snapshotReader) next() (tag byte, rec []byte, err error) {
	n, err := binary.ReadUvarint(r.in)
	switch {
	case err == io.EOF && r.ended:
		return 0, nil, io.EOF
	case err != nil:
		return 0, nil, fmt.Errorf("cannot read the snapshot: %w", noEOF(err))
	case n == 0 || n > maxSnapshotRecord || r.ended:
		return 0, nil, fmt.Errorf("cannot read the snapshot: %w: a snapshot record of %d bytes", errBadRecord, n)
	}
	r.read += n + uint64(len(binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64), n)))
	if n > snapshotRead {
		rec = make([]byte, n)
		_, err = io.ReadFull(r.in, rec)
	} else if rec, err = r.in.Peek(int(n)); err == nil {
		_, err = r.in.Discard(int(n))
	}
	if err != nil {
		return 0, nil, fmt.Errorf("cannot read the snapshot: %w", noEOF(err))
	}
	tag, rec = rec[0], rec[1:]
	r.ended = tag == endTag
	if (tag == clockTag || r.ended) && len(rec) != 8 {
		return 0, nil, badTag(tag)
	}
	return tag, rec, nil
}

func badTag(tag byte) error {
	return fmt.Errorf("%w: a snapshot record with the tag %q", errBadRecord, tag)
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// CheckSnapshot reads a snapshot to its end and checks that it is whole records with known tags and
// an end; tags are those of the machines. It holds one record at a time. It returns how many there
// are. What is in a record is only known by loading it; each gets those of the machines, lent.
func CheckSnapshot(r io.Reader, tags string, each func(tag byte, rec []byte)) (records uint64, err error) {
	for in := newSnapshotReader(r); ; records++ {
		switch tag, rec, err := in.next(); {
		case err == io.EOF:
			return records, nil
		case err != nil:
			return records, err
		case tag != clockTag && tag != endTag && strings.IndexByte(tags, tag) < 0:
			return records, badTag(tag)
		case tag != clockTag && tag != endTag:
			each(tag, rec)
		}
	}
}

// epoch has nothing to do with the journal.Log's epoch, which numbers its owners. It lets a
// snapshot wait for all work that may have changed something when it looked: an entry is in its
// table, or out of it, a moment before the record about it is in the journal, and a snapshot must
// not hold what no record holds. The zero value is ready.
type epoch struct {
	phase  atomic.Uint32
	inside [2]struct {
		n atomic.Int64
		_ [56]byte // the two are counted from different cores
	}
}

// enter notes work that may change something until leave, which takes what enter returned. It does
// not wait or allocate.
func (g *epoch) enter() (ticket uint32) {
	for {
		p := g.phase.Load() & 1
		g.inside[p].n.Add(1)
		if g.phase.Load()&1 == p {
			return p
		}
		g.inside[p].n.Add(-1) // wait has begun in between, and must not miss this
	}
}

func (g *epoch) leave(ticket uint32) { g.inside[ticket].n.Add(-1) }

// epochPause is how long wait sleeps between two looks: a few turns of a loop.
const epochPause = 100 * time.Microsecond

// wait returns once all work has left that had entered before. One goroutine at a time may call it.
func (g *epoch) wait() {
	p := g.phase.Add(1) - 1
	for g.inside[p&1].n.Load() != 0 {
		time.Sleep(epochPause)
	}
}
