package ipc

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"trunkline/codec/mpack"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
)

// RecoverOptions is what Recover is given beside the journal. The zero value will do.
type RecoverOptions struct {
	// Full says whether the disk is too full to change anything. nil: it never is. It is asked for every request that changes something.
	Full func() bool
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
// comes before Start and before the first connection. After an error the service is of no use.
func (s *Service) Recover(log *journal.Log, o RecoverOptions) error {
	l := loader{s: s, tell: o.Progress}
	from, err := log.LoadSnapshot(func(r io.Reader, _ journal.Index, size uint64) error {
		l.total, l.snapshot = size, true
		return l.load(r)
	})
	if err != nil {
		return fmt.Errorf("cannot load the snapshot: %w", err)
	}
	l.snapshot, l.done, l.total = false, 0, log.Appended()-from
	err = log.Replay(from, func(i journal.Index, rec []byte) error {
		l.advance(1)
		return l.replay(i, rec)
	})
	if err == nil {
		err = l.settle()
	}
	if err != nil {
		return err
	}
	s.base = l.latest
	s.writer.log, s.writer.full = log, o.Full
	return nil
}

// settle ends the window in which replay meets what the snapshot has already.
func (l *loader) settle() error {
	if l.window == 0 {
		return nil
	}
	l.window = 0
	return l.s.kernel.FinishLoad()
}

// replay applies the record with index i.
func (l *loader) replay(i journal.Index, rec []byte) error {
	if i > l.window {
		if err := l.settle(); err != nil {
			return err
		}
	}
	at, err := l.s.replay(&l.call, i, rec)
	if err != nil {
		return fmt.Errorf("cannot replay record %d: %w", i, err)
	}
	l.latest = max(l.latest, at)
	return nil
}

// replay applies one record; at is the reading of the monotonic clock in it, 0 if it has none.
func (s *Service) replay(call *orchestration.Call, index journal.Index, rec []byte) (at int64, err error) {
	if len(rec) == 0 {
		return 0, fmt.Errorf("%w: it is empty", kernel.ErrBadChange)
	}
	switch tag, body := rec[0], rec[1:]; tag {
	case kernelRecord:
		c, rest, err := kernel.ParseChange(body)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%w: %s", kernel.ErrBadChange, mpack.TrailingBytes.Text())
		}
		applied := false
		if err == nil {
			applied, err = s.kernel.Apply(&c, index)
		}
		if applied && c.Kind == kernel.ChangeTransition && c.State == kernel.Terminated {
			s.orch.Cancel(c.PID) // its own record may have been lost with the tail
		}
		return c.At, err
	case orchestrationRecord:
		var c orchestration.Change
		if err = orchestration.ParseChange(body, &c); err == nil {
			err = s.orch.Apply(call, &c, index)
		}
		return c.At.Mono, err
	}
	return 0, fmt.Errorf("%w: tag %q", kernel.ErrBadChange, rec[0])
}

// progressStep is after how many bytes or records somebody is told.
const progressStep = 16 << 10

// loader puts a snapshot back.
type loader struct {
	s      *Service
	call   orchestration.Call
	latest int64         // reading of the monotonic clock
	window journal.Index // up to it, replay meets what the snapshot has already
	ended  bool

	tell     func(RecoverProgress) // may be nil
	snapshot bool
	done     uint64
	total    uint64
	told     uint64
}

// advance counts n bytes of the snapshot or records of the log.
func (l *loader) advance(n uint64) {
	l.done += n
	if l.tell != nil && (l.done-l.told >= progressStep || l.done == l.total || l.done < l.told) {
		l.told = l.done
		l.tell(RecoverProgress{Snapshot: l.snapshot, Done: l.done, Total: l.total})
	}
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
		var head [binary.MaxVarintLen64]byte
		l.advance(n + uint64(binary.PutUvarint(head[:], n)))
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
