package loadgen

import (
	"context"
	"net"
	"runtime"
	"sync"
	"time"
)

// Run connects, warms up, measures and waits for the last replies. observe is called once per
// interval, also while warming up, from one goroutine; it may be nil. When ctx ends the run does,
// too, without an error: what is in flight then counts nowhere. The error is about the plan, or a
// *ConnectError, or a *PrepareError.
func Run(ctx context.Context, p Plan, observe func(Sample)) (*Result, error) {
	return run(ctx, p, observe, newAlarm, newSecret())
}

func run(ctx context.Context, p Plan, observe func(Sample), newAlarm func() alarm, secret uint64) (*Result, error) {
	g, err := newGenerator(p, secret, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	if err := g.prepare(ctx); err != nil {
		return nil, err
	}
	defer g.cleanUp(ctx, nil)
	ncs, err := g.connectAll(ctx)
	if err != nil {
		return nil, err
	}
	return g.measure(ctx, ncs, observe, newAlarm), nil
}

// measure is the run itself, on connections that are made.
func (g *generator) measure(ctx context.Context, ncs []net.Conn, observe func(Sample), newAlarm func() alarm) *Result {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, g.halt)
	defer stop()
	var conns, helpers sync.WaitGroup
	g.begin = time.Now()
	for i, c := range g.conns {
		conns.Go(func() { c.run(inner, ncs[i]) })
	}
	if g.table != nil {
		helpers.Go(func() { g.pace(inner, newAlarm()) })
	}
	helpers.Go(func() { g.sweep(inner) })
	done := make(chan struct{})
	helpers.Go(func() {
		defer close(done)
		conns.Wait()
		g.finish()
		g.conns[0].pause(inner, time.Duration(g.finished.Load()-g.now()))
	})
	r := g.collect(done, observe)
	cancel()
	helpers.Wait()
	return r
}
