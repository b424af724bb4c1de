package ipc

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"trunkline/engine/idem"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
)

// RecoverOptions is what Recover is given beside the journal. The zero value will do.
type RecoverOptions struct {
	// Full says whether the disk is too full to change anything. nil: it never is. It is asked for every request that changes something.
	Full func() bool
	// Broken says, while Full is true, whether that is for want of something else than room. nil: it never is.
	Broken func() bool
	// Progress is called on the goroutine of Recover, at the end of each phase and now and then before. nil: nobody is told.
	Progress func(RecoverProgress)
}

// RecoverProgress is how far Recover is: first through the snapshot, if there is one, then through the log behind it.
type RecoverProgress struct {
	// Snapshot tells the phase: Done and Total are bytes of the snapshot, else records of the log.
	Snapshot    bool
	Done, Total uint64
}

// Recover replays a journal into the service, which must be empty and have Config.Journaled, and has it written to from then on. It
// comes before Start and before the first connection. After an error the service is of no use, and the journal is as it was.
func (s *Service) Recover(log *journal.Log, o RecoverOptions) error {
	l := &loader{s: s, tell: o.Progress}
	l.lanes = newLanes(s.kernel, l.finish)
	defer l.lanes.stop()
	s.orch.Recovering(true)
	defer s.orch.Recovering(false)
	from, err := log.LoadSnapshot(func(r io.Reader, _ journal.Index, size uint64) error {
		l.snapshot = size
		return l.first(l.load(r, size))
	})
	if err != nil {
		return fmt.Errorf("cannot load the snapshot: %w", err)
	}
	l.begin(false, log.Appended()-from)
	l.from = from
	if err = l.first(log.ReplayThen(from, l.replay, l.end)); err != nil {
		return err
	}
	s.base, s.tail, s.snapshot = l.latest, l.tail, l.snapshot
	s.keys.Recovered() // by the clock that goes on
	s.writer.log, s.writer.full, s.writer.broken = log, o.Full, o.Broken
	return nil
}

// loader puts back a snapshot and what was recorded since.
type loader struct {
	s              *Service
	lanes          *lanes
	call           orchestration.Call
	latest         int64         // reading of the monotonic clock
	from           journal.Index // that of the snapshot
	snapshot, tail uint64        // bytes of it, and of the records behind it
	window         journal.Index // up to it, replay meets what the snapshot has already
	settled        bool          // the replay is behind it
	ended          bool          // the snapshot is

	tell     func(RecoverProgress) // may be nil
	progress RecoverProgress
}

// begin starts a phase.
func (l *loader) begin(snapshot bool, total uint64) {
	l.progress = RecoverProgress{Snapshot: snapshot, Total: total}
	l.lanes.loads = snapshot
}

// done tells how far the phase is.
func (l *loader) done(n uint64) {
	l.progress.Done = n
	if l.tell != nil {
		l.tell(l.progress)
	}
}

// first returns, once the lanes are through, their error or else err, which came later.
func (l *loader) first(err error) error {
	if earlier := l.lanes.drain(); earlier != nil {
		return earlier
	}
	return err
}

// step is something that has to keep the order of all records.
type step struct {
	index journal.Index
	rec   []byte // of the pipelines and envelopes; nil:
	ends  []byte // the process that ends, if
	lane  int    // this lane has
	task  int    // this one applied
}

// replay takes the record with index i.
func (l *loader) replay(i journal.Index, rec []byte) error {
	l.tail += uint64(len(rec))
	if i > l.window && !l.settled {
		if err := l.settle(); err != nil {
			return err
		}
	}
	if err := l.take(i, rec); err != nil {
		return l.first(fmt.Errorf("cannot replay record %d: %w", i, err))
	}
	return nil
}

// settle ends the window in which replay meets what the snapshot has already.
func (l *loader) settle() error {
	err := l.lanes.drain()
	l.settled = true
	l.lanes.rec.Settle()
	return err
}

// take puts a record into a bundle.
func (l *loader) take(i journal.Index, rec []byte) error {
	switch {
	case len(rec) == 0:
		return fmt.Errorf("%w: it is empty", kernel.ErrBadChange)
	case rec[0] == orchestrationRecord && len(rec) > bundleBytes: // in place: nothing else needs so much room
		if err := l.lanes.drain(); err != nil {
			return err
		}
		return l.orchestrate(i, rec[1:])
	case rec[0] == keyRecord: // it meets nothing that the others do
		return l.key(i, rec[1:])
	case rec[0] != kernelRecord && rec[0] != orchestrationRecord:
		return fmt.Errorf("%w: tag %q", kernel.ErrBadChange, rec[0])
	}
	b, err := l.lanes.room(len(rec))
	if err != nil {
		return err
	}
	kept := b.keep(rec[1:])
	b.done = i - l.from
	if rec[0] == orchestrationRecord {
		b.ordered = append(b.ordered, step{index: i, rec: kept})
		return nil
	}
	to, err := l.lanes.rec.RouteChange(kept, i)
	if err != nil || to.Lane == kernel.NoLane {
		return err
	}
	if to.Ends != nil {
		b.ordered = append(b.ordered, step{index: i, ends: to.Ends, lane: to.Lane, task: len(b.lanes[to.Lane])})
	}
	b.lanes[to.Lane] = append(b.lanes[to.Lane], task{index: i, hash: to.Hash, rec: kept})
	return nil
}

