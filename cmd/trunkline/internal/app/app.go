// Package app wires one server: settings in, listeners, protocols and the admin endpoint out. It is
// the only place that knows how the rooms are connected; endpoint.go knows the kernel endpoint,
// listener.go what all listeners do, metrics.go the names under which counters are shown.
//
// The life of a server:
//
//	bind ─► banner ─► admin up ─► recover ─► serve ─► ready
//	signal ─► lame duck ─► drain ─► admin down
//
// Every address is bound before the store is read, so that one in use is an error at once; clients
// that connect meanwhile wait in the backlog. The admin listener answers from before the recovery,
// which it shows, until after the drain, so that probes see it and the last scrape still counts it.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/cmd/trunkline/internal/systemd"
	"trunkline/engine/cluster/control"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/obs"
	"trunkline/engine/stream"
	"trunkline/handlers/ops"
)

// Reasons shown by /readyz.
const (
	reasonRecovering = "recovering"
	reasonStarting   = "starting"
	reasonLameDuck   = "lame_duck"
	reasonDraining   = "draining"
	reasonFull       = "storage_full"
	// reasonNoOwner is shown by a node that knows of no owner to forward its clients to.
	reasonNoOwner = "no_owner"
	// reasonReplicaDamaged is shown by a node whose copy of the journal is damaged.
	reasonReplicaDamaged = "replica_damaged"
)

// adminGrace is how long the admin listener may take to finish its last answers, after the drain.
const adminGrace = time.Second

// forceAfter is how much longer than shutdown_grace_secs a drain is waited for: the endpoint closes
// connections by force at the grace's end, and this bounds the rest.
const forceAfter = 3 * time.Second

// Options is what a server needs beside its settings.
type Options struct {
	Build  obs.Build
	Logger *slog.Logger
	// Banner gets the lines for people: what survives, where the settings come from, every address
	// that is listened on.
	Banner io.Writer
	// LinesDropped returns how many lines of Logger and Banner could not be written. nil: it is
	// unknown.
	LinesDropped func() uint64
	// RecoverTo, if not 0, gives up for good every record of the store after this index, every
	// snapshot that holds one, and every damaged snapshot: the answer of an operator to a damaged
	// store, for one start.
	RecoverTo journal.Index
	// Recovered is called once, when the store was read and before the first client is served. nil:
	// nothing is.
	Recovered func()
	// Reload reads the settings again, from where they came. Hangup delivers orders to do so, one
	// that waits at most. nil: nothing is reloaded.
	Reload func() (*config.Config, error)
	Hangup <-chan os.Signal
	// LogLevel changes the level of Logger; nil: it stays.
	LogLevel *slog.LevelVar
	// Sockets are opened by the supervisor of the process; the settings have their addresses. nil:
	// there are none.
	Sockets *systemd.Sockets
	// Notify gets states for that supervisor (sd_notify(3)), one on a line; nil: nothing does.
	Notify func(states string)
	// Watchdog is how often the supervisor wants a sign of life; 0: never.
	Watchdog time.Duration
	// DevFile is where the tokens are written that agent threads have with --dev; empty: nowhere.
	DevFile string
	// Again: Run has returned control.ErrOwnershipLost before. It waits for the other nodes without
	// end.
	Again bool

	openStore func(embedded.Config) (diskStore, error) // nil: embedded.Open; for tests
	// dial connects to the kernel services of owners. nil: the cluster's; for tests.
	dial     func(ctx context.Context, partition int, client string) (net.Conn, context.Context, error)
	files    *stream.Files // of all connections; nil: they are not counted
	certs    certificates
	recorder *obs.Recorder  // of latencies; nil: they are not kept
	cluster  *control.Node  // nil: there are no other nodes
	lease    *control.Lease // of one replica; nil without a cluster
	kept     kept           // listeners of replicas; nil without a cluster
}

// server is one running instance.
type server struct {
	cfg     atomic.Pointer[config.Config] // a reload replaces it
	options Options
	log     *slog.Logger
	ready   *ops.Readiness
	parts   []*partition // at least one
	web     web
	exacta  *projectEndpoint // nil when exacta.listen_addr and exacta.ws_addr are empty
	admin   *ops.Server      // nil when admin.listen_addr is empty
	console *consolePages    // nil when admin.listen_addr is empty
	failed  chan error
	started time.Time
	version string

	reloaded atomic.Pointer[ops.Reload] // nil before the first reload
	outcomes sync.Mutex                 // of those who replace reloaded
	stopped  chan struct{}              // closed when Run returns

	recovered func()             // Options.Recovered, once
	end       context.CancelFunc // of the replicas of a cluster
	router    *routing           // nil where there is one partition
	threads   *threadServer      // nil when agent threads are closed
}

// first returns the replica that alone has tools.
func (s *server) first() *replica { return s.parts[0].current.Load() }

