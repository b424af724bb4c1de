package main

import (
	"bytes"
	"context"
	"math"
	"sync"

	"trunkline/codec/wire"
	"trunkline/handlers/ipc/client"
)

// check compares the server with what clients know, and has the actors go on from what is there.
func (g *game) check(ctx context.Context) error {
	lines := make([]*client.Conn, conns)
	for i := range lines {
		c, err := client.Dial(ctx, g.addr)
		if err != nil {
			return err
		}
		defer c.Close()
		lines[i] = c
	}
	errs := make(chan error, len(g.actors))
	var wg sync.WaitGroup
	for i, a := range g.actors {
		again := a.maybe != nil && a.pending.again && g.rng.IntN(2) == 0
		if a.maybe != nil {
			g.unsure++
		}
		if again {
			g.retried++
		}
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
	if len(g.faults) > 0 {
		return nil // what follows would only repeat it
	}
	if err := g.checkTable(ctx, lines[0]); err != nil {
		return err
	}
	if err := g.checkQueue(ctx, lines[0]); err != nil {
		return err
	}
	g.forget()
	return nil
}

// check compares the actor's things. With again the request without a reply is sent once more before anything is read: then it
// must have had its effect once.
func (a *actor) check(ctx context.Context, c *client.Conn, again bool) error {
	g := a.g
	if again {
		if err := a.pending.send(ctx, c); err != nil && (a.pending.already == wire.OK || !refused(err, a.pending.already)) {
			g.fault("%s of %s, sent again: %v", a.pending.name, a.is.pid, err)
		}
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
		g.fault("found     %v\nconfirmed %v\nor, after %s without a reply (sent again: %v),\n          %v", found, a.is, a.pending.name, again, *a.maybe)
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
		a.do(ctx, c, updateOp(&a.is, a.envelope, a.serial)) // a lost envelope is a refusal nobody allows
	}
	return a.checkPast(ctx, c)
}

// explain says which of the worlds that may be there was found. One that needs nobody else to have started the process comes first.
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
func (a *actor) checkPast(ctx context.Context, c *client.Conn) error {
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
func (g *game) checkTable(ctx context.Context, c *client.Conn) error {
	there := make(map[string]client.Process)
	for in := (client.ListProcesses{Limit: 1000}); ; {
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
	status, err := c.GetSystemStatus(ctx)
	if err != nil {
		return err
	}
	g.mu.Lock()
	for pid, terminated := range g.told {
		if p, ok := there[pid]; !ok || terminated && p.State != stateTerminated && p.State != stateZombie {
			g.faults = append(g.faults, "an event told of "+pid+", which is "+p.State)
		}
	}
	g.mu.Unlock()
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
func (g *game) checkProcesses(there map[string]client.Process) (sessions int64) {
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
	for _, a := range g.actors {
		look(&a.is)
		for i := range a.past {
			look(&a.past[i].world)
		}
	}
	return sessions
}
