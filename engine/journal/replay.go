package journal

import (
	"errors"
	"fmt"
	"time"
)

// Replay calls f with every record after an index, in order; rec is lent until f returns. The
// indexes rise. One that is left out belongs to a claim, which is empty.
//
// It checks that no index is missing, that every block follows from the one before (chain, epoch,
// time), and every CRC. A mismatch is a *DamageError, after f has seen the records before it.
// Replay stops at an error of f and returns it.
//
// At its end the first Replay forgets a torn last block and what RecoverTo drops, and writes the
// claim of this owner, synced, with a new epoch. From then on records are taken. A later Replay
// only reads, up to what was durable when it began.
func (l *Log) Replay(after Index, f func(i Index, rec []byte) error) error {
	return l.ReplayThen(after, f, func() error { return nil })
}

// ReplayThen is Replay for a caller that keeps records beyond f. end is called after f has seen the
// last record and before anything is written or forgotten. An error of end ends the replay as one
// of f does.
func (l *Log) ReplayThen(after Index, f func(i Index, rec []byte) error, end func() error) error {
	defer l.maintain()()
	first, err := l.unclaimed()
	if err != nil {
		return err
	}
	w := walk{log: l, after: after, want: after + 1, to: l.Durable(), f: f}
	if after > w.to {
		return fmt.Errorf("cannot replay after index %d: the log ends at %d", after, w.to)
	}
	if shared, ok := l.store.(Shared); first && ok && l.cfg.RecoverTo == 0 { // what is given up is not followed
		err = w.follow(shared)
	} else {
		err = w.run()
	}
	if err == nil {
		err = end()
	}
	if err != nil || !first {
		return err
	}
	return l.claim()
}

// unclaimed reports whether no Replay has ended yet.
func (l *Log) unclaimed() (bool, error) {
	if err := l.Err(); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == replaying, nil
}

// walk verifies blocks in order.
type walk struct {
	log   *Log
	after Index // records up to it are not shown
	to    Index // blocks after it are not looked at
	f     func(i Index, rec []byte) error

	want  Index // the next index
	prev  header
	chain uint64
	known bool // whether prev and chain are of the block before
	err   error
}

func (w *walk) run() error {
	if w.want > w.to {
		return nil
	}
	err := w.log.store.Blocks(w.want, func(first Index, b []byte) error {
		if w.want > w.to {
			return errStop
		}
		w.err = w.block(first, b)
		return w.err
	})
	switch {
	case w.err != nil:
		return w.err
	case err != nil && err != errStop:
		return w.log.readError(w.want, err)
	case w.want <= w.to:
		return hole(w.want)
	}
	return nil
}

// follow is run over a log that others write to. At its end it takes their last block for the tail.
func (w *walk) follow(s Shared) error {
	l := w.log
	err := s.Follow(w.want, func(first Index, b []byte) error {
		if w.err = w.block(first, b); w.err != nil {
			return w.err
		}
		l.time.Store(w.prev.time)
		l.appended.Store(w.prev.last())
		l.durable.Store(w.prev.last())
		return nil
	})
	switch {
	case w.err != nil:
		return w.err
	case err != nil:
		return l.readError(w.want, err)
	case w.known && w.prev.last() >= l.tail.last:
		l.tail = tail{last: w.prev.last(), epoch: w.prev.epoch, chain: w.chain}
	case w.want <= l.tail.last:
		return hole(w.want)
	}
	l.snapshots = snapshots{} // the owners before have made others since
	return l.listSnapshots()
}

func (w *walk) block(first Index, b []byte) error {
	if first > w.want {
		return hole(w.want)
	}
	d, err := w.log.decode(first, b)
	if err != nil {
		return err
	}
	if err := w.follows(&d); err != nil {
		if w.known {
			return &DamageError{Where: place(first), Index: w.want, Err: err}
		}
		return &DamageError{Where: place(first), Index: first, Err: err}
	}
	w.prev, w.chain, w.known, w.want = d.header, d.chain, true, d.last()+1
	if d.kind == kindClaim {
		return nil
	}
	return d.each(w.after, w.f)
}

// follows checks a block against the one before it. The first one may end right before the next
// index: nothing is behind it yet.
func (w *walk) follows(d *block) error {
	switch {
	case w.known && d.first != w.want || d.last()+1 < w.want:
		return fmt.Errorf("it holds %d to %d, but %d is next", d.first, d.last(), w.want)
	case !w.known && d.first > 1:
		return nil
	case w.chain != d.prev:
		return errors.New("it does not follow from the block before it")
	case d.kind == kindRecords && d.epoch != w.prev.epoch, d.kind == kindClaim && d.epoch <= w.prev.epoch:
		return fmt.Errorf("its epoch %d cannot come after %d", d.epoch, w.prev.epoch)
	case d.time < w.prev.time && w.known:
		return errors.New("its time is before that of the block before it")
	}
	return nil
}

// claim makes this Log the owner: it cleans up behind the tail and writes the first block of its
// epoch. It returns an error only to the caller of Replay: no record waits yet, and OnFailure could
// end the process before the caller has reported the reason.
func (l *Log) claim() error {
	err := l.cleanUp()
	if err == nil {
		err = l.writeClaim(l.cfg.Now())
	}
	if err != nil {
		return fmt.Errorf("cannot claim journal: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != replaying {
		return ErrClosed
	}
	l.phase = open
	return nil
}

// cleanUp forgets snapshots before blocks: a log without its snapshot can be replayed, a snapshot
// without its log is damage.
func (l *Log) cleanUp() error {
	for _, g := range l.snapshots.rejected {
		if err := l.store.DropSnapshot(g); err != nil {
			return err
		}
	}
	if len(l.snapshots.rejected) > 0 {
		if err := l.store.Sync(); err != nil {
			return err
		}
		l.snapshots.rejected = nil
	}
	if l.tail.cut == 0 {
		return nil
	}
	l.tail.epoch = max(l.tail.epoch, l.lostEpoch())
	return l.store.CutBlocks(l.tail.cut)
}

// lostEpoch returns the highest epoch of the dropped blocks that can be read, so that no epoch is
// used twice.
func (l *Log) lostEpoch() uint64 {
	highest := l.snapshots.epoch
	// An error ends the search; what is damaged is the reason for giving it up.
	_ = l.store.Blocks(l.tail.cut, func(first Index, b []byte) error {
		if d, err := decodeBlock(b); err == nil && first >= l.tail.cut {
			highest = max(highest, d.epoch)
		}
		return nil
	})
	return highest
}

func (l *Log) writeClaim(now time.Time) error {
	l.tail.epoch++
	h := l.nextHeader(kindClaim, 1, now)
	block, chain := seal(appendRecord(make([]byte, headerBytes, frameBytes+1), nil), &h)
	if err := l.store.WriteBlock(h.first, block); err != nil {
		return err
	}
	if err := l.store.Sync(); err != nil {
		return err
	}
	l.tail = tail{last: h.first, epoch: h.epoch, chain: chain}
	l.epoch.Store(h.epoch)
	l.appended.Store(h.first)
	l.durable.Store(h.first)
	return nil
}
