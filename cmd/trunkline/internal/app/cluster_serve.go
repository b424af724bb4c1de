package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"trunkline/engine/cluster/peer"
	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
)

// reasonNoOwner is shown by /readyz on a node that knows of no owner to forward its clients to.
const reasonNoOwner = "no_owner"

// leaveWithin bounds how long leaving the cluster may take.
const leaveWithin = 5 * time.Second

// section is the listeners of a part of the server whose clients the owner of the journal serves.
type section struct {
	name  string
	bound *[]bound
}

// withTLS is what the name of a section has behind it for clients that speak TLS to the owner.
const withTLS = "+tls"

func (s *server) sections() []section {
	all := []section{{"kernel", &s.kernel.bound}}
	if s.web != nil {
		all = append(all, section{"http", &s.web.bound})
	}
	if s.tools != nil {
		all = append(all, section{"toolhost", &s.tools.bound})
	}
	return all
}

// standBy has clients forwarded to the owner of the journal until what it returns is called.
func (s *server) standBy() (stop func()) {
	c := s.options.cluster
	if c == nil {
		return func() {}
	}
	var serving sync.WaitGroup
	for _, sec := range s.sections() {
		for _, b := range *sec.bound {
			service := sec.name
			if b.tls != nil {
				service += withTLS
			}
			serving.Go(func() { s.report(c.forwards.Serve(b.raw.(peer.Listener), service)) })
		}
	}
	s.exacta.serve(s.report)
	s.ready.When(reasonNoOwner, func() bool { return !c.owns.Load() && !c.follows() })
	s.ready.When(reasonReplicaDamaged, func() bool { return c.replica.Load().isDamaged() })
	s.ready.Release(reasonRecovering)
	s.options.notify(stateReady, stateStatus("following the journal of the cluster"))
	alive, end := context.WithCancel(context.Background())
	serving.Go(func() { s.feedWatchdog(alive) })
	return func() {
		end()
		c.forwards.Close()
		serving.Wait()
	}
}

// ownCluster opens the listeners for what other nodes forward to this one.
func (s *server) ownCluster() {
	c := s.options.cluster
	if c == nil {
		return
	}
	for _, sec := range s.sections() {
		more := []bound{{ln: c.peers.Service(sec.name), kind: kindForwarded}}
		for _, b := range *sec.bound {
			if b.tls != nil {
				more = append(more, bound{ln: tls.NewListener(c.peers.Service(sec.name+withTLS), b.tls), kind: kindTLS})
				break
			}
		}
		*sec.bound = append(*sec.bound, more...)
	}
}

// beat has the other nodes know where the owner is.
func (s *server) beat() {
	if c := s.options.cluster; c != nil {
		c.own(s.kernel.svc.Store())
	}
}

// unopenedBy returns the error of a server that could not join its cluster: ErrOwnershipLost where
// it had joined before, so that it tries until the others are there.
func (o *Options) unopenedBy(err error) error {
	if o.Again {
		return fmt.Errorf("%w: %w", ErrOwnershipLost, err)
	}
	return err
}

// unrecoveredBy returns the error of a server whose recovery has failed with err: ErrOwnershipLost
// where it may succeed in a new process, as another node has taken the log over, or what is next of
// it is in a snapshot by now.
func (s *server) unrecoveredBy(err error) error {
	if s.options.cluster != nil && s.options.RecoverTo == 0 &&
		(s.options.Again || errors.As(err, new(*unrecovered))) && !errors.Is(err, replicated.ErrBehind) && !errors.As(err, new(*journal.DamageError)) {
		return fmt.Errorf("%w: %w", ErrOwnershipLost, err)
	}
	if s.options.cluster != nil && errors.As(err, new(*journal.DamageError)) {
		return damagedCluster{err}
	}
	return err
}

// abandon ends a server that does not own its journal any more. Nothing is answered.
func (s *server) abandon() {
	s.options.cluster.owns.Store(false) // the lease ends by itself: parts may answer until they are closed
	s.ready.Hold(reasonDraining)
	s.console.shutdown()
	at, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.kernel.shutdown(at)
	_ = s.web.shutdown(at)
	_ = s.tools.shutdown(at)
	_ = s.exacta.shutdown()
	s.closeAdmin()
	s.leaveCluster()
}

// leaveCluster is the last act of a server.
func (s *server) leaveCluster() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	if err := s.options.cluster.shutdown(ctx); err != nil {
		s.log.Warn("cannot leave the cluster in order", "error", err)
	}
}
