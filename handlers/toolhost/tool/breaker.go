package tool

import (
	"sync"
	"time"
)

// Defaults of BreakerConfig (toolhost §4.9).
const (
	DefaultThreshold = 5
	DefaultCooldown  = 30 * time.Second
)

// BreakerState is what a breaker does with calls (toolhost §5).
type BreakerState uint8

// The states of a breaker.
const (
	BreakerClosed   BreakerState = iota // calls pass
	BreakerOpen                         // calls are tripped until the cooldown is over
	BreakerHalfOpen                     // one call, the probe, runs; the others are tripped
)

// String returns the name of the state as events have it (toolhost §4.12). It does not allocate.
func (s BreakerState) String() string {
	switch s {
	case BreakerOpen:
		return "opened"
	case BreakerHalfOpen:
		return "half_open"
	}
	return "closed"
}

// BreakerConfig is what a Breaker is made of.
type BreakerConfig struct {
	// Threshold is how many failures in a row open the breaker; less than 1 means 1.
	Threshold int
	// Cooldown is how long it stays open before a probe; less than 0 means 0.
	Cooldown time.Duration
	// Now reads a monotonic clock, in nanoseconds.
	Now func() int64
	// Changed, if not nil, is called for every change of state, in order, with the failures in a
	// row. It is called under the breaker's lock: it must be quick and must not call the breaker.
	Changed func(s BreakerState, failures int)
}

// Breaker keeps calls from a tool that fails again and again (toolhost §4.9, §5). An allowed call
// ends with Done if it ran, else with Cancel. Any goroutine may use it; no method allocates.
type Breaker struct {
	cfg BreakerConfig

	mu       sync.Mutex
	state    BreakerState
	failures int   // in a row
	opened   int64 // when; ns of Now
	reserved bool  // open, and a call that may become the probe is on its way
}

// NewBreaker returns a closed breaker.
func NewBreaker(cfg BreakerConfig) *Breaker {
	cfg.Threshold, cfg.Cooldown = max(cfg.Threshold, 1), max(cfg.Cooldown, 0)
	return &Breaker{cfg: cfg}
}

// Allow reports whether a call may go on; probe is for what ends it. After the cooldown one call at
// a time is the probe; until Start the breaker counts as open (toolhost §4.3).
func (b *Breaker) Allow() (probe, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == BreakerClosed {
		return false, true
	}
	if b.state == BreakerHalfOpen || b.reserved || b.cfg.Now()-b.opened < int64(b.cfg.Cooldown) {
		return false, false
	}
	b.reserved = true
	return true, true
}

// Start reports that an allowed call is about to run: a probe makes the breaker half open.
func (b *Breaker) Start(probe bool) {
	if !probe {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.start()
}

func (b *Breaker) start() {
	if b.reserved {
		b.reserved = false
		b.change(BreakerHalfOpen)
	}
}

// Cancel ends an allowed call that never ran: another call may be the probe.
func (b *Breaker) Cancel(probe bool) {
	if !probe {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.giveBack()
}

func (b *Breaker) giveBack() {
	b.reserved = false
	if b.state == BreakerHalfOpen {
		// opened stays as it is: the cooldown is over.
		b.change(BreakerOpen)
	}
}

// Done ends an allowed call that ran: d is why not to its end, nil for any answer. One that only
// waited for a worker never ran. Calls from before the breaker opened change nothing.
func (b *Breaker) Done(probe bool, d *DispatchError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waited, failed := d != nil && d.Waited, d != nil
	switch {
	case waited:
		if probe {
			b.giveBack()
		}
	case probe:
		b.start()
		b.endProbe(failed)
	case b.state != BreakerClosed:
	case failed:
		if b.failures++; b.failures >= b.cfg.Threshold {
			b.open()
		}
	default:
		b.failures = 0
	}
}

func (b *Breaker) endProbe(failed bool) {
	if failed {
		b.failures++
		b.open()
		return
	}
	b.failures = 0
	b.change(BreakerClosed)
}

func (b *Breaker) open() {
	b.opened = b.cfg.Now()
	b.change(BreakerOpen)
}

func (b *Breaker) change(s BreakerState) {
	b.state = s
	if b.cfg.Changed != nil {
		b.cfg.Changed(s, b.failures)
	}
}

// State returns the state and the failures in a row.
func (b *Breaker) State() (s BreakerState, failures int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.failures
}
