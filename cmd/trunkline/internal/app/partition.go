package app

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/cluster/peer"
	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
)

// partition is the place of one replica after the other. A server alone has one partition, and one
// replica.
type partition struct {
	s       *server
	number  int
	current atomic.Pointer[replica]
	ended   chan struct{} // closed when run returns
	err     error         // of the last replica, once it has ended
}

// damagedCluster is damage that no other node could help with.
type damagedCluster struct{ error }

// Unwrap returns what was found.
func (d damagedCluster) Unwrap() error { return d.error }

// againPause is left before a journal is followed again, which may fail for the same reason.
const againPause = time.Second

// handOverGrace is how long a replica may take to answer what was asked when it is handed over, and
// its tools and agents to end.
const handOverGrace = 2 * time.Second

// run has one replica after the other follow the journal and serve it, until ctx ends.
func (p *partition) run(ctx context.Context) {
	defer close(p.ended)
	for p.live(ctx, p.current.Load()) {
		next, err := p.s.newReplica(p.number, true)
		if err != nil {
			p.s.report(err)
			return
		}
		p.current.Store(next)
	}
}

// live has a replica follow the journal and then serve it. It returns when the replica has ended,
// and reports whether another one takes its place.
func (p *partition) live(ctx context.Context, c *replica) bool {
	s := p.s
	stop := s.standBy(c)
	err := c.kernel.recover(ctx, nil)
	stop()
	switch {
	case ctx.Err() != nil:
		c.abort()
		return false
	case err != nil:
		c.abort()
		if !followsAnew(err, c.again || s.options.RecoverTo == 0, c.again) {
			if errors.As(err, new(*journal.DamageError)) && s.options.cluster != nil {
				err = damagedCluster{err}
			}
			s.report(err)
			return false
		}
		s.log.Warn("restarting the follower", "partition", p.number, "error", err)
		return connection.Pause(ctx, againPause)
	}
	s.recovered()
	c.ownListeners()
	c.serve(s.report)
	c.lease.Own(c.kernel.rt.Store)
	select {
	case <-ctx.Done():
		if s.options.cluster.Dead() {
			c.cut()
			return false
		}
		p.err = c.shutdown(s.grace(), toolGrace)
	case err := <-c.lease.Lost():
		s.log.Error("another node may own the journal: nothing more is answered", "partition", p.number, "error", err)
		c.cut()
	case h := <-c.lease.Orders():
		c.lease.HandTo(h.To)
		err := c.shutdown(handOverGrace, handOverGrace)
		s.log.Info("the journal is handed over", "partition", p.number, "to", h.To, "error", err)
		h.Done()
	}
	return ctx.Err() == nil
}

// followsAnew reports whether another replica may succeed where one has failed with err: another
// node has taken the journal over, or what is next of it is in a snapshot by now. keeps: no records
// are to be given up. again: a replica was there before, and waits for the others.
func followsAnew(err error, keeps, again bool) bool {
	return keeps && (again || errors.As(err, new(*unrecovered)) || errors.Is(err, replicated.ErrRebuild)) && !errors.Is(err, replicated.ErrBehind) && !errors.As(err, new(*journal.DamageError))
}

// standBy has clients of a replica forwarded to the owner of its partition until what it returns is
// called. Those that wait for an owner then are forwarded to this node, should it be the next one.
func (s *server) standBy(c *replica) (stop func()) {
	f := c.lease.NewForwarder()
	var serving sync.WaitGroup
	for _, l := range c.listeners() {
		for _, b := range l.bound {
			service := l.service
			if b.tls != nil {
				service += withTLS
			}
			serving.Go(func() { s.report(f.Serve(b.raw.(peer.Listener), service)) })
		}
	}
	return func() {
		f.Yield()
		serving.Wait()
	}
}
