// Package loadgen is a load generator for the protocols that trunkline serves, against any server
// that speaks them: the kernel IPC, toolhost lines, envelopes over HTTP, agent threads over lines,
// projects over lines.
//
// Run is an open loop: the schedule alone decides when a request is due, never the server: requests
// that could not go out because earlier ones are not answered wait, and their waiting is part of
// their latency. A closed loop would ask less of a slow server and so never see what its users see.
//
//	schedule ──► pacer ──► connection (writer) ──► server
//	 t(k)        wakes      encodes what is due,      │
//	                        one write per batch       │
//	 shard   ◄── connection (reader) ◄────────────────┘
//	 histograms  matches replies, frees places
//
// Request k is due at t(k), which is arithmetic, and belongs to connection k mod n. Nothing is
// queued: what waits is the distance between the request a connection sends next and the last one
// that is due.
//
// The package has no terminal and writes no file.
package loadgen

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// generator is one run.
type generator struct {
	plan     Plan
	table    *timetable // nil for Max
	mix      *mix
	messages []*message
	shards   []*shard
	conns    []*conn
	threads  []string  // that the run has created
	begin    time.Time // of warming up: the zero of all times
	warm     int64     // its length
	end      int64     // of measuring
	timeout  int64
	stride   int64  // between two requests of one connection
	secret   uint64 // of this run
	run      string // {{run}}: its first digits
	tickets  atomic.Int64
	stopped  atomic.Bool
	cut      atomic.Bool  // stopped before the last request had ended
	finished atomic.Int64 // when the last request had ended and no more were due; 0: not yet
}

// maxShards bounds the shards: each may have a histogram of 270 KiB per method, four times over.
const maxShards = 16

// newGenerator makes what a run needs but its connections. workers is how many goroutines run at a
// time.
func newGenerator(p Plan, secret uint64, workers int) (*generator, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	g := &generator{
		plan: p, mix: newMix(p.Mix, p.Seed), secret: secret, run: fmt.Sprintf("%08x", secret>>32), stride: int64(p.Conns),
		warm: int64(p.Warmup), end: int64(p.Warmup + p.Duration), timeout: int64(p.Timeout),
	}
	if p.Schedule.Kind != Max {
		g.table = newTimetable(&g.plan)
	}
	g.tickets.Store(never)
	if p.Count > 0 {
		g.tickets.Store(p.Count)
	}
	for i := range g.plan.Mix {
		m, err := compile(&g.plan.Target, &g.plan.Mix[i], g.run)
		if err != nil {
			return nil, err
		}
		g.messages = append(g.messages, m)
	}
	for range min(2*workers, maxShards, p.Conns) {
		s := &shard{}
		for i := range s.accounts {
			s.accounts[i] = newAccount(p.Mix)
		}
		g.shards = append(g.shards, s)
	}
	for i := range p.Conns {
		g.conns = append(g.conns, &conn{
			g: g, index: int64(i), next: int64(i), shard: g.shards[i%len(g.shards)], wake: make(chan struct{}, 1),
			places: newPlaces(p.Depth, g.messages[0].id == 0),
		})
	}
	return g, nil
}

// now is the time since the run began, in nanoseconds.
func (g *generator) now() int64 { return int64(time.Since(g.begin)) }

// due reports whether request k may be sent by now.
func (g *generator) due(k, now int64) bool {
	if g.table != nil {
		return k < g.table.last && g.table.at(k) <= now
	}
	return now < g.end && g.tickets.Load() > 0
}

// claim does so too, returns since when, and takes one off the count of a schedule that has no
// times.
func (g *generator) claim(k, now int64) (start int64, ok bool) {
	if g.table != nil {
		return g.table.at(k), g.due(k, now)
	}
	if now >= g.end || now >= g.warm && g.tickets.Add(-1) < 0 {
		return 0, false
	}
	return now, true
}

