package replicated

import (
	"context"
	"fmt"

	"trunkline/engine/journal"
)

// Follow calls f with every block that has a record after an index, verified, in order: those that
// are stored and those that will be, until ctx ends or f returns an error, which it returns. A
// block is lent until f returns. Where the log cannot be followed from there any more it returns
// ErrRebuild; what does not follow is a *journal.DamageError. It is for a standby. One that then
// takes the log over calls Refresh, opens a Log and replays after the last index it has seen. An
// error of the connection ends it too; it may be called again from there. Close ends it.
func (s *Store) Follow(ctx context.Context, partition uint32, mode journal.Mode, after journal.Index, f func(b *journal.BlockView) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	cuts := s.cuts()
	at, err := s.locate(after, s.stored.Load(), cuts)
	if err != nil {
		return err
	}
	chain := journal.NewChain(partition, mode, after)
	var whole joiner
	return s.read(ctx, at, Forever, func(m *Message) error {
		switch {
		case m.Kind == KindControl:
			return s.followControl(m, max(chain.Last(), after))
		case !carries(m) || hidden(cuts, m):
			return nil
		}
		block, err := whole.next(m)
		if block == nil || err != nil {
			return err
		}
		if at > 1 && chain.Last() < after && m.First > after {
			return fmt.Errorf("%w: the log begins at index %d", ErrRebuild, m.First)
		}
		b, err := chain.Next(m.First, block)
		if err != nil || b.Last <= after {
			return err
		}
		return f(b)
	})
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
