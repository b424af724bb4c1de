package ipc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"trunkline/engine/journal"
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
		if err := s.keys.WriteSnapshot(func(rec []byte) error { return out.put(keyRecord, rec) }); err != nil {
			return err
		}
		s.changing.wait() // for the records of what was met
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

// lazyCheck is how long a change that nobody waits for may stay unwritten.
const lazyCheck = 100 * time.Millisecond

// writeLazy has such changes written, until the service is closed.
func (s *Service) writeLazy() {
	tick := time.NewTicker(lazyCheck)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.writer.log.Flush()
		}
	}
}

// keepSnapshots takes snapshots when they are due, until the service is closed.
func (s *Service) keepSnapshots() {
	log := s.writer.log
	tick := time.NewTicker(snapshotCheck)
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
		if full := s.writer.full; !due || full != nil && full() {
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
