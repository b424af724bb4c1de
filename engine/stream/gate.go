package stream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/connection"
)

// DefaultMaxConnections is kernel.max_connections where a Config leaves it zero (kernel-ipc §2.6).
const DefaultMaxConnections = 1000

// Gate counts open connections against one limit. All owners of a server's connections share one,
// so that a slot is one wherever its connection lives.
//
// Connections that linger hold no slot, for their peers may come again at once (kernel-ipc §2.6),
// but are counted apart: there are never more of them than slots, so a server has at most twice as
// many sockets as its limit, however slowly its peers take their last answers.
//
// A drain ends for all connections together: one whose session is done rests, and answers requests
// that still come with a refusal, until all of them rest (Rested).
type Gate struct {
	max       atomic.Int64
	files     *Files
	open      atomic.Int64 // open connections, and above them those that rest: one atomic step moves both
	lingering atomic.Int64
	empty     chan struct{} // one slot: a count went to zero since Wait looked
	rested    chan struct{} // closed by endRest
	once      sync.Once
}

// resting is what a connection that rests adds to Gate.open.
const resting = 1 << 32

// newGate returns a gate for max connections, zero standing for DefaultMaxConnections. They are
// also counted by files, which may be nil, and shared.
func newGate(max int, files *Files) *Gate {
	if max <= 0 {
		max = DefaultMaxConnections
	}
	g := &Gate{files: files, empty: make(chan struct{}, 1), rested: make(chan struct{})}
	g.SetMax(max)
	return g
}

// SetMax changes the limit, which is at least 1. Connections above a lower one stay open; no other
// is admitted until there are fewer.
func (g *Gate) SetMax(max int) { g.max.Store(int64(max)) }

// admit takes a slot if one is free. It never refuses because of attempts that were refused
// themselves. It does not allocate.
func (g *Gate) admit() bool {
	if !g.take(&g.open) {
		return false
	}
	if g.files.take() {
		return true
	}
	g.give(&g.open, 1)
	return false
}

// BeginLinger lets one more connection linger, if there are not too many that do. A connection gets
// it before its slot is released, so that Wait does not miss it. It does not allocate.
func (g *Gate) BeginLinger() bool {
	may := g.take(&g.lingering)
	if may {
		g.files.add(1) // Release gives the other one back
	}
	return may
}

func (g *Gate) take(count *atomic.Int64) bool {
	for {
		n := count.Load()
		if n%resting >= g.max.Load() {
			return false
		}
		if count.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives a slot back; it is usable at once. rests: its connection rested.
func (g *Gate) Release(rests bool) {
	g.files.add(-1)
	if rests {
		g.give(&g.open, 1+resting)
	} else {
		g.give(&g.open, 1)
	}
}

// Rests counts the connection of s as one whose session is done in a drain, or no longer.
func (g *Gate) Rests(s *connection.State, done bool) {
	switch {
	case done && !s.Rests:
		g.look(g.open.Add(resting))
	case !done && s.Rests:
		g.open.Add(-resting)
	}
	s.Rests = done
}

// Finished is State.Finished for a connection whose owner has nothing to send; with woken the
// session may have something to append. In a drain it reports true only once the connections
// close together.
func (g *Gate) Finished(s *connection.State, sess connection.Session, woken bool) (r connection.Reason, done bool) {
	if r, done = s.Finished(sess); r == connection.ReasonDrain {
		done = done && !woken
		g.Rests(s, done)
		done = done && g.restIsOver()
	}
	return r, done
}

// look closes Rested once all open connections rest.
func (g *Gate) look(n int64) {
	if rests := n / resting; rests > 0 && rests >= n%resting {
		g.endRest()
	}
}

// endRest has the connections that rest closed, whether or not others rest.
func (g *Gate) endRest() { g.once.Do(func() { close(g.rested) }) }

// Rested is closed once connections that rest are to be closed.
func (g *Gate) Rested() <-chan struct{} { return g.rested }

// restIsOver reports whether Rested is closed.
func (g *Gate) restIsOver() bool {
	select {
	case <-g.rested:
		return true
	default:
		return false
	}
}

// AwaitRest returns when all open connections rest, or none is open; when ctx ends; and when three
// quarters of grace, in nanoseconds, have passed, for the last quarter is for lingering.
func (g *Gate) AwaitRest(ctx context.Context, grace int64) {
	defer g.endRest()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(grace-grace/4))
	defer cancel()
	for g.open.Load() > 0 {
		select {
		case <-g.rested:
			return
		case <-g.empty:
		case <-ctx.Done():
			return
		}
	}
}

// EndLinger notes that a connection which BeginLinger let linger is closed.
func (g *Gate) EndLinger() {
	g.files.add(-1)
	g.give(&g.lingering, 1)
}

func (g *Gate) give(count *atomic.Int64, n int64) {
	if left := count.Add(-n); left > 0 {
		g.look(left)
		return
	}
	select {
	case g.empty <- struct{}{}:
	default:
	}
}

// Open returns how many slots are taken.
func (g *Gate) Open() int { return int(g.open.Load() % resting) }

// Lingering returns how many connections linger.
func (g *Gate) Lingering() int { return int(g.lingering.Load()) }

// Max returns the limit.
func (g *Gate) Max() int { return int(g.max.Load()) }

// Wait returns nil once no connection is open or lingers, or ctx's error. One caller at a time.
func (g *Gate) Wait(ctx context.Context) error {
	for g.open.Load() > 0 || g.lingering.Load() > 0 {
		select {
		case <-g.empty:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// drain has the session drain after the frames already read were served (kernel-ipc §2.7). Frames
// may wait behind a blocked session too, which unblocks without a Drain; later frames come after
// it. What a reader in its Read has is not visible here, so the reader calls Drain after that Read;
// where the Read cannot be interrupted, the session is drained here.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recoverPanic()
	if c.released || c.Draining() {
		return
	}
	switch {
	case c.reads == ahead, c.Behind():
		c.DrainAfter(len(c.in.unread()))
		c.nudge()
	case c.unfed.Load(), c.rouse():
		c.DrainAfter(-1)
	default:
		c.emitDrain(0)
	}
}

// rouse calls the reader out of its Read, or out of its next one, and reports whether it will feed
// the session again. The caller holds mu.
func (c *conn) rouse() bool {
	if c.Peer == connection.PeerEOF || c.Verdict == connection.Close {
		return false
	}
	d, ok := c.rwc.(readDeadliner)
	c.roused = ok && d.SetReadDeadline(longAgo) == nil
	return c.roused
}

// calledOut reports whether a Read ended because of rouse, and did not fail.
func (c *conn) calledOut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.roused || c.released || c.Verdict == connection.Close
}

// unrouse lets Reads wait again. The caller holds mu.
func (c *conn) unrouse() {
	if c.roused {
		c.roused = false
		_ = c.rwc.(readDeadliner).SetReadDeadline(time.Time{})
	}
}

// emitDrain drains the session, which has not taken unread bytes. The caller holds mu.
func (c *conn) emitDrain(unread int) {
	c.unrouse()
	c.sess.Drain(c.host.cfg.Now())
	c.Drained(unread)
	c.Wake(c.port)
}

// readDeadliner is a transport whose Read can be interrupted and taken up again.
type readDeadliner interface{ SetReadDeadline(time.Time) error }
