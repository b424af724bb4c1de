package crash

import (
	"context"
	"fmt"

	"trunkline/bench/internal/load"
	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// defaultCalls is the default limit of model calls (kernel-ipc §4.0).
const defaultCalls = 100

// playMemory plays rounds with a server that keeps nothing: until it is killed its histories have
// to hold, and the one after it has to be empty, leave the directory alone and serve.
func (g *game) playMemory(ctx context.Context, rounds int) ([]string, error) {
	defer g.leave()
	if err := g.birth(ctx); err != nil {
		return nil, err
	}
	for i := range rounds {
		how := []ending{killed, killedIdle}[i%2]
		if faults := g.played(i, how, g.roundOfMemory(ctx, how)); len(faults) > 0 {
			return faults, nil
		}
	}
	return nil, nil
}

func (g *game) roundOfMemory(ctx context.Context, how ending) error {
	ctx, cancel := context.WithTimeout(ctx, 2*roundTime)
	defer cancel()
	if err := g.load(ctx, how); err != nil {
		return fmt.Errorf("cannot load the server: %w", err)
	}
	g.hist.evaluate()
	if how.idle() {
		if err := g.end(how); err != nil {
			return err
		}
	}
	if err := g.start(); err != nil {
		return fmt.Errorf("no restart: %w", err)
	}
	g.count.add(restarts, 1)
	if err := g.checkEmpty(ctx); err != nil {
		return fmt.Errorf("cannot check the server: %w", err)
	}
	return g.people(ctx)
}

// checkEmpty looks for anything that is left of the server before.
func (g *game) checkEmpty(ctx context.Context) error {
	c, err := ipcclient.Dial(ctx, g.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	status, err := c.GetSystemStatus(ctx, false)
	if err != nil {
		return err
	}
	counts, err := c.GetProcessCounts(ctx)
	if err != nil {
		return err
	}
	defaults, err := c.GetQuotaDefaults(ctx)
	if err != nil {
		return err
	}
	if status.Processes.Total != 0 || status.Orchestration.ActiveSessions != 0 || counts.Total != 0 || counts.QueueDepth != 0 {
		g.fault("a server without a store has %+v, %+v after a restart", status, counts)
	}
	if defaults.MaxLLMCalls != defaultCalls {
		g.fault("a server without a store has a default quota of %d model calls after a restart", defaults.MaxLLMCalls)
	}
	if n := load.DirectoryBytes(g.dir); n != 0 {
		g.fault("a server without a store wrote %d bytes", n)
	}
	if p, err := c.GetNextRunnable(ctx, false); !refused(err, wire.NotFound) {
		g.fault("a server without a store hands out %+v, %v after a restart", p, err)
	}
	return g.checkForgotten(ctx, c)
}

// checkForgotten asks for everything that was there.
func (g *game) checkForgotten(ctx context.Context, c *ipcclient.Conn) error {
	var pids []string
	for _, a := range g.actors {
		pids = append(pids, a.is.pid)
	}
	for _, h := range g.hist.open {
		pids = append(pids, h.pid)
	}
	for _, pid := range pids {
		found, _, err := observeWorld(ctx, c, pid)
		if err != nil {
			return err
		}
		if found != (world{pid: pid}) {
			g.fault("a server without a store has %v after a restart", found)
		}
	}
	return nil
}
