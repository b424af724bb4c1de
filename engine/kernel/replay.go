package kernel

import (
	"errors"
	"fmt"
)

// ErrNotApplicable says that a change does not fit the state it is applied to: the journal is not this kernel's, or not in
// order.
var ErrNotApplicable = errors.New("cannot apply change")

func notApplicable(c *Change, why string) error {
	id := c.PID
	if c.Kind == ChangeRateStamp || c.Kind == ChangeRateDrop {
		id = c.UserID
	}
	return fmt.Errorf("%w: %s of %q: %s", ErrNotApplicable, c.Kind, id, why)
}

// Apply replays one journalled change. It checks that the change fits, shows nothing to Config.Journal and emits no event. A
// change that does not fit changes nothing.
func (k *Kernel) Apply(c *Change) error {
	if c.Kind == ChangeRateStamp || c.Kind == ChangeRateDrop {
		return k.rates.apply(c)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch c.Kind {
	case ChangeQuotaDefaults:
		k.applyQuotaDefaults(c)
		return nil
	case ChangeCreate:
		return k.replayCreate(c)
	}
	at, ok := k.locate(c.PID)
	if !ok {
		return notApplicable(c, "no such process")
	}
	at.sh.mu.Lock()
	defer at.sh.mu.Unlock()
	return k.replayOn(c, &at)
}

func (k *Kernel) replayCreate(c *Change) error {
	at, exists := k.locate(c.PID)
	a := CreateArgs{PID: c.PID, RequestID: c.RequestID, UserID: c.UserID, SessionID: c.SessionID, Priority: c.Priority}
	switch {
	case exists:
		return notApplicable(c, "process exists")
	case !a.fits() || k.total >= k.cfg.maxRows():
		return notApplicable(c, "no room")
	case c.Seq <= k.created || c.Seq+1 == 0:
		return notApplicable(c, "creation sequence out of order")
	case c.State == Ready && c.ReadySeq <= k.readied:
		return notApplicable(c, "ready sequence out of order")
	case c.State != StateNew && c.State != Ready:
		return notApplicable(c, "bad state")
	}
	at.sh.mu.Lock()
	defer at.sh.mu.Unlock()
	k.applyCreate(c, &at)
	return nil
}

// replayOn applies a change of the process at at.
func (k *Kernel) replayOn(c *Change, at *place) error {
	where := k.sched.nodes.at(at.r.node).where
	switch c.Kind {
	case ChangeTransition:
		if !at.r.state.CanBecome(c.State) {
			return notApplicable(c, "bad transition from "+at.r.state.String()+" to "+c.State.String())
		}
		if c.State == Ready && c.ReadySeq <= k.readied {
			return notApplicable(c, "ready sequence out of order")
		}
		if len(c.Reason) > MaxIDLen {
			return notApplicable(c, "reason too long")
		}
		k.now = max(k.now, c.At)
		k.applyTransition(c, at)
	case ChangeLease:
		if where != queued && where != returned {
			return notApplicable(c, "not queued")
		}
		k.applyLease(c, at.r.node)
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
	case ChangeUsage:
		applyUsage(c, at.r)
	default:
		return notApplicable(c, "unknown kind")
	}
	return nil
}
