package replicated

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/journal"
)

// Store is a journal.Store on a stream. journal.Store has the rules of its calls. Tail runs
// before its first change; Barrier, Confirmed and Fence may be called at any time.
type Store struct {
	cfg   Config
	log   *slog.Logger
	nonce string          // of this Store among all
	ctx   context.Context // ends with Close
	quit  context.CancelFunc

	mu        sync.Mutex // guards what follows, up to the next blank line, and the order of sends
	next      uint64     // the last sequence, once all that was sent is stored
	number    uint64     // of the last message that was sent
	flying    []*sent    // not settled, oldest first
	lastFirst journal.Index
	maxData   int // of one message; 0: as long as any

	stored    atomic.Uint64
	bare      atomic.Uint64 // the last sequence of a stream that had no message when it was looked at
	fence     atomic.Uint64
	confirmed atomic.Int64
	failure   atomic.Pointer[error]
	trouble   atomic.Pointer[error] // of the message that is sent again

	begun chan *sent // blocks that were begun and not awaited, oldest first
	// aside and settling are locks that are held while the stream answers: by the one message that
	// is no block, and by who waits for the oldest one. settling is taken last.
	aside, settling chan struct{}

	seen struct { // what the last control message holds
		sync.Mutex
		roster
	}
	closed atomic.Bool
}

var (
	_ journal.Store     = (*Store)(nil)
	_ journal.Pipelined = (*Store)(nil)
)

// Open looks at the end of the stream and at its last control message, and changes nothing. It
// refuses a stream with deleted messages (*journal.DamageError) unless another node has them
// (Config.Elsewhere). The first change takes the log over; it fails (ErrNotOwner) where anything
// was appended since Open or Refresh.
//
// After an error the caller still owns cfg.Local.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, log: cfg.Logger, nonce: rand.Text(), begun: make(chan *sent, cfg.InFlight), aside: make(chan struct{}, 1), settling: make(chan struct{}, 1)}
	s.ctx, s.quit = context.WithCancel(context.Background())
	if err := s.Refresh(ctx); err != nil {
		s.quit()
		return nil, err
	}
	return s, nil
}

