package placement

import (
	"fmt"
	"time"
)

// MaxClockSkewPPM is by how many parts in a million the clock of a node may run too fast or too
// slow: 1 %. Clocks of machines are off by some 100 parts, and a wall clock is slewed by 500.
const MaxClockSkewPPM = 10_000

// Limits of timings.
const (
	MinLease = 100 * time.Millisecond
	MaxLease = time.Minute
	// TakeoverAllowance is how long after a lease a takeover may end (durability §7). The standbys
	// share it.
	TakeoverAllowance = 500 * time.Millisecond
)

// Timing has the times of a lease. All nodes of a cluster have the same.
type Timing struct {
	Lease   time.Duration // a standby claims when it has seen nothing of the owner for so long
	Margin  time.Duration // an owner stops so much earlier
	Renew   time.Duration // an owner that has appended nothing for so long appends a heartbeat
	Stagger time.Duration // the second standby waits so much longer than the first, and so on
}

// DefaultTiming returns the defaults.
func DefaultTiming() Timing {
	return Timing{Lease: time.Second, Margin: 50 * time.Millisecond, Renew: 250 * time.Millisecond, Stagger: 100 * time.Millisecond}
}

// Check reports why timings are unsafe or too slow.
func (t Timing) Check() error {
	switch last := t.Stagger * (MaxReplicas - 2); {
	case t.Lease < MinLease || t.Lease > MaxLease:
		return fmt.Errorf("cannot lease for %v: want %v to %v", t.Lease, MinLease, MaxLease)
	case t.Margin < minMargin(t.Lease):
		return fmt.Errorf("cannot have a margin of %v: clocks that differ need %v with a lease of %v", t.Margin, minMargin(t.Lease), t.Lease)
	case t.Renew <= 0 || t.Renew > (t.Lease-t.Margin)/2:
		return fmt.Errorf("cannot renew after %v: want more than 0 and at most half of what is served, %v", t.Renew, (t.Lease-t.Margin)/2)
	case t.Stagger <= 0 || last >= TakeoverAllowance:
		return fmt.Errorf("cannot stagger standbys by %v: want more than 0, and the last of %d within %v", t.Stagger, MaxReplicas-1, TakeoverAllowance)
	}
	return nil
}

// minMargin is the smallest margin with which an owner whose clock runs too slow stops before a
// standby whose clock runs too fast claims: (lease - margin)·(1 + skew) ≤ lease·(1 - skew).
func minMargin(lease time.Duration) time.Duration {
	const skew, whole = MaxClockSkewPPM, 1_000_000
	return (2*skew*lease + whole + skew - 1) / (whole + skew)
}