// replicas returns those of all partitions.
func (s *server) replicas() []*replica {
	all := make([]*replica, len(s.parts))
	for i, p := range s.parts {
		all[i] = p.current.Load()
	}
	return all
}

// Run reads the store and serves until ctx ends, then drains (kernel-ipc §2.7) and returns nil; an
// error means that something could not be bound or read, or stopped by itself. Hint describes what
// to do about those of the store.
func Run(ctx context.Context, cfg *config.Config, o Options) error {
	var err error
	if o.cluster, err = openCluster(ctx, cfg, o.Logger); err != nil {
		return o.unopenedBy(err)
	}
	s, err := bind(cfg, o)
	if err != nil {
		return errors.Join(err, o.cluster.Shutdown(ctx))
	}
	defer close(s.stopped)
	s.banner(o)
	warnFiles(s.log, cfg)
	if mode, open := cfg.Store.Open(); open {
		s.log.Warn("other users can look into the directory of the store", "dir", cfg.Store.Dir, "mode", mode, "fix",
			"chmod 700 "+cfg.Store.Dir)
	}
	if s.admin != nil { // before the store is read, so that it can be asked how far that is
		go func() { s.report(s.admin.Serve()) }()
	}
	if err := s.begin(ctx); err != nil {
		s.abort()
		if err == ctx.Err() {
			s.log.Info("stopped before the store was read")
			return nil
		}
		return err
	}
	s.ready.Release(reasonStarting)
	s.log.Info("serving", "settings", cfg.Summary())
	err = s.run(ctx)
	if drainErr := s.drain(); err == nil {
		err = drainErr
	}
	return err
}

// begin starts answering. A server alone reads its store before; a node of a cluster serves what it
// has for itself, and has its replicas follow their journals.
func (s *server) begin(ctx context.Context) error {
	if c := s.options.cluster; c != nil {
		s.ready.When(reasonNoOwner, c.Ownerless)
		s.ready.When(reasonReplicaDamaged, c.Damaged)
		s.ready.Release(reasonRecovering)
		if err := c.Begin(); err != nil {
			return err
		}
		running, end := context.WithCancel(context.Background())
		s.end = end
		for _, p := range s.parts {
			go p.run(running)
		}
		s.router.serve(s.report)
	} else {
		if err := s.first().kernel.recover(ctx, s.failed); err != nil {
			return err
		}
		s.ready.Hold(reasonStarting)
		s.ready.Release(reasonRecovering)
		s.recovered()
		s.first().serve(s.report)
	}
	s.web.serve(s.report)
	s.exacta.serve(s.report)
	return nil
}

// run carries out orders until the server is to end.
func (s *server) run(ctx context.Context) error {
	alive, stop := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	s.options.notify(systemd.Ready, systemd.Status("serving"))
	watch.Go(func() { s.feedWatchdog(alive) })
	hangup, reloaded := s.options.Hangup, make(chan struct{}, 1)
	for {
		select {
		case <-ctx.Done():
			go s.refuseReloads()
			s.options.cluster.Leave()
			return s.lameDuck()
		case err := <-s.failed:
			go s.refuseReloads()
			s.log.Error("stopping", "error", err)
			return err
		case err := <-s.options.cluster.Losses():
			go s.refuseReloads()
			s.log.Error("the node cannot go on", "error", err)
			return err
		case <-hangup:
			hangup = nil // one at a time; a disk that does not answer holds no order to stop up
			go func() {
				s.reload(ctx)
				reloaded <- struct{}{}
			}()
		case <-reloaded:
			hangup = s.options.Hangup
		}
	}
}

