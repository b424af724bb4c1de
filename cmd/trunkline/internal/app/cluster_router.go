package app

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// routing is the kernel endpoint of a node where the journal has several partitions: the router
// brings each request to the partitions that it is for. nil where there is one.
type routing struct {
	router
	bound  []bound
	inside *pipes // clients in this process
	tasks  sync.WaitGroup
}

// router is what brings requests to partitions.
type router interface {
	Serve(ln net.Listener) error
	Shutdown(ctx context.Context) error
}

// openRouting binds the listeners of kernel.listen_addr.
func (s *server) openRouting(Options) (*routing, error) {
	return nil, fmt.Errorf("cannot route clients to %d partitions", len(s.parts))
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

// abort ends a router that never served.
func (r *routing) abort() {
	if r == nil {
		return
	}
	closeAll(r.bound)
	r.shutdown(forceAfter)
}
