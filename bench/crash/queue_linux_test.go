package crash

import (
	"context"
	"fmt"
	"math"
	"slices"

	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// queued is a process as it came off the ready queue.
type queued struct {
	pid      string
	priority int
	entry
}

// misplaced looks for two processes in the wrong order: by priority, then by who certainly was in
// the queue before the other (kernel-ipc §4.4).
func misplaced(order []queued) string {
	var latest *queued // of the present priority: the one that certainly entered last
	for i := range order {
		q := &order[i]
		switch {
		case latest == nil || q.priority > latest.priority:
			latest = q
		case q.priority < latest.priority:
			return fmt.Sprintf("%s, of priority %d, came after %s, of priority %d", q.pid, q.priority, latest.pid, latest.priority)
		case q.acked < latest.sent:
			return fmt.Sprintf("%s, queued at %d to %d, came after %s, queued at %d to %d", q.pid, q.sent, q.acked, latest.pid, latest.sent, latest.acked)
		case q.sent > latest.sent:
			latest = q
		}
	}
	return ""
}

// checkQueue takes every process off the ready queue, compares, and puts them back to their old
// places.
func (g *game) checkQueue(ctx context.Context, c *ipcclient.Conn) error {
	ready := make(map[string]entry)
	for _, a := range g.actors {
		if a.is.state == stateReady {
			ready[a.is.pid] = a.entered
		}
	}
	for _, h := range g.hist.open {
		if h.is.state == stateReady {
			ready[h.is.pid] = entry{0, math.MaxInt64} // at some time
		}
	}
	order, err := g.drain(ctx, c, ready)
	if err != nil {
		return err
	}
	if wrong := misplaced(order); wrong != "" {
		g.fault("ready queue: %s", wrong)
	}
	missing := len(ready) - len(order)
	for pid := range ready {
		if g.leased[pid] && !slices.ContainsFunc(order, func(q queued) bool { return q.pid == pid }) {
			missing--
		}
		if _, err := c.ScheduleProcess(ctx, pid); err != nil {
			return fmt.Errorf("cannot put %s back: %w", pid, err)
		}
	}
	if missing > g.wildLeases {
		g.fault("ready queue: %d of %d READY processes came off it, %d more than may be handed out are missing", len(order), len(ready), missing-g.wildLeases)
	}
	counts, err := c.GetProcessCounts(ctx)
	if err != nil {
		return err
	}
	if counts.QueueDepth != int64(len(ready)) || counts.CountsByState.Ready != int64(len(ready)) {
		g.fault("ready queue: depth %d, %d READY, want %d", counts.QueueDepth, counts.CountsByState.Ready, len(ready))
	}
	return nil
}

func (g *game) drain(ctx context.Context, c *ipcclient.Conn, ready map[string]entry) (order []queued, err error) {
	for len(order) <= len(ready) {
		p, err := c.GetNextRunnable(ctx, false)
		if refused(err, wire.NotFound) {
			return order, nil
		}
		if err != nil {
			return nil, err
		}
		entered, ok := ready[p.PID]
		if !ok || slices.ContainsFunc(order, func(q queued) bool { return q.pid == p.PID }) {
			g.fault("ready queue: %+v came off it", p)
			return order, nil
		}
		order = append(order, queued{p.PID, slices.Index(priorities, p.Priority), entered})
	}
	return order, nil
}
