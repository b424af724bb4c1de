package owner

import (
	"context"
	"sync"
	"time"
)

// Shares of the term of a lease.
const (
	// marginShare of the term is the margin: how much faster a clock may run than another.
	marginShare = 10
	// BeatShare: an owner writes at least this often in a term.
	BeatShare = 4
	// staggerShare: each standby behind the first waits this much of a term longer, so that they do
	// not all take over at once.
	staggerShare = 2
	// HandedRanks is how many ranks the others are behind the node that an owner has handed the log
	// to: a term.
	HandedRanks = staggerShare
)

// View is what a standby knows. Its methods may be called from any goroutine.
type View struct {
	mu      sync.Mutex
	beat    Beat
	known   bool
	free    bool  // the last block that came is the one by which the owner has stopped
	heard   int64 // when a block of the log came last
	changes uint64
	valid   context.Context // ends when beat is not the latest any more
	replace context.CancelFunc
}

// NewView returns one that has heard of an owner now, so that a node that has just started gives it
// the time of a lease.
func NewView(now int64) *View {
	v := &View{heard: now}
	v.valid, v.replace = context.WithCancel(context.Background())
	return v
}

// Heard notes that a block has come; Saw follows where it holds a Beat. One that comes after the
// owner has stopped is of the next owner, who may not have written a Beat yet.
func (v *View) Heard(now int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.heard, v.free = now, false
}

// Saw notes what the owner has written.
func (v *View) Saw(b Beat) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.free = b.Released
	if v.known && v.beat == b {
		return
	}
	if b.Node != v.beat.Node {
		v.changes++
	}
	v.beat, v.known = b, true
	v.replace()
	v.valid, v.replace = context.WithCancel(context.Background())
}

// Forget has no owner be known, as nothing is read of the log any more.
func (v *View) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known = false
	v.replace()
	v.valid, v.replace = context.WithCancel(context.Background())
}

// Silent returns how long ago a block of the log came last.
func (v *View) Silent(now int64) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Duration(now - v.heard)
}

// Changes counts the owners that were seen one after the other.
func (v *View) Changes() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changes
}

// Owner returns the owner, and false where none is known or it has stopped.
func (v *View) Owner() (Beat, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.beat, v.known && !v.beat.Released
}

// Await returns the owner once there is one, or the error of ctx. owns ends when it has stopped or
// was replaced.
func (v *View) Await(ctx context.Context) (b Beat, owns context.Context, err error) {
	for {
		v.mu.Lock()
		b, ok, valid := v.beat, v.known && !v.beat.Released, v.valid
		v.mu.Unlock()
		if ok {
			return b, valid, nil
		}
		select {
		case <-valid.Done():
		case <-ctx.Done():
			return Beat{}, nil, ctx.Err()
		}
	}
}

// Due reports whether a standby may take over: it has heard nothing for the term of the lease, its
// own or that of the owner, the longer one, or the owner has stopped and no other one has written
// since. rank is its place among the standbys, from 0 on.
func (v *View) Due(now int64, term time.Duration, rank int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	term = max(term, v.beat.Term)
	wait := int64(term)/staggerShare*int64(rank) + int64(term)
	if v.free {
		wait -= int64(term)
	}
	return now-v.heard >= wait
}

// Left returns how long an owner may go on to answer what it reads, 0 if it may not any more:
// confirmed is when the last message was sent that is known to be stored.
func Left(now, confirmed int64, term time.Duration) time.Duration {
	return max(term-term/marginShare-time.Duration(now-confirmed), 0)
}

// Lapsed reports whether nothing is left.
func Lapsed(now, confirmed int64, term time.Duration) bool { return Left(now, confirmed, term) == 0 }
