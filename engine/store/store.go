// Package store keeps the state machines of a process together: their changes in one journal, their
// states in one snapshot, and one recovery of all of them. What a crash may cost is in
// docs/store.md.
//
// A state machine joins by a Machine: a tag, which is the first byte of its records, and its
// methods. It calls Append with each change, under the lock that decided it, so that the order of
// the journal is the order of the decisions. The store does not know what is in a record.
//
//	Append, Begin, End   a change into the journal; several changes in one block
//	Enter, Leave         around work that may change something: a snapshot waits for it
//	Recover              once, before anything else: the newest snapshot, then the log behind it
//	Snapshot, Start      the present state, by hand or whenever it is due
//	Barrier, Safe        what is durable
//
// A process may have several stores. A store owns no connection and answers nothing: protocols wait
// with their replies until the journal's OnDurable.
package store

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"trunkline/engine/journal"
)

// Defaults of Config.
const (
	DefaultSnapshotBytes    = 64 << 20
	DefaultSnapshotInterval = 10 * time.Minute
)

// Config is what a store is made of. Zero fields take the defaults.
type Config struct {
	Machines []Machine
	// A snapshot is taken when the journal has grown by SnapshotBytes since the last one, and by as
	// much as that one was, or after SnapshotInterval if anything changed.
	SnapshotBytes    int64
	SnapshotInterval time.Duration
	// Now reads the monotonic clock that the machines' changes carry, in nanoseconds.
	Now    func() int64
	Logger *slog.Logger
}

// Machine is a state machine of a store. Exactly one of Ordered and Parallel is set, and Parallel
// for one machine at most; otherwise Recover returns an error.
type Machine struct {
	// Tag is the first byte of the machine's records: a letter that no other machine has, and not
	// one of the store's own, 't', 'e' and 'h'.
	Tag   byte
	State State
	// Ordered takes the machine's records in the order of all records.
	Ordered Ordered
	// Parallel takes them on several goroutines.
	Parallel Parallel
	// Prepare is called before each snapshot, behind the record that a replay of it begins after.
	// from is the index of the snapshot that Recover has loaded, 0 for none. nil: the machine has
	// nothing to prepare.
	Prepare func(from journal.Index) error
}

// State is what the store reads of a machine. Changes go on meanwhile.
type State interface {
	// WriteSnapshot writes the state as records, each valid during the call. An entry is written
	// with the index of its last change, so that a replay knows what it has already.
	WriteSnapshot(write func(rec []byte) error) error
	// Digest condenses the state into a number that equal states share.
	Digest() uint64
}

// Ordered is the recovery of a machine that takes one record after the other.
type Ordered interface {
	// Recovering is called before the first record, and after the last of a recovery that
	// succeeded.
	Recovering(on bool)
	// Load takes a record of a snapshot, Apply one of the log. rec is valid during the call.
	Load(rec []byte) error
	Apply(rec []byte, index journal.Index) error
	// Latest returns the latest clock reading of the records that were applied.
	Latest() int64
}

// Parallel is the recovery of a machine that takes records on several lanes at once.
type Parallel interface {
	Recover(lanes int) Recovery
	// Follow runs what a change of the machine has other machines do (Route.Follow), in the order
	// of all records.
	Follow(follow []byte, index journal.Index)
}

// Store is the journal of some state machines. Its methods may be called from any goroutine, where
// they do not name one.
type Store struct {
	cfg      Config
	log      *journal.Log  // nil until Recover: nothing is written, nothing waits
	full     func() bool   // nil: never
	broken   func() bool   // nil: never
	stale    func() bool   // nil: never
	buffers  sync.Pool     // of *[]byte, for encoding under the locks that decided
	changing epoch         // work that may change something
	base     int64         // where the clock stood when the journal ended
	from     journal.Index // of the snapshot that Recover loaded
	tail     uint64        // bytes of records that Recover replayed
	snapshot uint64        // bytes of the snapshot that Recover loaded

	stop    chan struct{}
	stopped sync.WaitGroup
}

// keptBuffer bounds the buffers that are kept for encoding, in bytes.
const keptBuffer = 4 << 10

// New returns a store that writes nothing until Recover.
func New(cfg Config) *Store {
	cfg.SnapshotBytes = cmp.Or(cfg.SnapshotBytes, DefaultSnapshotBytes)
	cfg.SnapshotInterval = cmp.Or(cfg.SnapshotInterval, DefaultSnapshotInterval)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Store{cfg: cfg, stop: make(chan struct{})}
}

// Start begins to take snapshots, and to have written what no request waits for; Close ends both.
// Without a journal it does nothing.
func (s *Store) Start() {
	if s.log != nil {
		s.stopped.Go(s.keepSnapshots)
		s.stopped.Go(s.writeLazy)
	}
}

