package store

import (
	"encoding/binary"
	"fmt"
	"io"

	"trunkline/engine/journal"
)

// RecoverOptions is what Recover takes beside the journal. The zero value will do.
type RecoverOptions struct {
	// Full reports whether the disk is too full to change anything. nil: it never is. It is called
	// for every request that changes something.
	Full func() bool
	// Broken reports, while Full is true, whether that is for want of something else than room.
	// nil: it never is.
	Broken func() bool
	// Stale reports whether another process may have become the owner of the log and changed the
	// state there, so that what is read here counts only once a later record is durable. nil: it
	// never is. It is called for every request, and must be cheap.
	Stale func() bool
	// Beat takes what owners before have recorded by Store.Beat. nil: such a record is damage.
	Beat func(rec []byte) error
	// Progress is called on the goroutine of Recover, at the end of each phase and now and then
	// before. nil: progress is not reported.
	Progress func(RecoverProgress)
}

// RecoverProgress is how far Recover is: first through the snapshot, if there is one, then through
// the log behind it.
type RecoverProgress struct {
	// Snapshot is the phase: Done and Total are bytes of the snapshot, else records of the log.
	Snapshot    bool
	Done, Total uint64
}

// Recover replays a journal into the machines, which must be new, and has it written to from then
// on. It comes before Start and before the first change. After an error the machines are of no use,
// and the journal is as it was.
func (s *Store) Recover(log *journal.Log, o RecoverOptions) error {
	l := &loader{emit: o.Progress, beat: o.Beat}
	var parallel Parallel
	for i := range s.cfg.Machines {
		m := &s.cfg.Machines[i]
		switch {
		case m.Tag == clockTag || m.Tag == endTag || m.Tag == beatTag || l.machines[m.Tag] != nil:
			return fmt.Errorf("cannot join a machine: tag %q is in use", m.Tag)
		case (m.Parallel == nil) == (m.Ordered == nil), m.Parallel != nil && parallel != nil:
			return fmt.Errorf("cannot join the machine with tag %q: it is Ordered, or the only Parallel one", m.Tag)
		}
		l.machines[m.Tag] = m
		if m.Parallel != nil {
			parallel = m.Parallel
		} else {
			m.Ordered.Recovering(true)
		}
	}
	l.parallel, l.lanes = parallel, newLanes(parallel, l.finish)
	defer l.lanes.stop()
	from, err := log.LoadSnapshot(func(r io.Reader, _ journal.Index, size uint64) error {
		s.snapshot = size
		return l.first(l.load(r, size))
	})
	if err != nil {
		return fmt.Errorf("cannot load the snapshot: %w", err)
	}
	l.begin(false, log.Appended()-from)
	l.from, s.from = from, from
	if err = l.first(log.ReplayThen(from, l.replay, l.end)); err != nil {
		return err
	}
	s.base, s.tail = l.latest, l.tail
	for _, m := range s.cfg.Machines {
		if m.Ordered != nil {
			m.Ordered.Recovering(false) // by the clock that goes on
		}
	}
	s.log, s.full, s.broken, s.stale = log, o.Full, o.Broken, o.Stale
	return nil
}

// loader puts back a snapshot and what was recorded since.
type loader struct {
	machines [256]*Machine // by tag
	parallel Parallel      // nil: none is
	lanes    *lanes
	latest   int64         // reading of the monotonic clock
	from     journal.Index // that of the snapshot
	tail     uint64        // bytes of the records behind it
	window   journal.Index // up to it, replay meets what the snapshot has already
	settled  bool          // the replay is behind it

	beat     func(rec []byte) error // may be nil
	emit     func(RecoverProgress)  // may be nil
	progress RecoverProgress
}

// begin starts a phase.
func (l *loader) begin(snapshot bool, total uint64) {
	l.progress = RecoverProgress{Snapshot: snapshot, Total: total}
	l.lanes.loads = snapshot
}

