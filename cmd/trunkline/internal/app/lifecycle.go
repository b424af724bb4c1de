package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// full reports whether a disk has no room for changes.
func (s *server) full() bool {
	return slices.ContainsFunc(s.replicas(), func(c *replica) bool { return c.kernel.store.full() })
}

// live returns nil while every event loop runs, else why one ended.
func (s *server) live() error {
	for _, c := range s.replicas() {
		if err := c.kernel.live(); err != nil {
			return err
		}
	}
	return nil
}

// grace is how long what was asked may take when the server stops.
func (s *server) grace() time.Duration { return s.cfg.Load().Kernel.ShutdownGrace + forceAfter }

// openReplicas makes the first replica of each partition.
func (s *server) openReplicas() error {
	c := s.options.cluster
	if s.options.RecoverTo != 0 && c.Several() {
		return fmt.Errorf(
			"cannot recover to index %d: the journal has %d partitions, each with indexes of its own",
			s.options.RecoverTo,
			c.Partitions(),
		)
	}
	for n := range c.Partitions() {
		c, err := s.newReplica(n, false)
		if err != nil {
			return err
		}
		p := &partition{s: s, number: n, ended: make(chan struct{})}
		p.current.Store(c)
		s.parts = append(s.parts, p)
	}
	return nil
}

// endReplicas ends all replicas in order.
func (s *server) endReplicas() (err error) {
	if s.options.cluster == nil {
		return s.first().shutdown(s.grace(), toolGrace)
	}
	if !s.options.cluster.Dead() {
		s.router.shutdown(s.grace()) // what its clients have asked is answered
	}
	s.end()
	s.router.shutdown(0)
	for _, p := range s.parts {
		<-p.ended
		err = errors.Join(err, p.err)
	}
	return err
}

// abort ends a server that never served.
func (s *server) abort() {
	s.router.abort()
	for _, c := range s.replicas() {
		c.abort()
	}
	s.threads.close()
	s.web.abort()
	s.exacta.abort()
	s.closeAdmin()
	s.leaveCluster()
}

// leaveWithin bounds how long leaving the cluster may take.
const leaveWithin = 5 * time.Second

// leaveCluster is the last act of a server.
func (s *server) leaveCluster() {
	s.options.kept.close()
	if err := within(leaveWithin, s.options.cluster.Shutdown); err != nil {
		s.log.Warn("cannot leave the cluster in order", "error", err)
	}
}

// closeAdmin lets the last answers finish. A scraper that holds its connection past the grace is
// cut; the server's work was done before.
func (s *server) closeAdmin() {
	s.console.shutdown()
	if s.admin != nil {
		_ = within(adminGrace, s.admin.Shutdown)
	}
}

// within calls f with a context that ends after a while.
func within(d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return f(ctx)
}

// together runs all of them at the same time, and joins their errors.
func together(all ...func() error) error {
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, f := range all {
		running.Go(func() { errs[i] = f() })
	}
	running.Wait()
	return errors.Join(errs...)
}

// drain ends the kernel endpoint and the others side by side, then the admin listener.
func (s *server) drain() error {
	s.ready.Hold(reasonDraining)
	s.console.shutdown()
	s.ready.Release(reasonLameDuck)
	grace := s.cfg.Load().Kernel.ShutdownGrace
	s.log.Info("draining", "grace_secs", int64(grace/time.Second))
	err := together(s.endReplicas, s.exacta.shutdown, func() error { return unlessLate(within(grace, s.web.shutdown)) })
	s.threads.close()
	s.closeAdmin()
	s.leaveCluster()
	if err != nil {
		return fmt.Errorf("cannot drain cleanly: %w", err)
	}
	s.log.Info("stopped")
	return nil
}
