package token

import (
	"cmp"
	"net/netip"
	"sync"
	"time"
)

// Bounds of failed authentications (threads §6).
const (
	// DefaultFailures is how many one address may have in a window.
	DefaultFailures = 30
	failureWindow   = 10 * time.Second
	// maxPeers is how many peer addresses are counted apart.
	maxPeers = 16384
	// sweepPause is the time between two searches for peers whose window is over.
	sweepPause = time.Second
)

// Peers counts failed authentications by peer address, in windows that begin with the first
// failure. A peer for which there is no room shares one count with all others of that kind, so that
// a full table refuses sooner, never later. All surfaces share one. Any goroutine may call its
// methods.
type Peers struct {
	mu    sync.Mutex
	limit int
	table map[netip.Addr]*failures
	rest  failures
	sweep time.Time // when the next search may be
}

type failures struct {
	n     int
	until time.Time
}

// NewPeers returns counts with a limit; 0: DefaultFailures.
func NewPeers(limit int) *Peers {
	limit = cmp.Or(max(limit, 0), DefaultFailures)
	return &Peers{limit: limit, table: map[netip.Addr]*failures{}}
}

// SetLimit changes the limit, which is at least 1.
func (p *Peers) SetLimit(limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
}

// Add counts a failure of a peer, given by its address with its port. It returns 0 while the peer
// is within its limit, else how long its window lasts.
func (p *Peers) Add(remote string, now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.of(addrOf(remote), now)
	if !now.Before(f.until) {
		*f = failures{until: now.Add(failureWindow)}
	}
	if f.n++; f.n <= p.limit {
		return 0
	}
	f.n = p.limit + 1
	return f.until.Sub(now)
}

// of returns the count of a peer. The caller holds p.mu.
func (p *Peers) of(peer netip.Addr, now time.Time) *failures {
	if f := p.table[peer]; f != nil {
		return f
	}
	if len(p.table) >= maxPeers && !now.Before(p.sweep) {
		p.sweep = now.Add(sweepPause)
		for a, f := range p.table {
			if !now.Before(f.until) {
				delete(p.table, a)
			}
		}
	}
	if len(p.table) >= maxPeers {
		return &p.rest
	}
	f := new(failures)
	p.table[peer] = f
	return f
}

// addrOf returns the address of a peer without its port; the zero Addr for a peer without one, as
// on a unix socket.
func addrOf(remote string) netip.Addr {
	a, _ := netip.ParseAddrPort(remote)
	return a.Addr().Unmap().WithZone("")
}
