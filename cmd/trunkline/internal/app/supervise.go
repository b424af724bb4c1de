package app

import (
	"context"
	"strings"
	"sync"
	"time"

	"trunkline/cmd/trunkline/internal/systemd"
)

// notify sends states to the supervisor of the process, if it has one.
func (o *Options) notify(states ...string) {
	if o.Notify != nil {
		o.Notify(strings.Join(states, "\n"))
	}
}

// watchdogShare is the part of the watchdog's interval in which the loops are asked, and have to
// answer: two of three signs of life may be missed.
const watchdogShare = 3

// feedWatchdog gives the supervisor a sign of life while all event loops come round, until ctx
// ends. It does nothing where the supervisor wants none.
func (s *server) feedWatchdog(ctx context.Context) {
	if s.options.Watchdog <= 0 {
		return
	}
	every := s.options.Watchdog / watchdogShare
	tick := time.NewTicker(max(every, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		within, cancel := context.WithTimeout(ctx, every)
		err := s.probe(within)
		cancel()
		switch {
		case err == nil:
			s.options.notify(systemd.Alive)
		case ctx.Err() == nil:
			s.log.Error("no sign of life for the watchdog", "error", err)
		}
	}
}

// probe returns nil once all event loops of the server have come round.
func (s *server) probe(ctx context.Context) error {
	for _, l := range s.clientLoops() {
		if err := l.Probe(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lameDuck turns readiness off and goes on serving for kernel.lame_duck_secs, so that clients and
// load balancers have gone elsewhere when the drain begins, and until no command for an agent runs,
// at most for threads.agent_grace_secs. The error is that of a part that failed meanwhile, which
// ends it.
func (s *server) lameDuck() error {
	c := s.cfg.Load()
	lame, agents := c.Kernel.LameDuck, c.Threads.AgentGrace
	s.options.notify(systemd.Stopping, systemd.Extend(max(lame, agents)+c.Kernel.ShutdownGrace+forceAfter+toolGrace),
		systemd.Status("stopping"))
	s.ready.Hold(reasonLameDuck)
	if lame > 0 {
		s.log.Info("not ready any more, draining later", "lame_duck_secs", int64(lame/time.Second))
	}
	ctx, cancel := context.WithTimeout(context.Background(), agents)
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		timer := time.NewTimer(lame)
		defer timer.Stop()
		var commands sync.WaitGroup
		for _, r := range s.replicas() {
			if t := r.threads; t != nil {
				commands.Go(func() { t.wakers.drain(ctx) })
			}
		}
		commands.Wait()
		<-timer.C
	}()
	select {
	case <-over:
		return nil
	case err := <-s.failed:
		s.log.Error("stopping", "error", err)
		return err
	}
}