// Close ends what Start began. The journal is closed by its owner.
func (s *Store) Close() {
	close(s.stop)
	s.stopped.Wait()
}

// Log returns the journal, nil before Recover and where there is none.
func (s *Store) Log() *journal.Log { return s.log }

// Base is added to the clock readings of this process, in nanoseconds: where the clock stood when
// the journal ended.
func (s *Store) Base() int64 { return s.base }

// Append writes one record, which encode appends to dst behind the tag. Caller holds the lock that
// decided the change. It does not allocate for records of up to 4 KiB. During a recovery, and
// without a journal, it does nothing and returns 0.
func (s *Store) Append(tag byte, encode func(dst []byte) []byte) journal.Index {
	if s.log == nil {
		return 0
	}
	buf, _ := s.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	*buf = encode(append((*buf)[:0], tag))
	index := s.log.Enqueue(*buf)
	if cap(*buf) <= keptBuffer {
		s.buffers.Put(buf)
	}
	return index
}

// Beat records that the owner of the log is there, with what others are to know of it, and has it
// written. It changes no machine. Standbys get it at once, by RecoverOptions.Beat.
func (s *Store) Beat(rec []byte) journal.Index { return s.log.Append(append([]byte{beatTag}, rec...)) }

// Begin has the changes of a request go into one block, until End: a crash keeps all of them or
// none.
func (s *Store) Begin() {
	if s.log != nil {
		s.log.Begin()
	}
}

// End is called once for each Begin.
func (s *Store) End() {
	if s.log != nil {
		s.log.End()
	}
}

// Enter marks the begin of work that may change something; Leave takes what it returned. It does
// not wait or allocate.
func (s *Store) Enter() (ticket uint32) { return s.changing.enter() }

// Leave marks the end of such work.
func (s *Store) Leave(ticket uint32) { s.changing.leave(ticket) }

// Appended returns the index up to which records were appended, 0 without a journal.
func (s *Store) Appended() journal.Index {
	if s.log == nil {
		return 0
	}
	return s.log.Appended()
}

// Safe returns the index up to which what the journal holds cannot be lost any more, and may be
// shown. It is 0 while Confirm is not.
func (s *Store) Safe() journal.Index {
	switch {
	case s.log == nil:
		return ^journal.Index(0)
	case s.stale != nil && s.stale():
		return 0
	}
	return s.log.Durable()
}

// Confirm returns the index that has to be durable before anything is shown that was read before
// the call: 0, or, where another process may have become the owner (RecoverOptions.Stale), that of
// the next record.
func (s *Store) Confirm() journal.Index {
	if s.stale == nil { // alone, so that it is inlined
		return 0
	}
	return s.confirm()
}

func (s *Store) confirm() journal.Index {
	if !s.stale() {
		return 0
	}
	return s.log.Appended() + 1
}

// Refusal is why nothing may be changed.
type Refusal uint8

const (
	// Accepts: changes are taken.
	Accepts Refusal = iota
	// Overloaded: too much waits for the disk.
	Overloaded
	// Full: the disk has no room.
	Full
	// Broken: the disk cannot be written, for want of something else than room.
	Broken
)

// Refuses returns why nothing that changes anything may be begun.
func (s *Store) Refuses() Refusal {
	switch {
	case s.log == nil:
		return Accepts
	case s.log.Overloaded():
		return Overloaded
	case s.full == nil || !s.full():
		return Accepts
	case s.broken != nil && s.broken():
		return Broken
	}
	return Full
}

// Saturated reports whether Refuses has a reason.
func (s *Store) Saturated() bool { return s.Refuses() != Accepts }

// Barrier returns when everything that was appended before the call is safe, or with the error of
// ctx, or because the journal has stopped. It must not be called on an event loop.
func (s *Store) Barrier(ctx context.Context) error {
	if s.log == nil {
		return nil
	}
	if n := s.Confirm(); n > 0 {
		return s.log.Await(ctx, n)
	}
	return s.log.Barrier(ctx)
}

// Await is Barrier for what was appended up to an index, which the caller may show then.
func (s *Store) Await(ctx context.Context, index journal.Index) error {
	if s.log == nil {
		return nil
	}
	return s.log.Await(ctx, max(index, s.Confirm()))
}

// Digest returns a number that two stores share whose machines hold the same.
func (s *Store) Digest() (sum uint64) {
	for _, m := range s.cfg.Machines {
		sum += m.State.Digest()
	}
	return sum
}

// Mix mixes a checksum of a digest, so that sums of mixed checksums differ more than plain sums.
func Mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