// done reports how far the phase is.
func (l *loader) done(n uint64) {
	l.progress.Done = n
	if l.emit != nil {
		l.emit(l.progress)
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
	index  journal.Index
	to     Ordered // takes rec; nil:
	rec    []byte
	follow []byte // follows a change, if
	lane   int    // this lane has
	task   int    // this one applied
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
	if l.lanes.rec != nil {
		l.lanes.rec.Settle()
	}
	return err
}

// take puts a record into a bundle.
func (l *loader) take(i journal.Index, rec []byte) error {
	if len(rec) == 0 {
		return fmt.Errorf("%w: it is empty", errBadRecord)
	}
	if rec[0] == beatTag && l.beat != nil {
		return l.beat(rec[1:])
	}
	m := l.machines[rec[0]]
	if m == nil {
		return fmt.Errorf("%w: tag %q", errBadRecord, rec[0])
	}
	if m.Ordered != nil && len(rec) > MaxLaneRecord { // in place: nothing else needs so much room
		if err := l.lanes.drain(); err != nil {
			return err
		}
		return m.Ordered.Apply(rec[1:], i)
	}
	b, err := l.lanes.room(len(rec))
	if err != nil {
		return err
	}
	kept := b.keep(rec[1:])
	b.done = i - l.from
	if m.Ordered != nil {
		b.ordered = append(b.ordered, step{index: i, to: m.Ordered, rec: kept})
		return nil
	}
	to, err := l.lanes.rec.Route(kept, i)
	if err != nil || to.Lane == NoLane {
		return err
	}
	if to.Follow != nil {
		b.ordered = append(b.ordered, step{index: i, follow: to.Follow, lane: to.Lane, task: len(b.lanes[to.Lane])})
	}
	b.lanes[to.Lane] = append(b.lanes[to.Lane], task{index: i, hash: to.Hash, rec: kept})
	return nil
}

// finish does what has to keep the order of all records, of those before an index, when the lanes
// are through with b.
func (l *loader) finish(b *bundle, before journal.Index) error {
	for i := range b.ordered {
		st := &b.ordered[i]
		if st.index >= before {
			break
		}
		if st.to == nil {
			if b.lanes[st.lane][st.task].applied {
				l.parallel.Follow(st.follow, st.index) // what follows may have a record of its own, lost with the tail
			}
		} else if err := st.to.Apply(st.rec, st.index); err != nil {
			return b.cannot(st.index, err)
		}
	}
	l.done(b.done)
	return nil
}

// end is reached when all is replayed, and nothing is changed yet.
func (l *loader) end() error {
	err := l.lanes.drain()
	if err == nil && l.lanes.rec != nil {
		var latest int64
		latest, err = l.lanes.rec.Finish()
		l.latest = max(l.latest, latest)
	}
	if err != nil {
		return err
	}
	for _, m := range l.machines {
		if m != nil && m.Ordered != nil {
			l.latest = max(l.latest, m.Ordered.Latest())
		}
	}
	l.done(l.progress.Total)
	return nil
}

// load reads a whole snapshot.
func (l *loader) load(r io.Reader, size uint64) error {
	l.begin(true, size)
	in := newSnapshotReader(r)
	for ordinal := journal.Index(1); ; ordinal++ {
		tag, rec, err := in.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = l.record(ordinal, tag, rec, in.read)
		}
		if err != nil {
			return err
		}
	}
	if l.lanes.rec != nil {
		l.lanes.rec.Lenient(l.window)
	}
	err := l.lanes.drain()
	l.done(size)
	return err
}

// record takes a record of a snapshot, which ends where read bytes of it are read.
func (l *loader) record(ordinal journal.Index, tag byte, rec []byte, read uint64) error {
	switch m := l.machines[tag]; {
	case tag == clockTag:
		l.latest = max(l.latest, int64(binary.BigEndian.Uint64(rec)))
	case tag == endTag:
		l.window = binary.BigEndian.Uint64(rec)
	case m == nil:
		return badTag(tag)
	case m.Ordered != nil:
		return m.Ordered.Load(rec)
	default:
		return l.row(ordinal, rec, read)
	}
	return nil
}

// row puts a record of the parallel machine's snapshot into a bundle.
func (l *loader) row(ordinal journal.Index, rec []byte, read uint64) error {
	b, err := l.lanes.room(len(rec))
	if err != nil {
		return err
	}
	b.done = read
	kept := b.keep(rec)
	to, err := l.lanes.rec.Route(kept, 0)
	if err != nil || to.Lane == NoLane {
		return err
	}
	b.lanes[to.Lane] = append(b.lanes[to.Lane], task{index: ordinal, hash: to.Hash, rec: kept})
	return nil
}
