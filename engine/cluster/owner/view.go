// Package owner is what a node of a cluster knows of the owner of a journal, and when it may become
// the owner itself. It has no socket: times are readings of one clock that runs evenly (Now), in
// nanoseconds.
//
//	Beat   what the owner writes into the journal now and then
//	View   what a standby has read of it
//	Lease  until when the owner may answer what it reads
//
// # Why two nodes never answer at once
//
// The owner answers a read only until the time at which it sent the last message that is known to
// be stored, plus the term of the lease without its margin. A standby takes over only when the
// whole term has passed since the last message that it has heard of was sent, at the latest
// (View.Heard). It has heard of that of the owner, or else its first append fails, because the log
// does not end where the standby has read to. So the lease of the owner has ended before, as long
// as no clock runs faster than another by more than the margin, a tenth. A new owner has no lease
// before its first Beat is stored, which has its term. What the owner changes needs no lease: the
// log takes it from one owner only.
package owner

import (
	"context"
	"hash/fnv"
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
	// handedRanks is how many ranks the others are behind the node that an owner has handed the log
	// to: a term.
	handedRanks = staggerShare
	// unknownRanks is how many places nodes have that do not know each other.
	unknownRanks = 3
	// firstRanks is how many ranks the nodes are apart while one of several partitions has had no
	// owner: one that starts a moment later than the others owns its share all the same.
	firstRanks = 4
)

// View is what a standby knows. Its methods may be called from any goroutine.
type View struct {
	mu      sync.Mutex
	beat    Beat
	known   bool
	replays bool  // the log is not read to its end: the owner was that of a former time
	free    bool  // the last block that came is the one by which the owner has stopped
	heard   int64 // when the last block of the log was sent at the latest
	lag     lag
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
// owner has stopped is of the next owner, who may not have written a Beat yet. fence names the
// owner that has sent it, and sent is what the clock of that showed then; with fence 0 it counts as
// sent now. Blocks that the log shows late, as after an election of its own, count from when they
// were sent.
func (v *View) Heard(now int64, fence uint64, sent int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.heard, v.free = now, false
	if fence != 0 {
		v.heard = v.lag.latest(now, fence, sent)
	}
}

// lag is by how much this clock shows more when a block comes than that of its owner did when it
// was sent: the least of the last moments. What a block took is in it, so it is never less than
// what the clocks differ by.
type lag struct {
	fence           uint64
	least, before   int64 // since a time, and in the moment before
	since, previous int64 // those times
}

// lagMoment is how long a least lag counts, where blocks come: a clock that stood still for a while
// differs by more from then on.
const lagMoment = int64(250 * time.Millisecond)

// latest returns the latest time at which a block can have been sent. A clock may have run faster
// than the other by the margin since its lag was taken.
func (l *lag) latest(now int64, fence uint64, sent int64) int64 {
	took := now - sent
	switch {
	case fence != l.fence:
		*l = lag{fence: fence, least: took, before: took, since: now, previous: now}
	case now-l.since >= lagMoment:
		l.before, l.previous = l.least, l.since
		l.least, l.since = took, now
	}
	l.least = min(l.least, took)
	drift := func(since int64) int64 { return (now - since) / marginShare }
	return sent + min(took, l.least+drift(l.since), l.before+drift(l.previous))
}

// Replay begins or ends the reading of what is in the log already. No owner is known meanwhile:
// that of a former time does not serve any more.
func (v *View) Replay(on bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.replays != on {
		v.replays = on
		v.renew()
	}
}

// renew has all that wait look again. Caller holds mu.
func (v *View) renew() {
	v.replace()
	v.valid, v.replace = context.WithCancel(context.Background())
}

// owner is Owner. Caller holds mu.
func (v *View) owner() (Beat, bool) { return v.beat, v.known && !v.replays && !v.beat.Released }

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
	v.renew()
}

// Forget has no owner be known, as nothing is read of the log any more.
func (v *View) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known = false
	v.renew()
}

// Silent returns how long ago the last block of the log was sent.
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
	return v.owner()
}

// Fence returns that of the owner that has sent the last block, 0 where it is not known.
func (v *View) Fence() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lag.fence
}

// Rank returns the place of a node among the standbys of a partition, for Due: that of its id in
// ids, which are those of all nodes, without the owner that was seen last. The order begins with
// another node in each partition, so that nodes that start together own some each. Where the nodes
// do not know each other, ids is empty. A node that the owner has handed the log to is before all.
func (v *View) Rank(ids []string, id string, partition, partitions int) (rank int) {
	last, _ := v.Owner()
	if len(ids) == 0 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(id))
		rank = int((h.Sum32() + uint32(partition)) % unknownRanks)
	}
	for i := range ids {
		other := ids[(partition+i)%len(ids)]
		if other == id {
			break
		}
		if other != last.Node {
			rank++
		}
	}
	switch {
	case !last.Released || last.To == "":
		if partitions > 1 && v.Changes() == 0 {
			rank *= firstRanks
		}
	case last.To == id:
		return 0
	default:
		rank += handedRanks
	}
	return rank
}

// Await returns the owner once there is one, or the error of ctx. owns ends when it has stopped or
// was replaced.
func (v *View) Await(ctx context.Context) (b Beat, owns context.Context, err error) {
	for {
		v.mu.Lock()
		b, ok := v.owner()
		valid := v.valid
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
