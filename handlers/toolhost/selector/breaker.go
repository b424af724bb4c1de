package selector

import "sync"

// breaker rests a policy that keeps failing (toolhost §4.8): after threshold failures in a row nobody is let through for the cooldown,
// then one caller is, the probe, whose outcome decides. Any goroutine may use it.
type breaker struct {
	threshold int
	cooldown  int64 // ns

	mu       sync.Mutex
	failures int // in a row
	open     bool
	probing  bool
	until    int64 // the end of the cooldown, while open
}

// allow tells whether the policy may be run at now, and whether that run is the probe. Each allow that is ok needs a done.
func (b *breaker) allow(now int64) (probe, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return false, true
	}
	if b.probing || now < b.until {
		return false, false
	}
	b.probing = true
	return true, true
}

// done says how a run went that was allowed. Of runs that began before the breaker opened only the failures up to then count: the
// probe alone closes it.
func (b *breaker) done(now int64, probe, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	} else if b.open {
		return
	}
	if !failed {
		b.failures, b.open = 0, false
		return
	}
	b.failures = min(b.failures+1, b.threshold)
	if b.failures >= b.threshold {
		b.open, b.until = true, now+b.cooldown
	}
}
