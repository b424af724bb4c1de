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
	trial bool // that it is refused ends nothing
	wait  func() Outcome
	done  bool  // guarded by settling
	err   error // why it is not acknowledged, once done
}

// send sends a message behind all that were sent. fill makes it for the sequence before it. The
// first message of a Store, which takes the log over, and one in parts are settled before send
// returns: nothing may be sent behind them before.
func (s *Store) send(fill func(a *Append) error) (*sent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.err(); err != nil {
		return nil, err
	}
	f := &sent{a: Append{After: s.next}, began: s.cfg.Elapsed(), early: s.stored.Load() != s.next}
	fence := s.fence.Load()
	if fence == 0 {
		f.a.Marks, f.a.ID = fenceMarks, "claim."+s.nonce
	} else {
		s.number++
		f.a.ID = fmt.Sprintf("%d.%d", fence, s.number)
	}
	if err := fill(&f.a); err != nil {
		return nil, err
	}
	if fence != 0 {
		f.a.Owner, f.a.Sent = fence, f.began
	}
	f.a.MarksFirst = min(s.lastFirst, f.a.First) // of a cut, its own: blocks before it do not count
	f.wait = s.cfg.Stream.Append(&f.a)
	s.next = f.a.Last()
	s.lastFirst = f.a.First
	if fence != 0 && f.a.Parts == 0 {
		s.flying = append(s.flying, f)
		return f, nil
	}
	if s.land(f); f.err == nil && fence == 0 {
		s.fence.Store(f.a.Last())
	}
	return f, f.err
}

// claim takes the log over with a mark, and reports whether it did. It did not where the log has
// more than it shows, which the Store may go on to follow.
func (s *Store) claim() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	f := &sent{began: s.cfg.Elapsed(), trial: true, a: Append{
		Message: Message{Kind: KindMark, First: s.lastFirst}, After: s.next, Marks: fenceMarks, MarksFirst: s.lastFirst,
		ID: fmt.Sprintf("claim.%s.%d", s.nonce, s.number),
	}}
	f.wait = s.cfg.Stream.Append(&f.a)
	s.land(f)
	switch {
	case f.err == nil:
		s.next = f.a.Last()
		s.fence.Store(s.next)
		return true, nil
	case s.err() == nil:
		return false, nil
	}
	return false, f.err
}

// settle returns when the outcome of a message is known, and of all before it: nil where all of
// them are stored.
func (s *Store) settle(f *sent) error {
	s.settling <- struct{}{}
	defer func() { <-s.settling }()
	for !f.done {
		if !s.landOldest() {
			panic("replicated: a message that was sent is not among those in flight")
		}
	}
	return f.err
}

// settleAll settles everything that was sent.
func (s *Store) settleAll() {
	s.settling <- struct{}{}
	defer func() { <-s.settling }()
	for s.landOldest() {
	}
}

// landOldest lands the oldest message that is not settled, and reports whether there was one.
func (s *Store) landOldest() bool {
	s.mu.Lock()
	if len(s.flying) == 0 {
		s.mu.Unlock()
		return false
	}
	oldest := s.flying[0]
	s.flying = s.flying[1:]
	s.mu.Unlock()
	s.land(oldest)
	return true
}

// land waits for the outcome of the oldest message. One that fails fails all after it: whatever the
// stream answers for them, they are not acknowledged. It runs for one message at a time.
func (s *Store) land(f *sent) {
	f.done = true
	if f.err = s.err(); f.err != nil {
		return
	}
	err := s.outcome(f)
	s.trouble.Store(nil)
	if err != nil {
		if f.trial && errors.Is(err, ErrNotStored) && !errors.Is(err, ErrUnknown) {
			f.err = err
			return
		}
		s.end(err)
		f.err = s.err()
		return
	}
	s.confirmed.Store(int64(f.began))
	s.stored.Store(f.a.Last())
}

// outcome waits until it is known whether a message is stored, and sends it again as long as the
// rules allow. Every message before it is stored. A refusal of one that was sent early may mean no
// more than that the one before it was not there yet, so it is sent again once.
func (s *Store) outcome(f *sent) error {
	unknown := false // whether an earlier sending may have stored it
	for {
		o := f.wait()
		switch {
		case o.Err == nil && o.Seq == f.a.Last():
			return nil
		case o.Err == nil:
			return fmt.Errorf("%w: %w: a message is at %d instead of %d", ErrNotOwner, ErrUnknown, o.Seq, f.a.Last())
		case errors.Is(o.Err, ErrNotStored) && f.early:
		case errors.Is(o.Err, ErrNotStored) && !unknown:
			return fmt.Errorf("%w: %w", ErrNotOwner, o.Err)
		case errors.Is(o.Err, ErrNotStored), !s.leased(f), !s.pause():
			return fmt.Errorf("%w: %w: %w", ErrNotOwner, ErrUnknown, o.Err)
		default:
			if !unknown {
				s.log.Warn("journal asks again for a message without an answer", "sequence", f.a.Last(), "err", o.Err)
			}
			unknown = true
			why := o.Err
			s.trouble.Store(&why)
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