// finish does what has to keep the order of all records, of those before an index, when the lanes are through with b.
func (l *loader) finish(b *bundle, before journal.Index) error {
	for i := range b.ordered {
		st := &b.ordered[i]
		if st.index >= before {
			break
		}
		if st.rec == nil {
			if b.lanes[st.lane][st.task].applied {
				l.s.orch.CancelBefore(st.ends, st.index) // the session's own record may have been lost with the tail
			}
		} else if err := l.orchestrate(st.index, st.rec); err != nil {
			return b.cannot(st.index, err)
		}
	}
	l.done(b.done)
	return nil
}

func (l *loader) orchestrate(i journal.Index, rec []byte) error {
	var c orchestration.Change
	err := orchestration.ParseChange(rec, &c)
	if err == nil {
		l.latest = max(l.latest, c.At.Mono)
		err = l.s.orch.Apply(&l.call, &c, i)
	}
	return err
}

func (l *loader) key(i journal.Index, rec []byte) error {
	var c idem.Change
	err := idem.ParseChange(rec, &c)
	if err == nil {
		l.latest = max(l.latest, c.At)
		err = l.s.keys.Apply(&c, i)
	}
	return err
}

// end is reached when all is replayed, and nothing is changed yet.
func (l *loader) end() error {
	if err := l.lanes.drain(); err != nil {
		return err
	}
	latest, err := l.lanes.rec.Finish()
	l.latest = max(l.latest, latest)
	l.done(l.progress.Total)
	return err
}

// load reads a whole snapshot.
func (l *loader) load(r io.Reader, size uint64) error {
	l.begin(true, size)
	in, read := bufio.NewReaderSize(r, snapshotRead), uint64(0)
	for ordinal := journal.Index(1); ; ordinal++ {
		rec, n, err := l.next(in)
		if err == io.EOF && l.ended {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot read the snapshot: %w", noEOF(err))
		}
		read += n
		if err := l.record(ordinal, rec[0], rec[1:], read); err != nil {
			return err
		}
	}
	l.lanes.rec.Lenient(l.window)
	err := l.lanes.drain()
	l.done(size)
	return err
}

// snapshotRead is how much of a snapshot is read ahead: any record of the kernel, so that one is copied only to its bundle.
const snapshotRead = kernel.MaxSnapshotRecordLen + 16

// next returns the next record of a snapshot, valid until the next call, and its length with what stands in front of it.
func (l *loader) next(in *bufio.Reader) (rec []byte, size uint64, err error) {
	n, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, 0, err
	}
	if n == 0 || n > maxSnapshotRecord || l.ended {
		return nil, 0, fmt.Errorf("%w: a snapshot record of %d bytes", kernel.ErrBadChange, n)
	}
	size = n + uint64(len(binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64), n)))
	if n > snapshotRead {
		rec = make([]byte, n)
		_, err = io.ReadFull(in, rec)
		return rec, size, noEOF(err)
	}
	rec, err = in.Peek(int(n))
	if err == nil {
		_, err = in.Discard(int(n))
	}
	return rec, size, noEOF(err)
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// record takes a record of a snapshot, which ends where read bytes of it are read.
func (l *loader) record(ordinal journal.Index, tag byte, rec []byte, read uint64) error {
	switch tag {
	case kernelRecord:
		return l.row(ordinal, rec, read)
	case orchestrationRecord:
		return l.s.orch.LoadRecord(&l.call, rec)
	case keyRecord:
		return l.s.keys.LoadRecord(rec)
	case clockRecord, endRecord:
		if len(rec) != 8 {
			break
		}
		n := binary.BigEndian.Uint64(rec)
		if tag == clockRecord {
			l.latest = max(l.latest, int64(n))
		} else {
			l.window, l.ended = n, true
		}
		return nil
	}
	return fmt.Errorf("%w: a snapshot record with the tag %q", kernel.ErrBadChange, tag)
}

// row puts a record of the kernel into a bundle.
func (l *loader) row(ordinal journal.Index, rec []byte, read uint64) error {
	b, err := l.lanes.room(len(rec))
	if err != nil {
		return err
	}
	b.done = read
	to, err := l.lanes.rec.RouteSnapshot(rec)
	if err != nil || to.Lane == kernel.NoLane {
		return err
	}
	b.lanes[to.Lane] = append(b.lanes[to.Lane], task{index: ordinal, hash: to.Hash, rec: b.keep(rec)})
	return nil
}
