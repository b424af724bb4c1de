package placement

import "time"

// EventKind is what has happened.
type EventKind uint8

// The kinds of events.
const (
	// Tick: time has passed.
	Tick EventKind = iota + 1
	// Rebuilt: the state is complete up to the end of the log, which is followed from there.
	Rebuilt
	// Observed: a block of Node was read in the log, in the order of the log: a claim, records or a
	// heartbeat. Blocks that a rebuild reads are observed as well. Node may be this one.
	Observed
	// ObservedRelease: a release of Node was read in the log.
	ObservedRelease
	// ClaimWon: the log has taken the claim that was sent at Sent.
	ClaimWon
	// ClaimRefused: the log has refused the claim that was sent at Sent, for a block is before it.
	ClaimRefused
	// Acked: the log has taken what was appended at Sent: records or a heartbeat.
	Acked
	// Released: the log has taken the release.
	Released
	// Failed: an append that was sent at Sent has failed, or has an unknown outcome.
	Failed
	// Assigned: the replicas of the partition are Replicas.
	Assigned
	// PeerDead: Node is believed to be dead; PeerAlive: it is not.
	PeerDead
	PeerAlive
)

// Event is something that has happened. Events of a partition are taken one after the other, and
// answers to appends in the order in which they were sent, one for each: an append behind one that
// has failed has failed as well, even if the log has taken it, for its place may have been filled
// by another node.
type Event struct {
	Kind EventKind
	Now  time.Duration // when it is taken, read after it has happened
	// Sent is the reading of the clock before an append was sent. It names the append.
	Sent     time.Duration
	Node     string
	Replicas Replicas // kept, not copied
}

// Actions is a set of things to do, in the order of the constants.
type Actions uint16

// The actions.
const (
	// Refuse: requests get NOT_OWNER with the hint from now on, those without an answer too.
	Refuse Actions = 1 << iota
	// Suspend: plain reads wait for a barrier, or are refused. Writes go on.
	Suspend
	// Release: append a release behind everything that was appended.
	Release
	// Rebuild: drop the state, build it again, follow the log; then Rebuilt.
	Rebuild
	// Follow: apply what others append.
	Follow
	// Claim: append a claim on condition that the last block that was observed is the last one. Now
	// is its Sent.
	Claim
	// Renew: append a heartbeat. Now is its Sent.
	Renew
	// Serve: answer requests, plain reads while MayServe.
	Serve
)

// Step takes an event and returns what the partition is then, and what to do. It allocates nothing.
func (o Ownership) Step(e Event) (Ownership, Actions) {
	do := o.step(&e)
	return o, do
}

func (o *Ownership) step(e *Event) Actions {
	switch e.Kind {
	case Tick:
		return o.tick(e.Now)
	case Rebuilt:
		if o.state == Lost {
			o.state = Follower
			return Follow
		}
	case Observed, ObservedRelease:
		return o.observe(e)
	case ClaimWon:
		return o.won(e)
	case ClaimRefused:
		if o.state == Claiming && e.Sent == o.claimed {
			o.backOff(e.Now)
		}
	case Acked:
		return o.acked(e)
	case Released:
		return o.stepDownDone(e.Now)
	case Failed:
		return o.failed(e)
	case Assigned:
		return o.assigned(e)
	case PeerDead, PeerAlive:
		o.setDead(e.Node, e.Kind == PeerDead)
	}
	return 0
}

func (o *Ownership) tick(now time.Duration) (do Actions) {
	switch o.state {
	case Follower:
		if now >= o.claimAt() {
			o.state, o.claimed = Claiming, now
			return Claim
		}
	case Owner:
		if !o.suspended && now >= o.until {
			o.suspended = true
			do |= Suspend
		}
		if now >= o.renewAt {
			o.renewAt = now + o.cfg.Timing.Renew
			do |= Renew
		}
	}
	return do
}

// backOff returns to following after a claim that was late, or whose outcome is unknown. The block
// that beat it is on its way here, and renews the lease of its owner when it is observed. A claim
// that comes too early is refused by the log.
func (o *Ownership) backOff(now time.Duration) {
	o.state = Follower
	o.notBefore = now + o.cfg.Timing.Stagger
}

// observe takes a block of the log. One of this node renews no lease: this node knows what it
// serves, and a process before it that had its ID has ended.
func (o *Ownership) observe(e *Event) (do Actions) {
	release := e.Kind == ObservedRelease
	if e.Node == o.cfg.Node {
		if release && (o.state == Lost || o.state == Follower) {
			o.holder, o.released, o.seen = e.Node, true, e.Now
		}
		return 0
	}
	switch o.state {
	case Claiming: // beaten, or already overtaken
		o.state = Follower
	case Owner:
		o.state, do = Lost, Refuse|Rebuild
	}
	o.setDead(e.Node, false)
	o.holder, o.released, o.seen = e.Node, release, e.Now
	return do
}

func (o *Ownership) won(e *Event) Actions {
	if o.state != Claiming || e.Sent != o.claimed {
		return 0
	}
	o.holder, o.released, o.suspended = o.cfg.Node, false, false
	if o.rank() < 0 {
		o.state = SteppingDown
		return Release
	}
	o.state = Owner
	o.renew(e.Sent)
	return Serve | o.tick(e.Now)
}

// renew counts the lease from when an append was sent that the log has taken.
func (o *Ownership) renew(sent time.Duration) {
	t := &o.cfg.Timing
	o.until = max(o.until, sent+t.Lease-t.Margin)
	o.renewAt = max(o.renewAt, sent+t.Renew)
}

func (o *Ownership) acked(e *Event) Actions {
	if o.state != Owner {
		return 0
	}
	o.renew(e.Sent)
	if o.suspended && e.Now < o.until {
		o.suspended = false
		return Serve
	}
	return 0
}

func (o *Ownership) failed(e *Event) Actions {
	switch {
	case o.state == Claiming && e.Sent == o.claimed:
		o.backOff(e.Now)
	case o.state == Owner && e.Sent >= o.claimed:
		o.state = Lost
		return Refuse | Rebuild
	case o.state == SteppingDown && e.Sent >= o.claimed:
		o.state = Lost
		return Rebuild
	}
	return 0
}

// stepDownDone follows the release of this node, unless another one has claimed since.
func (o *Ownership) stepDownDone(now time.Duration) Actions {
	if o.state != SteppingDown {
		return 0
	}
	o.state = Follower
	if o.holder == o.cfg.Node {
		o.released, o.seen = true, now
	}
	return Follow
}

func (o *Ownership) assigned(e *Event) Actions {
	o.replicas, o.dead = e.Replicas, 0
	if o.state == Owner && (len(o.replicas) == 0 || o.replicas[0] != o.cfg.Node) {
		o.state = SteppingDown
		return Refuse | Release
	}
	return 0
}
