package ipc

import (
	"sync/atomic"
	"time"
)

// grace lets a snapshot wait for everybody who was changing something when it looked: an entry is in its table, or out of it, a moment
// before the record about it is in the journal, and a snapshot must not hold what no record tells. The zero value is ready.
type grace struct {
	phase  atomic.Uint32
	inside [2]struct {
		n atomic.Int64
		_ [56]byte // the two are counted from different cores
	}
}

// enter notes somebody who may change something until leave, which is given what enter returned. It does not wait or allocate.
func (g *grace) enter() (ticket uint32) {
	for {
		p := g.phase.Load() & 1
		g.inside[p].n.Add(1)
		if g.phase.Load()&1 == p {
			return p
		}
		g.inside[p].n.Add(-1) // wait has begun in between, and must not miss us
	}
}

func (g *grace) leave(ticket uint32) { g.inside[ticket].n.Add(-1) }

// gracePause is how long wait sleeps between two looks: a few turns of a loop.
const gracePause = 100 * time.Microsecond

// wait returns once everybody has left who had entered before. One goroutine at a time may call it.
func (g *grace) wait() {
	p := g.phase.Add(1) - 1
	for g.inside[p&1].n.Load() != 0 {
		time.Sleep(gracePause)
	}
}
