// Package ipctest starts a whole kernel endpoint on a loopback socket inside a test: the event
// loops, the service, the limits a test wants small, and a clock a test may turn by hand.
package ipctest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"trunkline/codec/frame"
	"trunkline/engine/cluster/upstream"
	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/reactor"
	"trunkline/engine/runtime"
	"trunkline/engine/store"
	"trunkline/engine/stream"
	"trunkline/handlers/ipc"
	"trunkline/handlers/ipc/route"
)

// stateConfig is runtime.Config under a name of its own, so that Config can embed it.
type stateConfig = runtime.Config

// Config are the settings tests change. Zero fields take the defaults of kernel-ipc §6 and envelope
// §6.
type Config struct {
	ipc.Config
	stateConfig
	WriteTimeout  time.Duration
	ShutdownGrace time.Duration
	Loops         int
	// ListenAddr is as kernel.listen_addr; empty: a free port of 127.0.0.1.
	ListenAddr string
	// Now is the clock of everything but socket timers and query deadlines; nil is the real one.
	Now func() (mono, wall int64)
	// Store keeps the state, in mode always; Drain closes it. nil: nothing is kept.
	Store journal.Store
}

// Option changes a Config.
type Option func(*Config)

// With returns f as an option.
func With(f func(*Config)) Option { return f }

// Server is a running endpoint.
type Server struct {
	// Addr is where it listens: host:port, or unix:///path.
	Addr string
	// Service is that of partition 0, and Services are those of all.
	Service  *ipc.Service
	Services []*ipc.Service
	Reactor  *reactor.Server // nil with a router
	Router   *route.Router   // nil without

	hosts []*stream.Host // of the services behind a router
	t     testing.TB
	log   *journal.Log // nil without Config.Store
	once  sync.Once
	done  sync.WaitGroup
}

// Start runs an endpoint until the test ends.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	cfg := Config{WriteTimeout: 10 * time.Second, ShutdownGrace: 5 * time.Second, Loops: 2, ListenAddr: "127.0.0.1:0"}
	cfg.Version, cfg.ReadTimeout, cfg.MaxConnections, cfg.MaxFrameBytes = "test", 30*time.Second, 1000, 5<<20
	for _, o := range opts {
		o(&cfg)
	}
	s := &Server{t: t}
	for i := range max(cfg.Partitions, 1) {
		c := cfg.state()
		c.Partition = i
		rt := runtime.New(c)
		if err := rt.OpenRows("", nil); err != nil {
			t.Fatal(err)
		}
		s.Services = append(s.Services, ipc.NewService(cfg.Config, rt))
	}
	s.Service = s.Services[0]
	if cfg.Store != nil {
		s.recover(cfg.Store)
	}
	ln, err := reactor.Listen(cfg.ListenAddr)
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr = ln.Addr().String(); ln.Addr().Network() == "unix" {
		s.Addr = cfg.ListenAddr
	}
	t.Cleanup(s.Drain)
	for _, svc := range s.Services {
		svc.Runtime().Start()
	}
	if cfg.Partitions > 1 {
		s.route(&cfg, ln)
		return s
	}
	if s.Reactor, err = reactor.New(reactorConfig(&cfg, s.Service)); err != nil {
		t.Fatal(err)
	}
	s.done.Go(func() { _ = s.Reactor.Serve(ln) })
	return s
}

// route serves ln by a router, whose legs are pipes to the services.
func (s *Server) route(cfg *Config, ln net.Listener) {
	s.t.Helper()
	for _, svc := range s.Services {
		c := reactorConfig(cfg, svc).Config
		c.MaxConnections = 2*cfg.MaxConnections + 16 // a leg may end after its client's slot is free again
		s.hosts = append(s.hosts, stream.NewHost(c))
	}
	r, err := route.New(route.Config{
		MaxFrameBytes: cfg.MaxFrameBytes, MaxConnections: cfg.MaxConnections, Logger: cfg.Logger,
		ReadTimeout: cfg.ReadTimeout, WriteTimeout: cfg.WriteTimeout, ShutdownGrace: cfg.ShutdownGrace, Refuse: s.Service.AppendRefusal,
		Config: upstream.Config{
			Partitions: cfg.Partitions,
			Dial: func(_ context.Context, partition int, client string) (net.Conn, context.Context, error) {
				leg, end := net.Pipe()
				s.done.Go(func() { _ = s.hosts[partition].Serve(end, client) })
				return leg, context.Background(), nil
			},
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.Router = r
	s.done.Go(func() { _ = r.Serve(ln) })
}

// Drain shuts the server down in order (kernel-ipc §2.7) and waits for the end.
func (s *Server) Drain() {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		s.shutdown(ctx)
		for _, svc := range s.Services {
			svc.Runtime().Close()
		}
		s.done.Wait()
		if s.log != nil {
			if err := s.log.Close(); err != nil {
				s.t.Errorf("cannot close the journal: %v", err)
			}
		}
		for _, svc := range s.Services {
			if err := svc.Runtime().CloseRows(); err != nil {
				s.t.Errorf("cannot close the rows: %v", err)
			}
		}
	})
}

// shutdown ends the connections.
func (s *Server) shutdown(ctx context.Context) {
	var err error
	switch {
	case s.Reactor != nil:
		err = s.Reactor.Shutdown(ctx)
	case s.Router != nil:
		err = s.Router.Shutdown(ctx)
	}
	for _, h := range s.hosts {
		err = errors.Join(err, h.Close(ctx))
	}
	if err != nil {
		s.t.Errorf("cannot drain: %v", err)
	}
}

// recover brings the service to the end of the journal in kept, where it writes from then on.
func (s *Server) recover(kept journal.Store) {
	s.t.Helper()
	log, err := journal.Open(kept, journal.Config{
		OnDurable: s.Service.Runtime().Durable,
		OnFailure: func(err error) { s.t.Errorf("the journal stopped: %v", err) },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.log = log
	if err := s.Service.Runtime().Recover(log, store.RecoverOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// Sweep runs one garbage collection at the server's present time.
func (s *Server) Sweep() {
	for _, svc := range s.Services {
		svc.Runtime().Sweep()
	}
}

// state returns the settings of the runtime.
func (c *Config) state() runtime.Config {
	cfg := c.stateConfig
	cfg.Journaled = c.Store != nil
	if c.Now != nil {
		cfg.Now = func() connection.Instant {
			mono, wall := c.Now()
			return connection.Instant{Mono: mono, Wall: wall}
		}
	}
	return cfg
}

func reactorConfig(c *Config, svc *ipc.Service) reactor.Config {
	return reactor.Config{Loops: c.Loops, Config: stream.Config{
		MaxConnections: c.MaxConnections, Open: svc.Open, Refuse: svc.AppendRefusal, Logger: c.Logger,
		Limits: connection.Limits{
			IdleAfter: int64(c.ReadTimeout), FrameWithin: int64(c.ReadTimeout), SendWithin: int64(c.WriteTimeout),
			DrainWithin: int64(c.ShutdownGrace), UnsentBytes: connection.DefaultUnsentBytes, ChunkBytes: connection.DefaultChunkBytes,
			FrameBytes: c.MaxFrameBytes + frame.PrefixSize,
		},
	}}
}
