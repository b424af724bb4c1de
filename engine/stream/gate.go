package stream

import (
	"context"
	"sync/atomic"
)

// DefaultMaxConnections is kernel.max_connections where a Config leaves it zero (kernel-ipc §2.6).
const DefaultMaxConnections = 1000

// Gate counts open connections against one limit. All owners of a server's connections share one, so that a slot is one
// wherever its connection lives.
type Gate struct {
	max   int64
	open  atomic.Int64
	empty chan struct{} // one slot: the count went to zero since Wait looked
}

// NewGate returns a gate for max connections; zero stands for DefaultMaxConnections.
func NewGate(max int) *Gate {
	if max <= 0 {
		max = DefaultMaxConnections
	}
	return &Gate{max: int64(max), empty: make(chan struct{}, 1)}
}

// Admit takes a slot if one is free. It never refuses because of attempts that were refused themselves. It does not allocate.
func (g *Gate) Admit() bool {
	for {
		n := g.open.Load()
		if n >= g.max {
			return false
		}
		if g.open.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives a slot back; it is usable at once.
func (g *Gate) Release() {
	if g.open.Add(-1) > 0 {
		return
	}
	select {
	case g.empty <- struct{}{}:
	default:
	}
}

// Open returns how many slots are taken.
func (g *Gate) Open() int { return int(g.open.Load()) }

// Max returns the limit.
func (g *Gate) Max() int { return int(g.max) }

// Wait returns nil once no slot is taken, or ctx's error. One caller at a time.
func (g *Gate) Wait(ctx context.Context) error {
	for g.open.Load() > 0 {
		select {
		case <-g.empty:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
