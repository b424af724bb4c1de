package replicated

import (
	"context"
	"errors"
	"fmt"
	"time"

	"trunkline/engine/journal"
)

// Tail calls f with every block from the one that holds an index on: those that are stored and
// those that will be. A block is lent until f returns. turn returns a channel that is closed when
// this node is to take the log over, or was shown nothing for a while; then Tail asks the stream
// for what f has not seen, and asks due, as something may have come since. It goes on, with
// another channel, unless f has seen all and due is true: then it takes the log over and returns
// nil. Where the stream refuses that, as it has more than it shows, Tail goes on. heard is called
// for each message of the stream, of whatever kind, with its Owner and Sent, and whether it is one
// that the Store did not know of, or the last of those. Where the stream does not answer, Tail
// asks again. It stops at the first error of f and returns it, and when ctx ends or the Store
// closes. ErrRebuild is returned where what is next was purged or cut, a *journal.DamageError
// where it is lost.
func (s *Store) Tail(ctx context.Context, from journal.Index, turn func() <-chan struct{}, due func() bool, heard Heard, f func(first journal.Index, block []byte) error) error {
	t := tailing{s: s, ctx: ctx, from: from, cuts: s.cuts(), heard: heard, f: f}
	next := turn()
	for {
		ended, err := t.until(next)
		if ended {
			next = turn()
			if err = s.Refresh(ctx); err == nil && t.next != 0 && t.next <= s.stored.Load() {
				err = s.read(ctx, t.next, s.stored.Load(), t.take) // few, so the leader shows them at once
			}
		}
		switch {
		case t.final(err):
			return err
		case err != nil:
			t.wait(err)
		case ended && t.next != 0 && s.stored.Load()+1 == t.next && due():
			if owns, err := s.claim(); owns || err != nil {
				return err
			}
			if !t.refused {
				s.log.Info("journal has more than its stream shows, and is followed until it does", "seen", t.next-1)
			}
			t.refused = true
		}
	}
}

// Heard is called for a message of a stream, with its Owner and Sent. end: there was no later one
// when the Store has looked last.
type Heard func(owner uint64, sent time.Duration, end bool)

// tailing is a Tail that goes on.
type tailing struct {
	s       *Store
	ctx     context.Context
	from    journal.Index
	cuts    []cut
	begin   uint64 // the sequence that it began at
	next    uint64 // the next sequence, 0 before it is known
	whole   joiner
	last    journal.Index // first index of the last block that f got
	heard   Heard
	f       func(first journal.Index, block []byte) error
	failed  error // of f
	refused bool  // the log was not to be taken over, and that is known to the operator
	silent  bool  // it is known to the operator that the stream does not answer
}

// final reports whether an error ends the Tail: any but those of a stream that does not answer.
func (t *tailing) final(err error) bool {
	return err != nil && (t.failed != nil || t.ctx.Err() != nil || t.s.ctx.Err() != nil || errors.Is(err, ErrRebuild) || errors.As(err, new(*journal.DamageError)))
}

// wait leaves a stream alone that does not answer.
func (t *tailing) wait(err error) {
	if !t.silent {
		t.s.log.Warn("journal cannot be followed while its stream does not answer", "err", err)
	}
	t.silent = true
	t.s.pause()
}

// until reads on until turn is closed (true), or there is an error.
func (t *tailing) until(turn <-chan struct{}) (ended bool, err error) {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-turn:
			cancel()
		case <-done:
		}
	}()
	if t.next == 0 {
		t.begin, err = t.s.locate(t.from, t.s.stored.Load(), t.cuts)
		t.next = t.begin
	}
	if err == nil {
		err = t.s.read(ctx, t.next, Forever, t.take)
	}
	select {
	case <-turn:
		return !t.final(err), err
	default:
		return false, err
	}
}

func (t *tailing) take(m *Message) error {
	t.heard(m.Owner, m.Sent, m.Seq >= t.s.stored.Load())
	t.silent = false
	switch {
	case m.Kind == KindControl:
		if err := t.s.followControl(m, t.last); err != nil {
			return err
		}
	case carries(m) && !hidden(t.cuts, m):
		block, err := t.whole.next(m)
		if err != nil {
			return err
		}
		if block == nil { // more parts come
			break
		}
		if t.last == 0 && t.begin > 1 && m.First > t.from {
			return fmt.Errorf("%w: the log begins at index %d", ErrRebuild, m.First)
		}
		if t.failed = t.f(m.First, block); t.failed != nil {
			return t.failed
		}
		t.last = m.First
	}
	t.next = m.Seq + 1
	return nil
}

// followControl takes a control message over, unless it is known already. last is the last index
// that was seen.
func (s *Store) followControl(m *Message, last journal.Index) error {
	s.seen.Lock()
	known := s.seen.at
	s.seen.Unlock()
	if m.Seq <= known {
		return nil
	}
	if err := s.control(m); err != nil {
		return err
	}
	for _, c := range s.cuts() {
		if c.seq > known && c.from <= last {
			return fmt.Errorf("%w: the log was cut from index %d on", ErrRebuild, c.from)
		}
	}
	return nil
}
