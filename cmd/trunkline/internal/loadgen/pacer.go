package loadgen

import (
	"context"
	"time"
)

// alarm waits with the precision that the machine has: the runtime's timers round up to a
// millisecond where nothing else runs.
type alarm interface {
	wait(d time.Duration)
	close()
}

// timerAlarm is an alarm of the runtime's timers.
type timerAlarm struct{}

func (timerAlarm) wait(d time.Duration) { time.Sleep(d) }
func (timerAlarm) close()               {}

const (
	// quantum is the shortest wait: at rates above its inverse requests go out in groups, which is
	// what their rate leaves of a core.
	quantum = 50 * time.Microsecond
	// patience is the longest wait, so that a stopped run ends.
	patience = 50 * time.Millisecond
)

// pace wakes each connection when a request of it is due. It ends once all were.
func (g *generator) pace(ctx context.Context, a alarm) {
	defer a.close()
	t := g.table
	for k := int64(0); k < t.last && ctx.Err() == nil; {
		now := g.now()
		for woken := int64(0); k < t.last && t.at(k) <= now; k++ {
			if woken == g.stride {
				k = max(k, t.before(now)) // all connections are awake and will see what is due
				break
			}
			g.conns[k%g.stride].nudge()
			woken++
		}
		if k < t.last {
			a.wait(min(max(time.Duration(t.at(k)-g.now()), quantum), patience))
		}
	}
}

// sweep looks after timeouts until ctx ends.
func (g *generator) sweep(ctx context.Context) {
	t := time.NewTicker(min(max(time.Duration(g.timeout)/20, 20*time.Millisecond), 100*time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-t.C:
			now := g.now()
			for _, c := range g.conns {
				c.sweep(now)
			}
		case <-ctx.Done():
			return
		}
	}
}
