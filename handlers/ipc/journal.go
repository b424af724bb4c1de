package ipc

import (
	"fmt"
	"io"
	"sync"

	"trunkline/codec/mpack"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
)

// Whose change a record holds: its first byte.
const (
	kernelRecord        byte = 'k'
	orchestrationRecord byte = 'o'
)

// writer puts changes into the journal and has replies wait until what they tell cannot be lost any more.
type writer struct {
	log     *journal.Log // nil: nothing is written, nothing waits
	full    func() bool  // nil: never
	buffers sync.Pool    // of *[]byte, for encoding under the locks that decided

	mu      sync.Mutex
	waiting []*session // whose held replies leave at session.until
}

// append writes one record. Caller holds the lock that decided it.
func (w *writer) append(tag byte, encode func(dst []byte) []byte) journal.Index {
	if w.log == nil {
		return 0 // the journal is being replayed
	}
	buf, _ := w.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	*buf = encode(append((*buf)[:0], tag))
	index := w.log.Append(*buf)
	if cap(*buf) <= keepText {
		w.buffers.Put(buf)
	}
	return index
}

func (w *writer) kernelChange(c *kernel.Change) journal.Index {
	return w.append(kernelRecord, func(dst []byte) []byte { return kernel.AppendChange(dst, c) })
}

func (w *writer) orchestrationChange(c *orchestration.Change) journal.Index {
	return w.append(orchestrationRecord, func(dst []byte) []byte { return orchestration.AppendChange(dst, c) })
}

// await has the session woken once the journal is durable up to s.until.
func (w *writer) await(s *session) {
	w.mu.Lock()
	if !s.awaits {
		s.awaits = true
		w.waiting = append(w.waiting, s)
	}
	w.mu.Unlock()
	if w.log.Durable() >= s.until.Load() {
		s.port.Wake() // it came in between
	}
}

// durable wakes the sessions whose replies may leave.
func (w *writer) durable(upTo journal.Index) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.waiting[:0]
	for _, s := range w.waiting {
		if s.until.Load() > upTo {
			kept = append(kept, s)
			continue
		}
		s.awaits = false
		s.port.Wake()
	}
	clear(w.waiting[len(kept):])
	w.waiting = kept
}

// Durable tells that everything the journal holds up to an index is safe: it is the journal's OnDurable.
func (s *Service) Durable(upTo journal.Index) { s.writer.durable(upTo) }

// Recover replays a journal into the service, which must be empty and have Config.Journaled, and has it written to from then on. It
// comes before Start and before the first connection. After an error the service is of no use. full, if not nil, says whether the
// disk is too full to change anything.
func (s *Service) Recover(log *journal.Log, full func() bool) error {
	l := loader{s: s}
	from, err := log.LoadSnapshot(func(r io.Reader, _ journal.Index) error { return l.load(r) })
	if err != nil {
		return fmt.Errorf("cannot load the snapshot: %w", err)
	}
	err = log.Replay(from, func(i journal.Index, rec []byte) error { return l.replay(i, rec) })
	if err == nil {
		err = l.settle()
	}
	if err != nil {
		return err
	}
	s.base = l.latest
	s.writer.log, s.writer.full = log, full
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

// Digest returns a number that two services share that hold the same processes, envelopes and sessions.
func (s *Service) Digest() uint64 { return s.kernel.Digest() + s.orch.Digest() }