// bind opens every listener or none.
func bind(cfg *config.Config, o Options) (_ *server, err error) {
	reg, err := obs.NewRegistry(o.Build)
	if err != nil {
		return nil, err
	}
	o.files, o.certs = stream.NewFiles(), make(certificates)
	o.recorder = obs.NewRecorder(cfg.Admin.SlowThreshold, cfg.Admin.SlowEntries)
	plain := o
	if o.cluster != nil {
		o.kept = make(kept)
	}
	s := &server{options: o, log: o.Logger, ready: new(ops.Readiness), failed: make(chan error, 1), stopped: make(chan struct{}), started: time.Now(), version: o.Build.Version}
	s.cfg.Store(cfg)
	o.cluster.Attach(s.host())
	s.recovered = sync.OnceFunc(func() {
		if o.Recovered != nil {
			o.Recovered()
		}
	})
	defer o.Sockets.Close()
	defer func() {
		if err != nil {
			s.abort()
		}
	}()
	if s.threads, err = openThreadServer(cfg, s.ready, o); err != nil {
		return nil, err
	}
	if err = s.openReplicas(); err != nil {
		return nil, err
	}
	if o.cluster.Several() {
		if s.router, err = s.openRouting(plain); err != nil {
			return nil, err
		}
	}
	if s.first().kernel.store != nil {
		s.ready.Hold(reasonRecovering)
		s.ready.When(reasonFull, s.full)
	} else {
		s.ready.Hold(reasonStarting)
	}
	if s.web, err = openWeb(&cfg.HTTP, plain, reg); err != nil {
		return nil, err
	}
	if s.exacta, err = openProjects(&cfg.Exacta, plain, reg); err != nil {
		return nil, err
	}
	if err = s.register(reg); err != nil {
		return nil, err
	}
	if cfg.Admin.ListenAddr == "" {
		return s, o.Sockets.Check()
	}
	oc := ops.Config{
		Addr: cfg.Admin.ListenAddr, Listener: o.Sockets.Take("admin.listen_addr", cfg.Admin.ListenAddr),
		InsecureBind: cfg.Admin.InsecureBind || cfg.Admin.HasTokens(), PublicMetrics: cfg.Admin.PublicMetrics,
		AllowedHosts: cfg.Admin.AllowedHosts, Pprof: cfg.Admin.Pprof,
		Live: s.live, Ready: s.ready, Registry: reg, Build: o.Build, Logger: o.Logger,
		Recovery: func() *ops.Recovery { return s.first().kernel.store.recovery() }, Store: s.viewStore, Standing: o.cluster.Standing,
		Projects: s.exacta.view(), Latencies: o.recorder.Latencies, Slow: o.recorder.Slow, Connections: s.connections, Monitor: s.monitor, Reload: s.lastReload,
		Overview: func() obs.Overview { return s.overview(o.recorder.Latencies(), time.Now()) },
	}
	if o.cluster != nil {
		oc.Cluster = o.cluster.View
	}
	if s.console, err = s.openConsole(&oc, o.Build.Version); err != nil {
		return nil, err
	}
	oc.Console, oc.Guard, oc.Webhooks, oc.Orders = s.console, s.console.Guard, s.serveWebhooks, s.threadOrders(s.console.Operators)
	if s.admin, err = ops.Listen(oc); err != nil {
		return nil, err
	}
	return s, o.Sockets.Check()
}

// banner prints what an operator asks first. Its first line is whether data survives.
func (s *server) banner(o Options) {
	cfg := s.cfg.Load()
	fmt.Fprintf(o.Banner, "store: %s, %s\n", cfg.Store.Mode, survives(&cfg.Store))
	fmt.Fprintf(o.Banner, "trunkline %s, settings: %s\n", o.Build.Version, cfg.Summary())
	if s.router != nil {
		s.listening(o.Banner, s.router.kernel)
	} else {
		s.listening(o.Banner, s.first().kernel.listener)
	}
	if s.web.listener == nil {
		fmt.Fprintln(o.Banner, "http off")
	}
	s.listening(o.Banner, s.web.listener)
	if tools := s.first().tools; tools != nil {
		s.listening(o.Banner, tools.listener)
	}
	s.bannerOfThreads(o)
	if s.exacta != nil {
		s.listening(o.Banner, s.exacta.lines, s.exacta.ws)
	}
	if s.admin == nil {
		fmt.Fprintln(o.Banner, "admin off")
		return
	}
	fmt.Fprintf(o.Banner, "admin listening on %s (%s)\n", s.admin.Addr(), cfg.Admin.Readers())
	if !cfg.Admin.HasTokens() && !cfg.Admin.Loopback() {
		s.log.Warn("admin.insecure_bind is on: anybody who reaches this address may read it", "addr", s.admin.Addr())
	}
}

// bannerOfThreads shows where agent threads listen, or why they do not.
func (s *server) bannerOfThreads(o Options) {
	c := &s.cfg.Load().Threads
	switch {
	case s.threads != nil:
		var web, lines *listener
		if s.router != nil {
			web, lines = s.router.web, s.router.lines
		} else {
			web, lines = s.first().threads.web, s.first().threads.lines
		}
		s.listening(o.Banner, web, lines)
		s.threads.showDev(o, web)
	case len(c.ListenAddr)+len(c.LinesAddr) == 0:
		fmt.Fprintln(o.Banner, "threads off")
	default:
		fmt.Fprintln(o.Banner, threadsClosed)
	}
}

// listening shows where parts listen, and warns of addresses that are open to every client.
func (s *server) listening(to io.Writer, ls ...*listener) {
	for _, l := range ls {
		l.show(to)
		for _, b := range l.bounds() {
			if b.open {
				s.log.Warn(
					l.access.Key("insecure_bind")+" is on: anybody who reaches this address may use it",
					"addr",
					b.addr,
				)
			}
		}
	}
}

// report keeps the first error of a part that stopped by itself.
func (s *server) report(err error) {
	if err == nil {
		return
	}
	select {
	case s.failed <- err:
	default:
	}
}
