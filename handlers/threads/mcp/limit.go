package mcp

import (
	"sync"
	"time"

	"trunkline/handlers/threads/token"
)

// Bounds of the table of callers.
const (
	// maxCallers is how many agents are counted apart. Those beyond share one bucket, so that a
	// full table refuses sooner, never later.
	maxCallers = 65_536
	// sweepPause is the least time between two searches for callers whose bucket is full again.
	sweepPause = time.Second
)

// limiter bounds the tool calls of each agent: a bucket holds the calls of a minute and fills in a
// minute. Any goroutine may use it.
type limiter struct {
	mu      sync.Mutex
	rate    int // calls in a minute
	callers map[caller]*bucket
	rest    bucket // of the agents without a bucket of their own
	sweep   time.Time
	most    int // maxCallers, unless a test has another
}

// caller is whose calls are counted.
type caller struct{ workspace, agent string }

// bucket has tokens in units of a nanosecond of filling: a call takes time.Minute/rate.
type bucket struct {
	filled time.Duration // at most time.Minute
	at     time.Time
}

func newLimiter(rate int) *limiter {
	return &limiter{rate: rate, callers: map[caller]*bucket{}, most: maxCallers}
}

func (l *limiter) setRate(rate int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = rate
}

// take counts a call. It returns 0, or how long the agent has to wait for the next one.
func (l *limiter) take(c *token.Claims, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.of(caller{c.Workspace, c.Agent}, now)
	if since := now.Sub(b.at); b.at.IsZero() || since >= time.Minute {
		b.filled, b.at = time.Minute, now
	} else if since > 0 {
		b.filled, b.at = min(time.Minute, b.filled+since), now
	}
	price := time.Minute / time.Duration(l.rate)
	if b.filled < price {
		return price - b.filled
	}
	b.filled -= price
	return 0
}

// of returns the bucket of a caller. The caller of of holds l.mu.
func (l *limiter) of(who caller, now time.Time) *bucket {
	if b := l.callers[who]; b != nil {
		return b
	}
	if len(l.callers) >= l.most && !now.Before(l.sweep) {
		l.sweep = now.Add(sweepPause)
		for k, b := range l.callers {
			if b.filled+now.Sub(b.at) >= time.Minute {
				delete(l.callers, k)
			}
		}
	}
	if len(l.callers) >= l.most {
		return &l.rest
	}
	b := new(bucket)
	l.callers[who] = b
	return b
}

// own counts the requests of each agent that the SDK answers. Any goroutine may use it.
type own struct {
	mu sync.Mutex
	n  map[caller]int
}

// enter counts a request, unless the agent has maxOwn of them.
func (o *own) enter(who caller) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == nil {
		o.n = map[caller]int{}
	}
	if o.n[who] == maxOwn {
		return false
	}
	o.n[who]++
	return true
}

// leave ends what enter began.
func (o *own) leave(who caller) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n[who]--; o.n[who] == 0 {
		delete(o.n, who)
	}
}
