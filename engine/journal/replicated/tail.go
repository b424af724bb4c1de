package replicated

import (
	"context"
	"errors"

	"trunkline/engine/journal"
)

// Tail calls f with every block from the one that holds an index on: those that are stored and
// those that will be. A block is lent until f returns. turn returns a channel that is closed when
// this node is to take the log over; then Tail looks whether the stream has more than f has seen.
// If so it goes on, and asks for another channel. Otherwise it returns nil, and the first append is
// next. heard is called for each message of the stream, of whatever kind. Tail stops at the first
// error of f and returns it, and when ctx ends. ErrRebuild is returned where what is next was
// purged.
func (s *Store) Tail(ctx context.Context, from journal.Index, turn func() <-chan struct{}, heard func(), f func(first journal.Index, block []byte) error) error {
	t := tailing{s: s, ctx: ctx, cuts: s.cuts(), heard: heard, f: f}
	var err error
	if t.next, err = s.locate(from, s.stored.Load(), t.cuts); err != nil {
		return err
	}
	for {
		ended, err := t.until(turn())
		if !ended || err != nil {
			return err
		}
		if err = s.Refresh(ctx); err != nil {
			if ctx.Err() != nil || errors.As(err, new(*journal.DamageError)) {
				return err
			}
			s.log.Warn("journal cannot be taken over while its stream does not answer", "err", err)
			continue
		}
		if s.stored.Load() < t.next {
			return nil
		}
	}
}

// tailing is a Tail that goes on.
type tailing struct {
	s     *Store
	ctx   context.Context
	cuts  []cut
	next  uint64        // the next sequence
	last  journal.Index // first index of the last block that f got
	heard func()
	f     func(first journal.Index, block []byte) error
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
	err = t.s.read(ctx, t.next, Forever, t.take)
	select {
	case <-turn:
		if errors.Is(err, context.Canceled) && t.ctx.Err() == nil {
			return true, nil
		}
	default:
	}
	return false, err
}

func (t *tailing) take(m *Message) error {
	t.heard()
	switch {
	case m.Kind == KindControl:
		if err := t.s.followControl(m, t.last); err != nil {
			return err
		}
	case m.Kind == KindBlock && !hidden(t.cuts, m):
		if err := t.f(m.First, m.Data); err != nil {
			return err
		}
		t.last = m.First
	}
	t.next = m.Seq + 1
	return nil
}
