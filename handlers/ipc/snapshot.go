package ipc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/link"
	"trunkline/engine/orchestration"
)

// Further tags of a snapshot's records, beside those of the journal.
const (
	// clockRecord holds the reading of the monotonic clock when the snapshot was begun.
	clockRecord byte = 't'
	// endRecord holds the last index that may be in the snapshot: up to it, replay meets what it knows already.
	endRecord byte = 'e'
)

// Defaults of Config.SnapshotBytes and SnapshotInterval.
const (
	DefaultSnapshotBytes    = 64 << 20
	DefaultSnapshotInterval = 10 * time.Minute
)

// snapshotCheck is how often it is looked whether a snapshot is due.
const snapshotCheck = 100 * time.Millisecond

// maxSnapshotRecord bounds a record of a snapshot: an envelope of the largest frame with its pipeline, and some room.
const maxSnapshotRecord = journal.MaxRecordBytes

// Snapshot writes the present state into the journal, so that a restart need not replay what came before. Requests go on meanwhile.
func (s *Service) Snapshot() error {
	log := s.writer.log
	if log == nil {
		return errors.New("cannot write a snapshot: nothing is journaled")
	}
	return log.WriteSnapshot(log.Appended(), func(w io.Writer) error {
		out := &snapshotWriter{w: bufio.NewWriterSize(w, 64<<10)}
		out.number(clockRecord, uint64(s.now(link.Now()).Mono))
		if err := s.kernel.WriteSnapshot(func(rec []byte) error { return out.put(kernelRecord, rec) }); err != nil {
			return err
		}
		call := orchestration.Call{Now: s.now(link.Now())}
		if err := s.orch.WriteSnapshot(&call, func(rec []byte) error { return out.put(orchestrationRecord, rec) }); err != nil {
			return err
		}
		out.number(endRecord, log.Appended())
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

// loader puts a snapshot back.
type loader struct {
	s      *Service
	call   orchestration.Call
	latest int64         // reading of the monotonic clock
	window journal.Index // up to it, replay meets what the snapshot has already
	ended  bool
}

// load reads a whole snapshot.
func (l *loader) load(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var rec []byte
	for {
		n, err := binary.ReadUvarint(in)
		if err == io.EOF && l.ended {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the snapshot: %w", noEOF(err))
		}
		if n == 0 || n > maxSnapshotRecord || l.ended {
			return fmt.Errorf("%w: a snapshot record of %d bytes", kernel.ErrBadChange, n)
		}
		if uint64(cap(rec)) < n {
			rec = make([]byte, n)
		}
		rec = rec[:n]
		if _, err := io.ReadFull(in, rec); err != nil {
			return fmt.Errorf("cannot read the snapshot: %w", noEOF(err))
		}
		if err := l.record(rec[0], rec[1:]); err != nil {
			return err
		}
	}
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (l *loader) record(tag byte, rec []byte) error {
	switch tag {
	case kernelRecord:
		return l.s.kernel.LoadSnapshotRecord(rec)
	case orchestrationRecord:
		return l.s.orch.LoadRecord(&l.call, rec)
	case clockRecord, endRecord:
		if len(rec) != 8 {
			break
		}
		n := binary.BigEndian.Uint64(rec)
		if tag == clockRecord {
			l.latest = max(l.latest, int64(n))
		} else {
			l.s.kernel.Lenient(n)
			l.window, l.ended = n, true
		}
		return nil
	}
	return fmt.Errorf("%w: a snapshot record with the tag %q", kernel.ErrBadChange, tag)
}

// keepSnapshots takes snapshots when they are due, until the service is closed.
func (s *Service) keepSnapshots() {
	log := s.writer.log
	tick := time.NewTicker(snapshotCheck)
	defer tick.Stop()
	at, index, size, last := time.Now(), log.Appended(), log.Stats(), uint64(0)
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		now := log.Stats()
		grown := now.Bytes - size.Bytes
		due := grown >= max(uint64(s.cfg.SnapshotBytes), last) || time.Since(at) >= s.cfg.SnapshotInterval && log.Appended() > index
		if !due {
			continue
		}
		began := time.Now()
		index = log.Appended()
		if err := s.Snapshot(); err != nil {
			s.cfg.Logger.Error("cannot write a snapshot; the journal grows until one succeeds", "error", err)
			at, size = time.Now(), now // not at once again
			continue
		}
		after := log.Stats()
		last, size, at = after.SnapshotBytes-now.SnapshotBytes, after, time.Now()
		s.cfg.Logger.Info("snapshot written", "index", index, "secs", time.Since(began).Seconds())
	}
}
