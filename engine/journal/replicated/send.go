package replicated

import (
	"errors"
	"fmt"
	"time"
)

// sent is a message that was sent.
type sent struct {
	a     Append
	began time.Duration
	early bool // it was sent before the one before it was known to be stored
	wait  func() Outcome
	done  bool  // guarded by settling
	err   error // why it is not acknowledged, once done
}

// send sends a message behind all that were sent. fill makes it for the sequence before it. The
// first message of a Store takes the log over, and is settled before send returns.
func (s *Store) send(fill func(after uint64) (Message, error)) (*sent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.err(); err != nil {
		return nil, err
	}
	f := &sent{a: Append{After: s.next}, began: s.cfg.Elapsed(), early: s.stored.Load() != s.next}
	if s.fence.Load() == 0 {
		f.a.Marks, f.a.ID = fenceMarks, "claim."+s.nonce
	} else {
		s.number++
		f.a.ID = fmt.Sprintf("%d.%d", s.fence.Load(), s.number)
	}
	var err error
	if f.a.Message, err = fill(s.next); err != nil {
		return nil, err
	}
	f.a.MarksFirst = min(s.lastFirst, f.a.First) // of a cut, its own: blocks before it do not count
	f.wait = s.cfg.Stream.Append(&f.a)
	s.flying = append(s.flying, f)
	s.next = f.seq()
	s.lastFirst = f.a.First
	if s.fence.Load() == 0 {
		return f, s.takeOver(f)
	}
	return f, nil
}

// takeOver settles a first message. The caller holds mu, so nothing else is sent meanwhile.
func (s *Store) takeOver(f *sent) error {
	s.flying = s.flying[:0]
	if s.land(f); f.err != nil {
		return f.err
	}
	s.fence.Store(f.seq())
	return nil
}

// seq returns the sequence that the message has where it is stored.
func (f *sent) seq() uint64 { return f.a.After + uint64(f.a.Marks) + 1 }

// settle returns when the outcome of a message is known, and of all before it: nil where all of
// them are stored.
func (s *Store) settle(f *sent) error {
	s.settling <- struct{}{}
	defer func() { <-s.settling }()
	for !f.done {
		s.mu.Lock()
		oldest := s.flying[0]
		s.flying = s.flying[1:]
		s.mu.Unlock()
		s.land(oldest)
	}
	return f.err
}

// land waits for the outcome of the oldest message. One that fails fails all after it: whatever the
// stream answers for them, they are not acknowledged. It runs for one message at a time.
func (s *Store) land(f *sent) {
	f.done = true
	if f.err = s.err(); f.err != nil {
		return
	}
	if err := s.outcome(f); err != nil {
		s.end(err)
		f.err = s.err()
		return
	}
	s.confirmed.Store(int64(f.began))
	s.stored.Store(f.seq())
}

// outcome waits until it is known whether a message is stored, and sends it again as long as the
// rules allow. Every message before it is stored. A refusal of one that was sent early may mean no
// more than that the one before it was not there yet, so it is sent again once.
func (s *Store) outcome(f *sent) error {
	unknown := false // whether an earlier sending may have stored it
	for {
		o := f.wait()
		switch {
		case o.Err == nil && o.Seq == f.seq():
			return nil
		case o.Err == nil:
			return fmt.Errorf("%w: %w: a message is at %d instead of %d", ErrNotOwner, ErrUnknown, o.Seq, f.seq())
		case errors.Is(o.Err, ErrNotStored) && f.early:
		case errors.Is(o.Err, ErrNotStored) && !unknown:
			return fmt.Errorf("%w: %w", ErrNotOwner, o.Err)
		case errors.Is(o.Err, ErrNotStored), !s.leased(f), !s.pause():
			return fmt.Errorf("%w: %w: %w", ErrNotOwner, ErrUnknown, o.Err)
		default:
			if !unknown {
				s.log.Warn("journal asks again for a message without an answer", "sequence", f.seq(), "err", o.Err)
			}
			unknown = true
		}
		f.early = false
		f.wait = s.cfg.Stream.Append(&f.a)
	}
}

// pause leaves the stream alone before it is asked again. It reports false when the Store closes.
func (s *Store) pause() bool {
	select {
	case <-time.After(askAgainAfter):
		return true
	case <-s.ctx.Done():
		return false
	}
}

// leased reports whether the lease has not ended. That of a first message begins with it.
func (s *Store) leased(f *sent) bool {
	from := time.Duration(s.confirmed.Load())
	if f.a.Marks > 0 {
		from = f.began
	}
	return s.cfg.Elapsed()-from < s.cfg.Lease
}

// end keeps the first error: it is the last word of the Store.
func (s *Store) end(err error) {
	if s.failure.CompareAndSwap(nil, &err) {
		s.log.Warn("journal is not owned any more", "fence", s.fence.Load(), "stored", s.stored.Load(), "err", err)
	}
}
