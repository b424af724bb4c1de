package stream

import (
	"context"
	"sync/atomic"
)

// DefaultMaxConnections is kernel.max_connections where a Config leaves it zero (kernel-ipc §2.6).
const DefaultMaxConnections = 1000

// Gate counts open connections against one limit. All owners of a server's connections share one, so that a slot is one
// wherever its connection lives.
//
// Connections that part hold no slot, for their peers may come again at once (kernel-ipc §2.6), but are counted beside: there are
// never more of them than slots, so a server has at most twice as many sockets as its limit says, however slowly its peers take
// their last answers.
type Gate struct {
	max     int64
	open    atomic.Int64
	parting atomic.Int64
	empty   chan struct{} // one slot: a count went to zero since Wait looked
}

// NewGate returns a gate for max connections; zero stands for DefaultMaxConnections.
func NewGate(max int) *Gate {
	if max <= 0 {
		max = DefaultMaxConnections
	}
	return &Gate{max: int64(max), empty: make(chan struct{}, 1)}
}

// Admit takes a slot if one is free. It never refuses because of attempts that were refused themselves. It does not allocate.
func (g *Gate) Admit() bool { return g.take(&g.open) }

// Part lets one more connection part, if there are not too many that do. A connection gets it before its slot is released, so that
// Wait does not miss it. It does not allocate.
func (g *Gate) Part() bool { return g.take(&g.parting) }

func (g *Gate) take(count *atomic.Int64) bool {
	for {
		n := count.Load()
		if n >= g.max {
			return false
		}
		if count.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives a slot back; it is usable at once.
func (g *Gate) Release() { g.give(&g.open) }

// Parted tells that a connection which Part let part is closed.
func (g *Gate) Parted() { g.give(&g.parting) }

func (g *Gate) give(count *atomic.Int64) {
	if count.Add(-1) > 0 {
		return
	}
	select {
	case g.empty <- struct{}{}:
	default:
	}
}

// Open returns how many slots are taken.
func (g *Gate) Open() int { return int(g.open.Load()) }

// Parting returns how many connections part.
func (g *Gate) Parting() int { return int(g.parting.Load()) }

// Max returns the limit.
func (g *Gate) Max() int { return int(g.max) }

// Wait returns nil once no slot is taken and no connection parts, or ctx's error. One caller at a time.
func (g *Gate) Wait(ctx context.Context) error {
	for g.open.Load() > 0 || g.parting.Load() > 0 {
		select {
		case <-g.empty:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
