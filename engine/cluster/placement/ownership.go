package placement

import (
	"math"
	"slices"
	"time"
)

// State is what a node is to a partition.
type State uint8

// The states.
const (
	// Lost: what is in memory is not to be trusted. It is rebuilt from a snapshot and the log.
	Lost State = iota
	// Follower: the log is followed.
	Follower
	// Claiming: a claim is on its way to the log.
	Claiming
	// Owner: the last claim in the log is that of this node, as far as it knows.
	Owner
	// SteppingDown: nothing is served any more. What was appended and a release are on their way.
	SteppingDown
)

// Config is what all partitions of a node share.
type Config struct {
	Node   string // its ID
	Timing Timing // Check has passed
}

// Ownership is one partition on one node: a value that Step makes a new one of. Everything that
// happens is an Event, and everything to do is in the Actions that Step returns. All times are
// readings of one monotonic clock of this process that goes on while the machine is suspended.
type Ownership struct {
	cfg       *Config
	replicas  Replicas // shared, never changed
	state     State
	suspended bool   // of an owner: its lease has run out
	released  bool   // the holder has given up the partition
	dead      uint8  // bits of the replicas that were seen dead
	holder    string // who the last block that was seen is of
	seen      time.Duration
	notBefore time.Duration // no claim before it
	claimed   time.Duration // when the last claim was sent
	until     time.Duration // of an owner: when its lease runs out
	renewAt   time.Duration
}

// Start returns a partition on a node that has just begun to keep it: Lost, so that it is rebuilt
// first. Whatever owner there is has its lease from now on.
func Start(cfg *Config, now time.Duration, replicas Replicas) (Ownership, Actions) {
	return Ownership{cfg: cfg, replicas: replicas, seen: now}, Rebuild
}

// State returns the state.
func (o *Ownership) State() State { return o.state }

// MayServe reports whether a plain read may be answered without the log. The clock is read after
// the request was: one reading for all requests that were read before it is enough, and a pause
// between the reading and the reply does no harm. Writes need no lease, as the log refuses those of
// a node that is no owner any more.
func (o *Ownership) MayServe(now time.Duration) bool { return o.state == Owner && now < o.until }

// Hint returns the node that a request should go to instead, empty if none is known.
func (o *Ownership) Hint() string {
	switch self := o.cfg.Node; {
	case o.state != SteppingDown && !o.released && o.holder != "" && o.holder != self:
		return o.holder
	case len(o.replicas) > 0 && o.replicas[0] != self:
		return o.replicas[0]
	}
	return ""
}

// Never is the time of what is not due.
const Never = time.Duration(math.MaxInt64)

// Due returns when the next Tick has something to do, Never if something else has to happen first.
func (o *Ownership) Due() time.Duration {
	switch o.state {
	case Follower:
		return o.claimAt()
	case Owner:
		if o.suspended {
			return o.renewAt
		}
		return min(o.renewAt, o.until)
	}
	return Never
}

// claimAt returns when a follower claims: when the lease is over, or at once after a release, each
// standby later than those before it. The holder whose lease is over and nodes that were seen dead
// are not waited for. That a node was seen dead never shortens a lease: it may only be slow.
func (o *Ownership) claimAt() time.Duration {
	rank := o.rank()
	if rank < 0 {
		return Never
	}
	from := o.seen
	if !o.released {
		from += o.cfg.Timing.Lease
	}
	return max(from+time.Duration(rank)*o.cfg.Timing.Stagger, o.notBefore)
}

// rank returns how many replicas claim before this node, -1 if it does not claim.
func (o *Ownership) rank() (rank int) {
	for k, node := range o.replicas {
		switch {
		case node == o.cfg.Node:
			return rank
		case o.dead&(1<<k) == 0 && (o.released || node != o.holder):
			rank++
		}
	}
	return -1
}

func (o *Ownership) setDead(node string, dead bool) {
	if k := slices.Index(o.replicas, node); k >= 0 {
		o.dead &^= 1 << k
		if dead {
			o.dead |= 1 << k
		}
	}
}
