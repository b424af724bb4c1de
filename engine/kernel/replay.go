package kernel

import (
	"errors"
	"fmt"
	"math"
)

// errNotApplicable means that a change does not fit the state: the journal is another kernel's, or
// not in order.
var errNotApplicable = errors.New("cannot apply change")

// The texts of notApplicable about sequences.
const (
	createdOutOfOrder = "creation sequence out of order"
	readiedOutOfOrder = "ready sequence out of order"
)

func notApplicable(c *Change, why string) error {
	id := c.PID
	if c.Kind == ChangeRateStamp || c.Kind == ChangeRateDrop {
		id = c.UserID
	}
	return fmt.Errorf("%w: %s of %q: %s", errNotApplicable, c.Kind, id, why)
}

// Apply replays one journalled change, whose record has the given index; 0 is none. It checks that
// the change fits, gives nothing to Config.Journal and emits no event. A change that does not fit
// changes nothing.
//
// applied is false for a change without effect: a process, a user's log and the default quota
// remember the last record about them. Up to the index of Lenient it is also false when the process
// or the log is missing: the snapshot was taken after it had gone.
func (k *Kernel) Apply(c *Change, index uint64) (applied bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	lenient := index > 0 && index <= k.recovery.window
	switch c.Kind {
	case ChangeRateStamp, ChangeRateDrop:
		return k.rates.apply(c, index, lenient)
	case ChangeQuotaDefaults:
		if known(k.defaultsRecord, index) {
			return false, nil
		}
		k.applyQuotaDefaults(c, index)
		return true, nil
	}
	return k.replay(c, index, lenient)
}

// replay is Apply for what is about a process. Caller holds the scheduling lock.
func (k *Kernel) replay(c *Change, index uint64, lenient bool) (applied bool, err error) {
	at, exists := k.locate(c.PID)
	at.sh.mu.Lock()
	defer at.sh.mu.Unlock()
	return k.replayAt(c, &at, exists, index, lenient)
}

// replayAt is replay at the place of the process. Caller holds the scheduling lock and the shard's
// mutex, or has the shard for itself.
func (k *Kernel) replayAt(c *Change, at *place, exists bool, index uint64, lenient bool) (applied bool, err error) {
	if exists && known(at.r.recorded, index) || !exists && lenient && c.Kind != ChangeCreate {
		k.witness(c)
		return false, nil
	}
	switch {
	case c.Kind == ChangeCreate:
		err = k.replayCreate(c, at, index, lenient)
	case !exists:
		err = notApplicable(c, "no such process")
	default:
		err = k.replayOn(c, at, index, lenient)
	}
	return err == nil, err
}

// known reports whether something whose last record is recorded has seen the record at index.
func known(recorded, index uint64) bool { return index > 0 && index <= recorded }

// witness takes clock and sequences from a change without effect: what it made may be gone again.
// Not the creation sequence: only the process of a create, or a later one of the same name, has
// that.
func (k *Kernel) witness(c *Change) {
	if c.Kind == ChangeTransition {
		k.now = max(k.now, c.At)
	}
	if c.State == Ready && (c.Kind == ChangeCreate || c.Kind == ChangeTransition) {
		k.readied = max(k.readied, c.ReadySeq)
	}
}

// maxCreated is the largest creation sequence: the cursor behind it still is a number.
const maxCreated = math.MaxUint64 - 1

func (k *Kernel) replayCreate(c *Change, at *place, index uint64, lenient bool) error {
	unordered := lenient || k.recovery.routed
	a := CreateArgs{PID: c.PID, RequestID: c.RequestID, UserID: c.UserID, SessionID: c.SessionID, Priority: c.Priority}
	switch {
	case at.r != nil:
		return notApplicable(c, "process exists")
	case !a.fits() || at.sh.index.n >= k.cfg.maxRows():
		return notApplicable(c, "no room")
	case c.Seq == 0 || c.Seq <= k.created && !unordered || c.Seq > maxCreated:
		return notApplicable(c, createdOutOfOrder)
	case c.State == Ready && c.ReadySeq <= k.readied && !unordered:
		return notApplicable(c, readiedOutOfOrder)
	case c.State != StateNew && c.State != Ready:
		return notApplicable(c, "bad state")
	}
	k.applyCreate(c, at, index)
	return nil
}

