package replicated

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"trunkline/engine/journal"
)

// errStop ends a Read early.
var errStop = errors.New("stop")

// read calls f with the messages of a range, all of them. What the replica that shows the range has
// lost, or does not have yet, is asked for one by one: the leader answers for single messages.
func (s *Store) read(ctx context.Context, from, to uint64, f func(m *Message) error) error {
	want := from
	var failed error
	each := func(m *Message) error {
		if m.Seq < want {
			return nil
		}
		if want < m.Seq {
			s.log.Warn("a replica of the journal has lost messages", "from", want, "before", m.Seq)
		}
		for want < m.Seq && failed == nil {
			failed = s.single(ctx, want, f)
			want++
		}
		if failed == nil {
			failed = f(m)
			want++
		}
		return failed
	}
	err := s.cfg.Stream.Read(ctx, from, to, each)
	if failed != nil || ctx.Err() != nil || to == Forever {
		return cmp.Or(failed, err)
	}
	for ; want <= to; want++ {
		if err := s.single(ctx, want, f); err != nil {
			return err
		}
	}
	return nil
}

// single calls f with one message. Where the leader has lost it, another one may have it.
func (s *Store) single(ctx context.Context, seq uint64, f func(m *Message) error) error {
	for {
		seen, failed := false, error(nil)
		err := s.cfg.Stream.Read(ctx, seq, seq, func(m *Message) error {
			if seen = m.Seq == seq; seen {
				failed = f(m)
			}
			return failed
		})
		switch {
		case failed != nil:
			return failed
		case err != nil:
			return fmt.Errorf("cannot read message %d of the stream: %w", seq, err)
		case seen:
			return nil
		}
		if err = s.missing(ctx, seq); !errors.As(err, new(*journal.DamageError)) || !s.cfg.Elsewhere(ctx, err) {
			return err
		}
	}
}

// missing returns why a message is not there: it was purged, or it is lost.
func (s *Store) missing(ctx context.Context, seq uint64) error {
	st, err := s.cfg.Stream.State(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("cannot read message %d of the stream: %w", seq, err)
	case st.First > seq:
		return fmt.Errorf("%w: message %d was purged", ErrRebuild, seq)
	}
	return &journal.DamageError{Where: fmt.Sprintf("message %d of the stream", seq), Err: errors.New("it is missing")}
}

// message returns one message, without its data.
func (s *Store) message(seq uint64) (Message, error) {
	var out Message
	err := s.single(s.ctx, seq, func(m *Message) error {
		out = *m
		out.Data = nil
		return nil
	})
	return out, err
}

// Blocks implements journal.Store.
func (s *Store) Blocks(from journal.Index, f func(first journal.Index, block []byte) error) error {
	if s.closed.Load() {
		return journal.ErrClosed
	}
	return s.blocks(from, s.stored.Load(), f)
}

// blocks is Blocks up to a sequence. It may be inside of a block in parts that was being stored
// when the stream was looked at: then the block before it is the last one.
func (s *Store) blocks(from journal.Index, end uint64, f func(first journal.Index, block []byte) error) error {
	cuts := s.cuts()
	at, err := s.locate(from, end, cuts)
	switch {
	case err != nil:
		return err
	case at > end && end > s.bare.Load():
		return fmt.Errorf("%w: message %d was purged", ErrRebuild, end)
	case at > end:
		return nil
	}
	var whole joiner
	shown := false
	err = s.read(s.ctx, at, end, func(m *Message) error {
		if !carries(m) || hidden(cuts, m) {
			return nil
		}
		block, err := whole.next(m)
		if block == nil || err != nil {
			return err
		}
		shown = true
		return f(m.First, block)
	})
	if err == nil && whole.left > 0 && !shown {
		return s.blocks(from, at-1, f)
	}
	return err
}

// carries reports whether a message is a block or a part of one.
func carries(m *Message) bool { return m.Kind == KindBlock || m.Kind == KindPart }

// hidden reports whether a block was cut.
func hidden(cuts []cut, m *Message) bool {
	for _, c := range cuts {
		if m.Seq < c.seq && m.First >= c.from {
			return true
		}
	}
	return false
}

// locate returns the sequence of the block that holds an index: of the last one, up to end, whose
// first index is at most that. Where there is none it is that of the first message. Between two
// cuts the first indexes never fall, so each stretch is searched by halves, the last one first.
func (s *Store) locate(from journal.Index, end uint64, cuts []cut) (uint64, error) {
	st, err := s.cfg.Stream.State(s.ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot read journal: %w", err)
	}
	lo := max(st.First, 1)
	for i := len(cuts); i >= 0 && end >= lo; i-- {
		begin := lo
		if i > 0 {
			begin = max(lo, cuts[i-1].seq)
		}
		if i < len(cuts) {
			if cuts[i].from == 0 {
				return lo, nil
			}
			from = min(from, cuts[i].from-1)
		}
		at, found, err := s.search(from, begin, end)
		if err != nil || found {
			return at, err
		}
		end = min(end, begin-1)
	}
	return lo, nil
}

// search looks for the last block in a range whose first index is at most from. Messages that are
// no blocks repeat the first index of the last block before them, and 0 where there was none.
func (s *Store) search(from journal.Index, begin, end uint64) (at uint64, found bool, err error) {
	above, last, err := s.firstWhere(begin, end, func(first journal.Index) bool { return first > from })
	switch {
	case err != nil || above == begin || last.First == 0:
		return 0, false, err
	case last.Kind == KindBlock:
		return last.Seq, true, nil
	}
	at, _, err = s.firstWhere(begin, above-1, func(first journal.Index) bool { return first >= last.First })
	if err != nil {
		return 0, false, err
	}
	m, err := s.message(at)
	return at, m.Kind == KindBlock, err
}

// firstWhere returns the first sequence of a range for whose first index f is true, and end + 1
// where there is none; below is the message before it, where that is in the range.
func (s *Store) firstWhere(begin, end uint64, f func(first journal.Index) bool) (seq uint64, below Message, err error) {
	lo, hi := begin, end+1
	for mid := end; lo < hi; mid = lo + (hi-lo)/2 { // most look for the end of the log
		m, err := s.message(mid)
		if err != nil {
			return 0, below, err
		}
		if f(m.First) {
			hi = mid
		} else {
			lo, below = mid+1, m
		}
	}
	return lo, below, nil
}

// DropBlocks implements journal.Store. The last control message stays.
func (s *Store) DropBlocks(upTo journal.Index) error {
	if err := s.err(); err != nil {
		return err
	}
	cuts := s.cuts()
	at, err := s.locate(upTo, s.stored.Load(), cuts)
	if err != nil {
		return err
	}
	s.seen.Lock()
	if s.seen.at != 0 {
		at = min(at, s.seen.at)
	}
	s.seen.Unlock()
	if err := s.cfg.Stream.Purge(s.ctx, at); err != nil {
		return fmt.Errorf("cannot drop journal before index %d: %w", upTo, err)
	}
	return nil
}
