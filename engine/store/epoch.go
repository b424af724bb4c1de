package store

import (
	"sync/atomic"
	"time"
)

// epoch has nothing to do with the journal.Log's epoch, which numbers its owners. It lets a
// snapshot wait for all work that may have changed something when it looked: an entry is in its
// table, or out of it, a moment before the record about it is in the journal, and a snapshot must
// not hold what no record holds. The zero value is ready.
type epoch struct {
	phase  atomic.Uint32
	inside [2]struct {
		n atomic.Int64
		_ [56]byte // the two are counted from different cores
	}
}

// enter notes work that may change something until leave, which takes what enter returned. It does
// not wait or allocate.
func (g *epoch) enter() (ticket uint32) {
	for {
		p := g.phase.Load() & 1
		g.inside[p].n.Add(1)
		if g.phase.Load()&1 == p {
			return p
		}
		g.inside[p].n.Add(-1) // wait has begun in between, and must not miss this
	}
}

func (g *epoch) leave(ticket uint32) { g.inside[ticket].n.Add(-1) }

// epochPause is how long wait sleeps between two looks: a few turns of a loop.
const epochPause = 100 * time.Microsecond

// wait returns once all work has left that had entered before. One goroutine at a time may call it.
func (g *epoch) wait() {
	p := g.phase.Add(1) - 1
	for g.inside[p&1].n.Load() != 0 {
		time.Sleep(epochPause)
	}
}
