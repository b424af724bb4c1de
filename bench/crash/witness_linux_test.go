package crash

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// shared is a process to whose usage every client adds.
type shared struct {
	pid string
	// acked is the sum of what replies confirmed, sent that of all requests that may have had an
	// effect, seen the largest total shown.
	acked, sent, seen atomic.Int64
}

// add makes one RecordUsage.
func (s *shared) add(ctx context.Context, c *ipcclient.Conn, g *game, n int64) (alive bool) {
	g.count.add(sent, 1)
	before := s.acked.Load()
	s.sent.Add(n)
	total, err := c.RecordUsage(ctx, ipcclient.RecordUsage{PID: s.pid, LLMCalls: n})
	if err != nil {
		lost, alive := g.evaluate(err, "RecordUsage of "+s.pid)
		if !lost {
			s.sent.Add(-n)
		}
		return alive
	}
	s.acked.Add(n)
	s.saw(total.LLMCalls)
	if total.LLMCalls < before+n || total.LLMCalls > s.sent.Load() {
		g.fault("RecordUsage of %s answered %d: %d had been confirmed before and %d sent", s.pid, total.LLMCalls, before+n, s.sent.Load())
	}
	g.count.add(confirmed, 1)
	return true
}

func (s *shared) saw(total int64) {
	for old := s.seen.Load(); total > old && !s.seen.CompareAndSwap(old, total); old = s.seen.Load() {
	}
}

// found compares the total after a restart with what may be there, and goes on from it.
func (s *shared) found(g *game, total int64) {
	acked, sent, seen := s.acked.Load(), s.sent.Load(), s.seen.Load()
	if total < acked || total > sent || total < seen {
		g.fault("usage of %s is %d: %d confirmed, %d sent, %d shown", s.pid, total, acked, sent, seen)
	}
	s.acked.Store(total)
	s.sent.Store(total)
}

// glimpse is the most that a reader saw of an actor's session.
type glimpse struct {
	pid        string
	generation int
	iteration  int64
}

// watch reads what actors are changing at the moment, on a connection of its own. Half of the time
// that is what changes most.
func (g *game) watch(ctx context.Context, c *ipcclient.Conn, rng *rand.Rand, stop *atomic.Bool) {
	for alive := true; alive && !stop.Load(); time.Sleep(time.Duration(rng.IntN(100)) * time.Microsecond) {
		g.count.add(sent, 1)
		if rng.IntN(2) == 0 {
			alive = g.watchShared(ctx, c, g.shared[rng.IntN(len(g.shared))])
			continue
		}
		i := rng.IntN(len(g.actors))
		alive = g.watchSession(ctx, c, i, *g.actors[i].public.Load())
	}
}

func (g *game) watchShared(ctx context.Context, c *ipcclient.Conn, s *shared) (alive bool) {
	p, err := c.GetProcess(ctx, s.pid)
	if err != nil {
		_, alive = g.evaluate(err, "GetProcess of "+s.pid)
		return alive
	}
	s.saw(p.Usage.LLMCalls)
	return true
}

func (g *game) watchSession(ctx context.Context, c *ipcclient.Conn, i int, pid string) (alive bool) {
	l, _, err := sessionOf(ctx, c, pid)
	if err != nil {
		_, alive = g.evaluate(err, "GetSessionState of "+pid)
		return alive
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if seen := &g.glimpses[i]; seen.pid != pid || l.reached(seen.generation, seen.iteration) {
		*seen = glimpse{pid, l.generation, l.iteration}
	}
	return true
}

// listen keeps which processes were created and terminated, by the events.
func (g *game) listen(ctx context.Context, sub *ipcclient.Subscription) {
	for event, err := range sub.All(ctx) {
		var payload struct{ PID string }
		if err != nil || json.Unmarshal([]byte(event.Payload), &payload) != nil || payload.PID == "" {
			return // a gap, or the end
		}
		g.mu.Lock()
		g.seen[payload.PID] = g.seen[payload.PID] || event.EventType == "process.terminated"
		g.mu.Unlock()
	}
}

// take takes processes off the ready queue: some are started at once, some only handed out and
// given back.
func (g *game) take(ctx context.Context, c *ipcclient.Conn, number int, rng *rand.Rand, stop *atomic.Bool) {
	for alive := true; alive && !stop.Load(); time.Sleep(time.Duration(rng.IntN(8)) * time.Millisecond) {
		start := rng.IntN(3) > 0
		alive = g.takeOne(ctx, c, number, start)
	}
}

func (g *game) takeOne(ctx context.Context, c *ipcclient.Conn, number int, start bool) (alive bool) {
	g.count.add(sent, 1)
	asked, from := g.stamp.Add(1), g.since()
	p, err := c.GetNextRunnable(ctx, start)
	g.hist.took(number, start, from, p, err)
	if refused(err, wire.NotFound) {
		return true
	}
	if err != nil {
		lost, alive := g.evaluate(err, "GetNextRunnable")
		g.mu.Lock()
		defer g.mu.Unlock()
		if lost && start {
			g.wildStarts++
		} else if lost {
			g.wildLeases++
		}
		return alive
	}
	g.mu.Lock()
	if start {
		g.started[p.PID] = asked
	} else {
		g.leased[p.PID] = true
	}
	g.mu.Unlock()
	if start {
		g.count.add(confirmed, 1)
		return true
	}
	if h := g.hist.of(p.PID); h != nil {
		return g.hist.do(ctx, c, h, number, call{method: schedule})
	}
	if _, err = c.ScheduleProcess(ctx, p.PID); err != nil && !refused(err, wire.FailedPrecondition) {
		_, alive = g.evaluate(err, "ScheduleProcess of "+p.PID)
		return alive
	}
	return true
}