// connect makes one transport and greets the server, whose answer it returns.
func (g *generator) connect(ctx context.Context) (nc net.Conn, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if nc, err = g.plan.Target.dial(ctx); err != nil {
		return nil, nil, err
	}
	if answer, err = g.plan.Target.greet(ctx, nc); err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, answer, nil
}

// dialers is how many connections are made at a time.
const dialers = 64

// connectAll makes the first transport of every connection. One that cannot be made ends it: it
// would be another run than asked for.
func (g *generator) connectAll(ctx context.Context) ([]net.Conn, error) {
	ncs := make([]net.Conn, len(g.conns))
	err := each(ctx, dialers, int64(len(ncs)), func(ctx context.Context, i int64) (err error) {
		if ncs[i], _, err = g.connect(ctx); err != nil {
			return fmt.Errorf("connection %d of %d: %w", i+1, len(ncs), err)
		}
		return nil
	})
	if err == nil {
		return ncs, nil
	}
	for _, nc := range ncs {
		if nc != nil {
			nc.Close()
		}
	}
	return nil, fmt.Errorf("%w to %s: %w", ErrConnect, g.plan.Target.Addr, err)
}

// each calls f for the numbers below n, in at most workers goroutines. The first error ends it.
func each(ctx context.Context, workers, n int64, f func(ctx context.Context, i int64) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < n && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := f(ctx, i); err != nil {
					stop(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// finish notes when the run ended: as soon as the last request did if it was stopped or counted,
// else not before its time.
func (g *generator) finish() {
	now := g.now()
	counted := false
	switch {
	case g.plan.Count == 0:
	case g.table == nil:
		counted = g.tickets.Load() <= 0
	default:
		counted = g.table.last == g.table.first+g.plan.Count
	}
	g.cut.Store(g.stopped.Load())
	if !g.cut.Load() && !counted {
		now = max(now, g.end)
	}
	g.finished.Store(max(now, 1))
}

// Run connects, warms up, measures and waits for the last replies. observe is called once per
// interval, also while warming up, from one goroutine; it may be nil. When ctx ends the run does,
// too, without an error: what is in flight then counts nowhere. The error is about the plan, or
// wraps ErrConnect or ErrPrepare.
func Run(ctx context.Context, p Plan, observe func(Sample)) (*Result, error) {
	return run(ctx, p, observe, newAlarm, rand.Uint64())
}

func run(ctx context.Context, p Plan, observe func(Sample), newAlarm alarm, secret uint64) (*Result, error) {
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
	w, err := g.watch(ctx)
	if err != nil {
		for _, nc := range ncs {
			nc.Close()
		}
		return nil, err
	}
	r := g.measure(ctx, ncs, observe, newAlarm)
	r.Watched = w.stop()
	return r, nil
}

// measure is the run itself, on connections that are made.
func (g *generator) measure(ctx context.Context, ncs []net.Conn, observe func(Sample), newAlarm alarm) *Result {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { // the run ends at once
		g.stopped.Store(true)
		for _, c := range g.conns {
			c.mu.Lock()
			if c.nc != nil {
				c.nc.Close()
			}
			c.mu.Unlock()
		}
	})
	defer stop()
	var conns, helpers sync.WaitGroup
	g.begin = time.Now()
	for i, c := range g.conns {
		conns.Go(func() { // the writer: until all of its requests have ended or the run is stopped
			for nc := ncs[i]; nc != nil && c.serve(nc) && inner.Err() == nil; {
				nc = c.reconnect(inner)
			}
		})
	}
	if g.table != nil {
		helpers.Go(func() { g.pace(inner, newAlarm) })
	}
	helpers.Go(func() { g.sweep(inner) })
	done := make(chan struct{})
	helpers.Go(func() {
		defer close(done)
		conns.Wait()
		g.finish()
		pause(inner, time.Duration(g.finished.Load()-g.now()))
	})
	r := g.collect(done, observe)
	cancel()
	helpers.Wait()
	return r
}
