package embedded

import (
	"log/slog"
	"sync"
	"time"

	"trunkline/engine/journal"
)

// maxUnsynced bounds what a power loss takes in mode Interval: while the oldest acknowledged block
// that is not synced is older, no block is acknowledged. So lost answers were all given within this
// time.
const maxUnsynced = 2 * time.Second

// window knows in mode Interval since when acknowledged blocks wait for a sync.
type window struct {
	now func() time.Time
	log *slog.Logger

	mu      sync.Mutex
	oldest  time.Time     // of the acknowledged blocks that no sync covers; zero: none
	next    time.Time     // of those that the running sync does not cover
	syncing bool          // a sync runs
	ended   chan struct{} // closed when the sync ends that is waited for; nil without waiters
	holding time.Time     // since when a block is held; zero: none is
	held    uint64        // blocks that were held
	ask     chan struct{} // asks for a sync before its time
}

func (w *window) init(log *slog.Logger) {
	w.now, w.log, w.ask = time.Now, log, make(chan struct{}, 1)
}

// wrote is called with every block that was written, before it is acknowledged.
func (w *window) wrote() {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := &w.oldest
	if w.syncing {
		first = &w.next
	}
	if first.IsZero() {
		*first = w.now()
	}
}

// begin and end enclose a sync, which covers what was written before begin.
func (w *window) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.syncing = true
}

func (w *window) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.oldest, w.next, w.syncing = w.next, time.Time{}, false
	if w.ended != nil {
		close(w.ended)
		w.ended = nil
	}
}

// age returns how long the oldest acknowledged block has waited for a sync; 0 where none waits. The
// caller holds mu.
func (w *window) age() time.Duration {
	since := w.oldest
	if since.IsZero() {
		since = w.next
	}
	if since.IsZero() {
		return 0
	}
	return max(w.now().Sub(since), 0)
}

// closed returns nil if a block may be acknowledged, else what to wait for before asking again.
func (w *window) closed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	age := w.age()
	if age <= maxUnsynced {
		if !w.holding.IsZero() {
			w.log.Info("journal acknowledges again", "held_secs", w.now().Sub(w.holding).Seconds())
			w.holding = time.Time{}
		}
		return nil
	}
	if w.holding.IsZero() {
		w.holding = w.now()
		w.held++
		w.log.Warn("journal holds replies: what is not synced is too old", "age_secs", age.Seconds(), "limit_secs", maxUnsynced.Seconds())
	}
	if w.ended == nil {
		w.ended = make(chan struct{})
	}
	select {
	case w.ask <- struct{}{}:
	default: // asked already
	}
	return w.ended
}

// awaitSync returns when a block that was written in mode Interval may be acknowledged.
func (s *Store) awaitSync() error {
	s.window.wrote()
	for {
		ended := s.window.closed()
		if ended == nil {
			return s.err()
		}
		select {
		case <-ended:
		case <-s.stop:
			return journal.ErrClosed
		}
		if err := s.err(); err != nil {
			return err
		}
	}
}

// stats returns the age of the oldest acknowledged block without a sync, and how many blocks were
// held.
func (w *window) stats() (age time.Duration, held uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.age(), w.held
}