// Refresh is for a Store that has appended nothing: it looks at the stream again as Open does. That
// the server which answers is behind what was seen before is an error, and no damage.
func (s *Store) Refresh(ctx context.Context) error {
	st, err := s.wholeState(ctx)
	if err != nil {
		return err
	}
	if err := s.control(st.Control); err != nil {
		return err
	}
	if err := s.notBehind(); err != nil {
		return err
	}
	first, bare := journal.Index(0), st.Last
	if st.Last >= max(st.First, 1) {
		bare = 0
		m, err := s.message(st.Last)
		if err != nil {
			return err
		}
		first = m.First
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fence.Load() != 0 {
		return errors.New("cannot look at the stream again: this node has appended to it")
	}
	s.next, s.lastFirst, s.maxData = st.Last, first, st.MaxData
	s.stored.Store(st.Last)
	s.bare.Store(bare)
	return nil
}

// wholeState returns the state of a stream without holes that has all that was seen before.
func (s *Store) wholeState(ctx context.Context) (State, error) {
	for {
		st, err := s.cfg.Stream.State(ctx)
		if err != nil {
			return State{}, fmt.Errorf("cannot open journal: %w", err)
		}
		if seen := s.stored.Load(); st.Last < seen {
			return State{}, fmt.Errorf("cannot look at the stream again: the server that answers shows %d messages, and there were %d", st.Last, seen)
		}
		if st.Deleted == 0 {
			return st, nil
		}
		err = &journal.DamageError{Where: "stream", Err: fmt.Errorf("%d messages are deleted: this replica has lost them", st.Deleted)}
		if !s.cfg.Elsewhere(ctx, err) {
			return State{}, err
		}
	}
}

// err returns why the Store has ended, if so.
func (s *Store) err() error {
	if s.closed.Load() {
		return journal.ErrClosed
	}
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// InFlight implements journal.Pipelined.
func (s *Store) InFlight() int { return s.cfg.InFlight }

// WriteBlock implements journal.Store.
func (s *Store) WriteBlock(first journal.Index, block []byte) error {
	if err := s.BeginBlock(first, block); err != nil {
		return err
	}
	return s.AwaitBlock()
}

// BeginBlock implements journal.Pipelined. A block that is too long for one message is stored when
// it returns. It is alone on its way, as an owner may not name sequences that a new one could
// reach.
func (s *Store) BeginBlock(first journal.Index, block []byte) error {
	s.mu.Lock()
	parts := split(block, s.maxData)
	s.mu.Unlock()
	if len(parts) > 1 {
		s.aside <- struct{}{}
		defer func() { <-s.aside }()
		s.settleAll()
	}
	f, err := s.send(func(a *Append) error {
		switch {
		case len(parts) > maxParts:
			return fmt.Errorf("cannot write block at %d: its %d bytes take more than %d messages", first, len(block), maxParts)
		case len(s.begun) == cap(s.begun):
			return fmt.Errorf("cannot write block at %d: %d are on their way", first, len(s.begun))
		case first <= s.lastFirst:
			return fmt.Errorf("cannot write block at %d: the last one is at %d", first, s.lastFirst)
		}
		a.Message = Message{Kind: KindBlock, First: first, Data: parts[0], Parts: len(parts) - 1}
		a.Rest = parts[1:]
		return nil
	})
	if err == nil {
		s.begun <- f
	}
	return err
}

// AwaitBlock implements journal.Pipelined.
func (s *Store) AwaitBlock() error {
	select {
	case f := <-s.begun:
		return s.settle(f)
	default:
		return errors.New("cannot await block: none was begun")
	}
}

// Barrier appends a mark and returns when it is stored: at some moment during the call this node
// owned the log, and everything that was acknowledged before is in it. It is for an owner: before
// the first append it returns ErrNotOwner. An error of ctx leaves the Store as it is.
func (s *Store) Barrier(ctx context.Context) error {
	if s.fence.Load() == 0 {
		return ErrNotOwner
	}
	select {
	case s.aside <- struct{}{}:
		defer func() { <-s.aside }()
	case <-ctx.Done():
		return ctx.Err()
	}
	f, err := s.send(func(a *Append) error {
		a.Message = Message{Kind: KindMark, First: s.lastFirst}
		return nil
	})
	if err != nil {
		return err
	}
	return s.settle(f)
}

// Fence returns the fence of this owner, 0 before its first append. It outlives the ownership.
func (s *Store) Fence() uint64 { return s.fence.Load() }

// Trouble returns why a message that is sent again was not stored yet, nil where none is.
func (s *Store) Trouble() error {
	if err := s.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// Confirmed returns when, by Config.Elapsed, the last message that is known to be stored was sent.
// The lease of an owner counts from there: at that time no other one had taken the log over.
func (s *Store) Confirmed() time.Duration { return time.Duration(s.confirmed.Load()) }

// Sync implements journal.Store. Blocks are synced when they are written.
func (s *Store) Sync() error {
	if err := s.err(); err != nil {
		return err
	}
	return s.cfg.Local.Sync()
}

// Close implements journal.Store.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.quit()
	return s.cfg.Local.Close()
}

// Archive is sets of chunks beside the snapshots, and as safe. Records of the log name those that
// count.
type Archive struct{ s *Store }

// archivePrefix begins the names of its sets; those of snapshots begin with a number.
const archivePrefix = "archive-"

// Archive returns the one of the log. The names of its sets have up to 56 letters and digits.
func (s *Store) Archive() Archive { return Archive{s} }

// Put adds chunk n of a set, counted from 0, and is durable when it returns. A number is put once,
// whatever comes of it.
func (a Archive) Put(set string, n uint32, chunk []byte) error {
	if err := a.s.err(); err != nil {
		return err
	}
	return a.s.cfg.Chunks.Put(a.s.ctx, archivePrefix+set, n, chunk)
}

// Get calls f with the first n chunks of a set in order; chunk is lent until f returns. Fewer are
// an error. It stops at the first error of f and returns it as it is.
func (a Archive) Get(set string, n uint32, f func(chunk []byte) error) error {
	return a.s.cfg.Chunks.Get(a.s.ctx, archivePrefix+set, n, f)
}

// Sweep drops the sets that are not used, of this owner and of those before it: used knows all that
// they have recorded. Before the first append it does nothing.
func (a Archive) Sweep(used func(set string) bool) {
	a.s.dropSets(func(set string) bool {
		name, mine := strings.CutPrefix(set, archivePrefix)
		return mine && !used(name)
	})
}
