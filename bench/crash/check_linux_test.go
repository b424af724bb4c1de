package crash

import (
	"bytes"
	"context"
	"maps"
	"math"
	"sync"

	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// check compares the server with what clients know, and has the actors go on from what is there.
// The last one ends the histories.
func (g *game) check(ctx context.Context, last bool) error {
	lines, hangUp, err := g.dial(ctx, conns)
	defer hangUp()
	if err != nil {
		return err
	}
	if err := g.hist.settle(ctx, lines[0]); err != nil {
		return err
	}
	if err := g.checkActors(ctx, lines); err != nil {
		return err
	}
	if len(g.faults) > 0 {
		g.hist.evaluate() // it may hold more; the rest would only repeat it
		return nil
	}
	if err := g.checkTable(ctx, lines[0]); err != nil {
		return err
	}
	if err := g.checkQueue(ctx, lines[0]); err != nil {
		return err
	}
	g.forget()
	if g.hist.rounds++; last || g.hist.rounds == historySpan {
		return g.hist.finish(ctx, lines[0])
	}
	return nil
}

func (g *game) checkActors(ctx context.Context, lines []*ipcclient.Conn) error {
	errs := make(chan error, len(g.actors))
	var wg sync.WaitGroup
	for i, a := range g.actors {
		again := g.rng.IntN(2) == 0
		wg.Go(func() {
			if err := a.check(ctx, lines[i%conns], again); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	return nil
}

// retry sends the request without a reply once more, and reports whether it did; or else the last
// one that was answered, if that may be repeated: the server must answer that it has it, and the
// world must stay as it is.
func (a *actor) retry(ctx context.Context, c *ipcclient.Conn) (unread bool) {
	g, in := a.g, a.last
	if a.maybe != nil {
		in = a.pending
	}
	already, again := repeatable[in.method]
	if !again || a.maybe == nil && in.method == begin && in.flag { // a second one would be another one
		return false
	}
	_, err := in.send(ctx, c, a.is.pid)
	if a.maybe != nil {
		g.count.add(retriedUnread, 1)
		if err != nil && (already == wire.OK || !refused(err, already)) {
			g.fault("%v of %s, sent again: %v", in, a.is.pid, err)
		}
		return true
	}
	g.count.add(retriedKnown, 1)
	taken := err == nil && (already == wire.OK || a.is.session.terminated) // an ended session answers a report with its end
	if !taken && (err == nil || !refused(err, already)) {
		g.fault("%v of %s, which was answered before the restart, sent again: %v", in, a.is.pid, err)
	}
	return false
}

// check compares the actor's things. With again a request is repeated before anything is read: one
// without a reply must then have had its effect once.
func (a *actor) check(ctx context.Context, c *ipcclient.Conn, again bool) error {
	g := a.g
	if again {
		again = a.retry(ctx, c)
	}
	found, shown, err := observe(ctx, c, a)
	if err != nil {
		return err
	}
	want, drawn, ok := a.explain(found, again)
	switch {
	case !ok && a.maybe == nil:
		g.fault("found     %v\nconfirmed %v", found, a.is)
	case !ok:
		g.fault("found     %v\nconfirmed %v\nor, after %v without a reply (sent again: %v),\n          %v", found, a.is, a.pending, again, *a.maybe)
	case a.shown != nil && !bytes.Equal(a.shown, shown):
		g.fault("GetSessionState of %s:\n%x\nbefore:\n%x", a.is.pid, shown, a.shown)
	}
	g.checkTaken(a, &want, drawn, &found)
	if seen := g.glimpses[a.index]; seen.pid == found.pid && !found.session.reached(seen.generation, seen.iteration) {
		g.fault("session %s: a reader had seen generation %d, iteration %d; found %v", found.pid, seen.generation, seen.iteration, found)
	}
	a.is, a.maybe, a.shown = found, nil, shown
	if a.entered.acked == math.MaxInt64 {
		a.entered.acked = g.stamp.Add(1)
	}
	if a.envelope != "" {
		a.serial++
		a.do(ctx, c, a.update()) // a lost envelope is a refusal that is not allowed
	}
	return a.checkPast(ctx, c)
}

// explain reports which of the worlds that may be there was found. One in which no other client has
// started the process comes first.
func (a *actor) explain(found world, again bool) (want world, drawn, ok bool) {
	want = a.is
	for _, w := range []*world{&a.is, a.maybe} {
		if w == nil || again && w == &a.is {
			continue
		}
		if fits, started := w.fits(found); fits && (!ok || !started) {
			want, drawn, ok = *w, started, true
		}
	}
	return want, drawn, ok
}

// checkTaken compares the process's state with what those know who take processes off the queue.
func (g *game) checkTaken(a *actor, want *world, drawn bool, found *world) {
	g.mu.Lock()
	sent, started := g.started[found.pid]
	excused := !drawn || started
	if !excused && g.wildStarts > 0 {
		g.wildStarts--
		excused = true
	}
	g.mu.Unlock()
	if !excused {
		g.fault("process %s runs though nobody started it: %v", found.pid, *found)
	}
	if want.state == stateReady && !drawn && started && sent > a.entered.acked {
		g.fault("process %s is READY again though it was started: %v", found.pid, *found)
	}
}

// checkPast looks at the sessions of the last ended processes, and at some of the others.
func (a *actor) checkPast(ctx context.Context, c *ipcclient.Conn) error {
	const last, others = 3, 3
	for i := range min(last+others, len(a.past)) {
		at := len(a.past) - 1 - i
		if i >= last {
			at = a.rng.IntN(len(a.past))
		}
		e := &a.past[at]
		l, shown, err := sessionOf(ctx, c, e.pid)
		if err != nil {
			return err
		}
		if l != e.session || e.shown != nil && !bytes.Equal(shown, e.shown) {
			a.g.fault("session of ended process %s:\n%x\nbefore:\n%x\nthat is %+v, and was %+v", e.pid, shown, e.shown, l, e.session)
		}
	}
	return nil
}

// checkTable compares all processes, and how many sessions there are.
func (g *game) checkTable(ctx context.Context, c *ipcclient.Conn) error {
	there := make(map[string]ipcclient.Process)
	for in := (ipcclient.ListProcesses{Limit: 1000}); ; {
		page, err := c.ListProcesses(ctx, in)
		if err != nil {
			return err
		}
		for _, p := range page.Processes {
			there[p.PID] = p
		}
		if in.Cursor = page.NextCursor; in.Cursor == nil {
			break
		}
	}
	status, err := c.GetSystemStatus(ctx, false)
	if err != nil {
		return err
	}
	g.mu.Lock()
	seen := maps.Clone(g.seen)
	g.mu.Unlock()
	for pid, terminated := range seen {
		if p, ok := there[pid]; !ok || terminated && p.State != stateTerminated && p.State != stateZombie {
			g.fault("an event was about %s (ended: %v), which is there: %v, in state %q", pid, terminated, ok, p.State)
		}
	}
	for _, s := range g.shared {
		s.found(g, there[s.pid].Usage.LLMCalls)
		delete(there, s.pid)
	}
	sessions := g.checkProcesses(there)
	if held := status.Orchestration.ActiveSessions; held != sessions {
		g.fault("%d sessions are held, want %d", held, sessions)
	}
	for pid, p := range there {
		g.fault("nobody created %s: %+v", pid, p)
	}
	return nil
}

// checkProcesses takes the actors' processes out of there and returns how many sessions they have.
func (g *game) checkProcesses(there map[string]ipcclient.Process) (sessions int64) {
	look := func(w *world) {
		p, ok := there[w.pid]
		if delete(there, w.pid); ok != (w.state != "") || ok && (p.State != w.state || p.Priority != w.priority ||
			p.Usage.LLMCalls != w.llm || p.Usage.TokensIn != w.tokens) {
			g.fault("listed %+v, want %v", p, *w)
		}
		if w.session.generation > 0 {
			sessions++
		}
	}
	for i := range g.hist.past {
		look(&g.hist.past[i])
	}
	for _, h := range g.hist.open {
		look(&h.is)
	}
	for _, a := range g.actors {
		look(&a.is)
		for i := range a.past {
			look(&a.past[i].world)
		}
	}
	return sessions
}