// replayOn applies a change of the process at at.
func (k *Kernel) replayOn(c *Change, at *place, index uint64, lenient bool) error {
	where := k.sched.nodes.at(at.r.node).where
	switch c.Kind {
	case ChangeTransition:
		if !at.r.state.CanBecome(c.State) {
			return notApplicable(c, "bad transition from "+at.r.state.String()+" to "+c.State.String())
		}
		if c.State == Ready && c.ReadySeq <= k.readied && !lenient && !k.recovery.routed {
			return notApplicable(c, readiedOutOfOrder)
		}
		if len(c.Reason) > maxIDLen {
			return notApplicable(c, "reason too long")
		}
		k.now = max(k.now, c.At)
		k.applyTransition(c, at, index)
	case ChangeLease:
		if where != queued && where != returned {
			return notApplicable(c, "not queued")
		}
		k.applyLease(c.Expiry, at.r.node)
	case ChangeLeaseEnd, ChangeRequeue:
		if where != leased && where != handedOut {
			return notApplicable(c, "not handed out")
		}
		k.applyReturn(at.r.node)
	case ChangeRemove:
		if where != completed {
			return notApplicable(c, "not terminal")
		}
		k.applyRemove(at)
		return nil
	case ChangeUsage:
		applyUsage(&c.Usage, at.r)
	default:
		return notApplicable(c, "unknown kind")
	}
	at.r.record(index)
	return nil
}

// This file holds the only writers of rows and scheduler. They read no clock, no randomness and no
// map order: all is in the Change. Callers hold the scheduling lock, and the mutex of the shard of
// the row, unless the function names less.

// applyCreate stores the process of c at at, which locate returned for its pid, and fills in at.r
// and at.ref. index is that of the record, as below; 0 if there is none.
func (k *Kernel) applyCreate(c *Change, at *place, index uint64) {
	r := k.addRow(c, at)
	r.record(index)
	if !k.sched.loose {
		k.order.append(c.Seq, at.ref)
	}
	k.created = max(k.created, c.Seq)
	if c.State == Ready {
		k.readied = max(k.readied, c.ReadySeq)
		k.sched.enqueue(r.node, c.ReadySeq)
	}
}

// addRow stores a row for a new process from c, and a node outside of all lists.
func (k *Kernel) addRow(c *Change, at *place) *row {
	slot := at.sh.takeSlot()
	r := at.sh.row(slot)
	at.r, at.ref = r, slot<<k.shardBits|at.ref&uint32(len(k.shards)-1)
	*r = row{created: c.Seq, state: c.State, priority: c.Priority, quota: at.sh.quotas.keep(&c.Quota)}
	at.sh.keepText(r, c)
	at.sh.enter(at.tag, slot, r.text)
	at.sh.warm.publish(at.sh)
	r.node = k.sched.nodes.take(at.ref, c.Priority)
	k.byState[c.State]++
	k.total++
	return r
}

// applyTransition moves the process at at to c.State.
func (k *Kernel) applyTransition(c *Change, at *place, index uint64) {
	r := at.r
	r.record(index)
	switch r.state {
	case Ready:
		k.sched.leave(r.node)
	case Running:
		r.clock = c.At/nsPerMs - r.clock
	case Blocked:
		at.sh.dropReason(r)
	}
	k.byState[r.state]--
	k.byState[c.State]++
	r.state = c.State
	switch c.State {
	case Ready:
		k.readied = max(k.readied, c.ReadySeq)
		k.sched.enqueue(r.node, c.ReadySeq)
	case Running:
		r.clock = c.At/nsPerMs - r.clock
	case Blocked:
		at.sh.keepReason(r, c.Reason)
		at.sh.warm.publish(at.sh)
	case Terminated:
		k.sched.complete(r.node, c.At, index)
	}
}

// applyLease hands out node i, which is queued, until expiry. Needs no shard.
func (k *Kernel) applyLease(expiry int64, i uint32) { k.sched.handOut(i, expiry) }

// applyReturn brings node i, which was handed out, back to its old place in the queue: the effect
// of ChangeLeaseEnd and ChangeRequeue. Needs no shard.
func (k *Kernel) applyReturn(i uint32) { k.sched.bringBack(i) }

// applyRemove removes the terminal process at at.
func (k *Kernel) applyRemove(at *place) {
	r, slot := at.r, at.ref>>k.shardBits
	k.byState[r.state]--
	k.total--
	if !k.sched.loose {
		k.order.remove(r.created)
	}
	k.sched.forget(r.node)
	at.sh.index.remove(at.tag, slot)
	at.sh.dropReason(r)
	at.sh.texts.release(r.text)
	at.sh.quotas.release(r.quota)
	at.sh.putSlot(slot)
}

// applyUsage sets the totals of r. Needs only the shard's mutex.
func applyUsage(totals *Usage, r *row) { r.usage.set(totals) }

// applyQuotaDefaults puts c.Quota in force.
func (k *Kernel) applyQuotaDefaults(c *Change, index uint64) {
	q := c.Quota
	k.defaults.Store(&q)
	k.defaultsRecord = max(k.defaultsRecord, index)
}
