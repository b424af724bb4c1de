package app

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/cluster/peer"
	"trunkline/engine/cluster/upstream"
	"trunkline/engine/obs"
	"trunkline/handlers/ipc/route"
	"trunkline/handlers/threads/proxy"
)

// routing is the listeners of a node where the journal has several partitions: each request goes to
// the partitions that it is for. nil where there is one.
type routing struct {
	*route.Router
	kernel     *listener
	inside     *upstream.Local // clients in this process
	web, lines *listener       // of agent threads; nil where they are closed
}

// openRouting binds the addresses of the kernel endpoint and of agent threads.
func (s *server) openRouting(o Options) (_ *routing, err error) {
	r, cfg := &routing{inside: upstream.NewLocal()}, s.cfg.Load()
	defer func() {
		if err != nil {
			r.abort()
		}
	}()
	k := &cfg.Kernel
	r.kernel = &listener{label: "kernel ipc", section: "kernel", protocol: protocolIPC, access: &k.Access,
		most:  func(c *config.Config) int { return c.Kernel.MaxConnections },
		peers: []bound{{ln: r.inside, kind: kindLocal}}}
	if err = r.kernel.bind(o, false); err != nil {
		return nil, err
	}
	owners := o.cluster.Upstream(kernelService)
	if o.dial != nil {
		owners.Dial = o.dial
	}
	r.Router, err = route.New(route.Config{
		Config: owners, MaxFrameBytes: k.MaxFrameBytes, MaxConnections: k.MaxConnections,
		ReadTimeout: k.ReadTimeout, WriteTimeout: k.WriteTimeout, ShutdownGrace: k.ShutdownGrace, Refuse: s.first().kernel.svc.AppendRefusal, Logger: s.log,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot route clients: %w", err)
	}
	r.kernel.handTo(r.Router)
	if s.threads == nil {
		return r, nil
	}
	if r.web, r.lines, err = threadListeners(&cfg.Threads, o, false); err != nil {
		return nil, err
	}
	rc := proxy.Config{
		Config:         o.cluster.Upstream(threadsService),
		MaxConnections: cfg.Threads.MaxConnections, Files: o.files, Logger: s.log,
		IDs: func(dst []byte) []byte { return s.first().kernel.rt.Threads.AppendRequestID(dst) },
	}
	r.web.handTo(proxy.NewWeb(rc))
	rc.Config = o.cluster.Upstream(linesService)
	r.lines.handTo(proxy.NewLines(rc))
	return r, nil
}

// listeners are those that there are.
func (r *routing) listeners() []*listener {
	if r == nil {
		return nil
	}
	return []*listener{r.kernel, r.web, r.lines}
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

// routedThreadMetrics are those of a node where there are several partitions, and agent threads.
var routedThreadMetrics = []metric[routing]{
	{
		Family: obs.Family{
			Name:   "trunkline_threads_router_clients",
			Help:   "Clients of agent threads of this node, by surface.",
			Kind:   obs.Gauge,
			Labels: []string{"surface"},
		},
		series: func(r *routing, put putSeries) {
			web, _, _ := r.web.totals()
			lines, _, _ := r.lines.totals()
			put(float64(web), "http")
			put(float64(lines), "lines")
		}},
}

// serve starts answering.
func (r *routing) serve(report func(error)) {
	for _, l := range r.listeners() {
		l.serve(report)
	}
}

// shutdown answers what was asked within grace. What is left then is closed.
func (r *routing) shutdown(grace time.Duration) {
	if r == nil {
		return
	}
	_ = together(
		func() error { return within(grace, r.kernel.shutdown) },
		func() error { return within(min(grace, threadsGrace), r.web.shutdown) },
		func() error { return within(min(grace, threadsGrace), r.lines.shutdown) },
	)
}

// abort ends a router that never served.
func (r *routing) abort() {
	for _, l := range r.listeners() {
		l.abort()
	}
}

// kept are the listeners of a node by their setting. They stay open while one replica takes the
// place of another; clients that connect meanwhile wait in the backlog.
type kept map[string][]bound

// lend returns the listeners of a section for one replica: they are opened for the first one.
func (k kept) lend(a *config.Access, o Options) ([]bound, error) {
	open := k[a.AddrKey()]
	if open == nil {
		var err error
		if open, err = openAll(a, o); err != nil {
			return nil, err
		}
		k[a.AddrKey()] = open
	}
	lent := make([]bound, len(open))
	for i, b := range open {
		l := lend(b.raw.(peer.Listener))
		b.ln, b.raw = l, l
		if b.tls != nil {
			b.ln = tls.NewListener(l, b.tls)
		}
		lent[i] = b
	}
	return lent, nil
}

// close closes all of them.
func (k kept) close() {
	for _, open := range k {
		for _, b := range open {
			_ = b.raw.Close()
		}
	}
}

// lent is a listener of the node for the time of one replica: Close ends Accept, and leaves the
// listener of the node open.
type lent struct {
	peer.Listener
	ended chan struct{}
	end   func()
}

// lend returns a listener whose former borrower has closed it.
func lend(ln peer.Listener) *lent {
	_ = ln.SetDeadline(time.Time{})
	l := &lent{Listener: ln, ended: make(chan struct{})}
	l.end = sync.OnceFunc(func() {
		close(l.ended)
		_ = ln.SetDeadline(time.Unix(1, 0))
	})
	return l
}

// Accept implements net.Listener.
func (l *lent) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	select {
	case <-l.ended:
		if err == nil {
			_ = nc.Close()
		}
		return nil, net.ErrClosed
	default:
		return nc, err
	}
}

// Close implements net.Listener.
func (l *lent) Close() error {
	l.end()
	return nil
}
