package follow

import (
	"sync"
	"time"

	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// leaseEvery is how often the tokens of waits and streams are looked up: one that has expired or is
// revoked ends them within a second.
const leaseEvery = 500 * time.Millisecond

// Lease is the token of a wait or a stream.
type Lease struct {
	s       *Server
	expires float64
	bearer  string
	end     func(*method.Fault)
	fresh   bool // was not looked up since it was verified
}

// leases are those that are held. A goroutine looks them up while there are some.
type leases struct {
	mu         sync.Mutex
	held       map[*Lease]struct{}
	generation uint64
	running    bool
}

// Hold has end called, once and on another goroutine, when the token with these claims expires or
// is revoked, or, with nil, when the server drains, until Release. It must not block.
func (s *Server) Hold(c *token.Claims, bearer string, end func(*method.Fault)) *Lease {
	l := &Lease{s: s, expires: c.Expires, bearer: bearer, end: end, fresh: true}
	ls := &s.leases
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.held[l] = struct{}{}
	if !ls.running {
		ls.running = true
		go s.keepLeases()
	}
	return l
}

// Release ends what Hold began. It may be called again, and of a nil Lease.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	ls := &l.s.leases
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.held, l)
}

// endAll ends all leases because the server drains.
func (ls *leases) endAll() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for l := range ls.held {
		delete(ls.held, l)
		l.end(nil)
	}
}

func (s *Server) keepLeases() {
	tick := time.NewTicker(leaseEvery)
	defer tick.Stop()
	for range tick.C {
		if !s.checkLeases() {
			return
		}
	}
}

// checkLeases ends what is void, and reports whether leases are left.
func (s *Server) checkLeases() bool {
	ls := &s.leases
	ls.mu.Lock()
	defer ls.mu.Unlock()
	generation := s.cfg.Verifier.Generation()
	now := float64(s.cfg.Now().UnixMilli())/1000 - s.cfg.Skew.Seconds()
	for l := range ls.held {
		var f *method.Fault
		if now >= l.expires {
			f = method.BadToken("expired")
		} else if l.fresh || generation != ls.generation {
			l.fresh = false
			if _, err := s.cfg.Verifier.VerifyKnown(l.bearer); err != nil {
				f = method.Unverified(err)
			}
		}
		if f != nil {
			delete(ls.held, l)
			l.end(f)
		}
	}
	ls.generation = generation
	ls.running = len(ls.held) > 0
	return ls.running
}
