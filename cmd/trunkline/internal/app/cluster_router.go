package app

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/handlers/ipc/route"
)

// routing is the kernel endpoint of a node where the journal has several partitions: the router
// brings each request to the partitions that it is for. nil where there is one.
type routing struct {
	*route.Router
	bound  []bound
	inside *pipes // clients in this process
	tasks  sync.WaitGroup
}

// openRouting binds the listeners of kernel.listen_addr.
func (s *server) openRouting(o Options) (*routing, error) {
	k := &s.cfg.Load().Kernel
	bound, err := listenAll(&k.Access, o)
	if err != nil {
		return nil, err
	}
	r, err := route.New(route.Config{
		Partitions: len(s.parts), Dial: s.dialer(kernelService), Hold: o.cluster.term, MaxFrameBytes: k.MaxFrameBytes, MaxConnections: k.MaxConnections,
		ReadTimeout: k.ReadTimeout, WriteTimeout: k.WriteTimeout, ShutdownGrace: k.ShutdownGrace, Refuse: s.first().kernel.svc.AppendRefusal, Logger: s.log,
	})
	if err != nil {
		closeAll(bound)
		return nil, fmt.Errorf("cannot route clients: %w", err)
	}
	return &routing{Router: r, bound: bound, inside: newPipes()}, nil
}

// routerMetrics are those of a node where there are several partitions.
var routerMetrics = []metric[route.Stats]{
	gauge("trunkline_router_clients", "Clients of the kernel endpoint of this node.",
		func(s *route.Stats) float64 { return float64(s.Clients) }),
	gauge("trunkline_router_legs", "Connections of clients of this node to the owners of partitions.",
		func(s *route.Stats) float64 { return float64(s.Legs) }),
	counter("trunkline_router_broken_total", "Clients that have lost their connection with the owner of a partition.",
		func(s *route.Stats) float64 { return float64(s.Broken) }),
}

// kernelBound returns the listeners of the kernel endpoint.
func (s *server) kernelBound() []bound {
	if s.router != nil {
		return s.router.bound
	}
	return s.first().kernel.bound
}

// serve starts answering on every listener.
func (r *routing) serve(report func(error)) {
	if r == nil {
		return
	}
	for _, b := range r.bound {
		r.tasks.Go(func() { report(r.Serve(b.ln)) })
	}
	r.tasks.Go(func() { report(r.Serve(r.inside)) })
}

// shutdown answers what was asked within grace.
func (r *routing) shutdown(grace time.Duration) {
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = r.Shutdown(ctx) // what is left then is closed
	r.tasks.Wait()
}

// limit changes how many clients there may be.
func (r *routing) limit(k *config.Kernel) {
	if r != nil {
		r.SetMaxConnections(k.MaxConnections)
	}
}

// abort ends a router that never served.
func (r *routing) abort() {
	if r == nil {
		return
	}
	closeAll(r.bound)
	r.shutdown(forceAfter)
}

// dialer returns what connects to the owner of a partition in the name of a client
// (route.Config.Dial).
func (s *server) dialer(service string) func(ctx context.Context, partition int, client string) (net.Conn, context.Context, error) {
	return func(ctx context.Context, partition int, client string) (net.Conn, context.Context, error) {
		for {
			l := s.parts[partition].current.Load().lease
			conn, owns, err := l.dial(ctx, service, client)
			if err == nil || ctx.Err() != nil || l.ended.Err() == nil {
				return conn, owns, err
			}
			if !pause(ctx, ownerChecks) { // another replica takes the place of this one
				return nil, nil, ctx.Err()
			}
		}
	}
}

// dial connects to a service of the owner of the partition, which may be this node.
func (l *lease) dial(ctx context.Context, service, client string) (net.Conn, context.Context, error) {
	if l.owns.Load() {
		if conn, err := l.local[service].dial(ctx, client); err == nil {
			return conn, l.ended, nil
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ended, cancel)()
	return l.node.reach(ctx, l.view, service, l.partition, client)
}
