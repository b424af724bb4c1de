package app

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/cluster/control"
	"trunkline/engine/threadstore"
	"trunkline/handlers/ipc"
)

// replica is one partition on this server: its service with the journal of that, and what serves
// its clients. A node of a cluster that has lost the journal closes the replica, and another one
// takes its place.
type replica struct {
	partition int
	lease     *control.Lease // nil where there are no other nodes
	again     bool           // there was a replica before
	kernel    *endpoint
	tools     *toolEndpoint   // nil when toolhost.listen_addr is empty, and beyond partition 0
	threads   *threadEndpoint // nil when they are closed
}

// newReplica returns a replica whose store is yet to be read. again: it takes the place of another
// one.
func (s *server) newReplica(partition int, again bool) (_ *replica, err error) {
	cfg, o := s.cfg.Load(), s.options
	c := &replica{partition: partition, again: again || o.Again}
	c.lease = o.cluster.NewLease(partition, c.again)
	if o.lease = c.lease; o.lease != nil {
		o.Logger = o.Logger.With("partition", partition)
	}
	if again {
		o.RecoverTo = 0 // an operator gives up records for one start
	}
	defer func() {
		if err != nil {
			c.abort()
		}
	}()
	if c.kernel, err = openEndpoint(cfg, o); err != nil {
		return nil, err
	}
	if partition == 0 {
		if c.tools, err = openTools(&cfg.Toolhost, c.kernel.rt, o); err != nil {
			return nil, err
		}
	}
	c.threads, err = openThreads(cfg, c.kernel.rt, s.threads, o)
	return c, err
}

// serve starts answering.
func (c *replica) serve(report func(error)) {
	c.kernel.serve(report)
	if c.tools != nil {
		c.tools.serve(report)
	}
	c.threads.serve(report)
}

// stats returns what the service counts, nil before its store was read.
func (c *replica) stats() *ipc.Stats {
	if !c.kernel.whole.Load() {
		return nil
	}
	st := c.kernel.svc.Stats()
	return &st
}

// limit applies the limits of cfg.
func (c *replica) limit(cfg *config.Config) {
	k := &cfg.Kernel
	c.kernel.svc.SetLimits(ipc.Limits{
		MaxConnections: k.MaxConnections, DefaultQueryTimeout: k.DefaultQueryTimeout, MaxQueryTimeout: k.MaxQueryTimeout,
		MaxStreamsPerConnection: k.MaxStreamsPerConnection, MaxEventTypes: k.MaxEventTypes,
	})
	c.kernel.rt.Threads.SetPostRates(threadstore.PostRates{
		PerAgent: cfg.Threads.RatePostPerAgentPerMinute, PerThread: cfg.Threads.RatePostPerThreadPerMinute,
	})
	if c.threads != nil {
		c.threads.mcp.SetCallsPerMinute(cfg.Threads.RateMCPCallsPerAgentPerMinute)
	}
}

// listeners are those of a replica, which other nodes have too. Where a router has the addresses
// they have none.
func (c *replica) listeners() []*listener {
	all := []*listener{c.kernel.listener}
	if c.tools != nil {
		all = append(all, c.tools.listener)
	}
	if c.threads != nil {
		all = append(all, c.threads.web, c.threads.lines)
	}
	return all
}

// kernelService is the kernel endpoint as other nodes name it.
const kernelService = "kernel"

// withTLS is what the name of a section has behind it for clients that speak TLS to the owner.
const withTLS = "+tls"

// ownListeners opens the listeners for what nodes forward to this replica, and for what comes from
// the routers of this node.
func (c *replica) ownListeners() {
	node := c.kernel.options.cluster
	for _, l := range c.listeners() {
		l.peers = []bound{{ln: node.Service(l.service, c.partition), kind: kindForwarded}}
		if local := c.lease.Local(l.service); local != nil {
			l.peers = append(l.peers, bound{ln: local, kind: kindLocal})
		}
		for _, b := range l.bound {
			if b.tls != nil {
				l.peers = append(
					l.peers,
					bound{ln: tls.NewListener(node.Service(l.service+withTLS, c.partition), b.tls), kind: kindTLS},
				)
				break
			}
		}
	}
}

// shutdown answers what was asked within grace, and waits as long as others for tools and agents
// that run; then it gives the journal up in order.
func (c *replica) shutdown(grace, others time.Duration) error {
	ended := make(chan error, 1)
	go func() {
		ended <- together(
			func() error { return within(min(threadsGrace, others), c.threads.shutdown) },
			func() error { return within(min(toolGrace, others), c.tools.shutdown) },
		)
	}()
	var othersErr error
	c.kernel.beforeStore = func() { othersErr = <-ended } // their outcomes are in it
	err := within(grace, c.kernel.shutdown)
	c.lease.Close()
	return errors.Join(err, othersErr)
}

// cut ends a replica that does not own its journal any more. Nothing is answered.
func (c *replica) cut() {
	c.lease.Revoke() // the lease ends by itself: parts may answer until they are closed
	at, cancel := context.WithCancel(context.Background())
	cancel()
	var threads sync.WaitGroup
	threads.Go(func() { _ = c.threads.shutdown(at) })
	c.kernel.beforeStore = threads.Wait // no command may run for agents that another node wakes
	_ = c.kernel.shutdown(at)
	_ = c.tools.shutdown(at)
	c.lease.Close()
}

// abort ends a replica that never served.
func (c *replica) abort() {
	c.kernel.abort()
	c.tools.abort()
	c.threads.abort()
	c.lease.Close()
}
