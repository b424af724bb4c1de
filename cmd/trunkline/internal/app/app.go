// Package app wires one server: settings in, listeners, protocols and the admin endpoint out. It is
// the only place that knows how the rooms are connected; endpoint.go knows the kernel endpoint,
// web.go the listeners and the HTTP exchange, metrics.go the names under which counters are shown.
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
	"os"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/cmd/trunkline/internal/config"
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
	// RecoverTo, if not 0, gives up for good every record of the store after this index, every
	// snapshot that holds one, and every damaged snapshot: the answer of an operator to a damaged
	// store, for one start.
	RecoverTo journal.Index
	// Recovered is called once, when the store was read and before the first client is served. nil:
	// nothing is.
	Recovered func()
	// Reload reads the settings anew, from where they came. Hangup delivers orders to do so, one
	// that waits at most. nil: nothing is reloaded.
	Reload func() (*config.Config, error)
	Hangup <-chan os.Signal
	// LogLevel changes the level of Logger; nil: it stays.
	LogLevel *slog.LevelVar
	// Sockets are opened by the supervisor of the process; the settings have their addresses. nil:
	// there are none.
	Sockets *Sockets
	// Notify gets states for that supervisor (sd_notify(3)), one on a line; nil: nothing does.
	Notify func(states string)
	// Watchdog is how often the supervisor wants a sign of life; 0: never.
	Watchdog time.Duration
	// Again: Run has returned ErrOwnershipLost before. It waits for the other nodes without end.
	Again bool

	openStore func(embedded.Config) (diskStore, error) // nil: embedded.Open; for tests
	files     *stream.Files                            // of all connections; nil: they are not counted
	certs     certificates
	recorder  *obs.Recorder // of latencies; nil: they are not kept
	cluster   *cluster      // nil: there are no other nodes
}

// server is one running instance.
type server struct {
	cfg     atomic.Pointer[config.Config] // a reload replaces it
	options Options
	log     *slog.Logger
	ready   *ops.Readiness
	kernel  *endpoint
	web     *web             // nil when http.listen_addr is empty
	tools   *toolEndpoint    // nil when toolhost.listen_addr is empty
	threads *threadEndpoint  // nil when they are closed
	exacta  *projectEndpoint // nil when exacta.listen_addr and exacta.ws_addr are empty
	admin   *ops.Server      // nil when admin.listen_addr is empty
	console *consolePages    // nil when admin.listen_addr is empty
	failed  chan error
	started time.Time
	version string

	reloaded atomic.Pointer[ops.Reload] // nil before the first reload
	outcomes sync.Mutex                 // of those who replace reloaded
	stopped  chan struct{}              // closed when Run returns
}

// Run reads the store and serves until ctx ends, then drains (kernel-ipc §2.7) and returns nil; an
// error means that something could not be bound or read, or stopped by itself. Hint describes what
// to do about those of the store.
func Run(ctx context.Context, cfg *config.Config, o Options) error {
	var err error
	if o.cluster, err = openCluster(ctx, cfg, o.Logger, o.Again); err != nil {
		return o.unopenedBy(err)
	}
	s, err := bind(cfg, o)
	if err != nil {
		return errors.Join(err, o.cluster.shutdown(ctx))
	}
	defer close(s.stopped)
	s.banner(o)
	warnFiles(s.log, cfg)
	if s.admin != nil { // before the store is read, so that it can be asked how far that is
		go func() { s.report(s.admin.Serve()) }()
	}
	if err := s.recover(ctx); err != nil {
		why := s.unrecoveredBy(err)
		s.abort()
		if err == ctx.Err() {
			s.log.Info("stopped before the store was read")
			return nil
		}
		return why
	}
	if o.Recovered != nil {
		o.Recovered()
	}
	s.ownCluster()
	s.kernel.serve(s.report)
	s.web.serve(s.report)
	s.tools.serve(s.report)
	s.threads.serve(s.report)
	if o.cluster == nil { // else it serves from the beginning: projects stay on their node
		s.exacta.serve(s.report)
	}
	s.beat()
	s.ready.Release(reasonStarting)
	s.log.Info("serving", "settings", cfg.Summary())
	if err = s.run(ctx); errors.Is(err, ErrOwnershipLost) {
		s.abandon()
		return err
	}
	if drainErr := s.drain(); err == nil {
		err = drainErr
	}
	return err
}

// run carries out orders until the server is to end.
func (s *server) run(ctx context.Context) error {
	alive, stop := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	s.options.notify(stateReady, stateStatus("serving"))
	watch.Go(func() { s.feedWatchdog(alive) })
	hangup, reloaded := s.options.Hangup, make(chan struct{}, 1)
	for {
		select {
		case <-ctx.Done():
			go s.refuseReloads()
			return s.lameDuck()
		case err := <-s.failed:
			go s.refuseReloads()
			s.log.Error("stopping", "error", err)
			return err
		case err := <-s.options.cluster.losses():
			s.log.Error("another node may own the journal: stopping at once", "error", err)
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
	s := &server{options: o, log: o.Logger, ready: new(ops.Readiness), failed: make(chan error, 1), stopped: make(chan struct{}), started: time.Now(), version: o.Build.Version}
	s.cfg.Store(cfg)
	defer o.Sockets.close()
	if s.kernel, err = openEndpoint(cfg, o, reg); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.abort()
		}
	}()
	if store := s.kernel.store; store != nil {
		s.ready.Hold(reasonRecovering)
		s.ready.When(reasonFull, store.full)
	} else {
		s.ready.Hold(reasonStarting)
	}
	if s.web, err = openWeb(&cfg.HTTP, o, reg); err != nil {
		return nil, err
	}
	if s.tools, err = openTools(&cfg.Toolhost, s.kernel.svc, o, reg); err != nil {
		return nil, err
	}
	if s.threads, err = openThreads(cfg, s.kernel.threads, s.kernel.svc, func() bool { return len(s.ready.Reasons()) == 0 }, o, reg); err != nil {
		return nil, err
	}
	if err = s.kernel.threads.register(reg, s.threads.linesOf()); err != nil {
		return nil, err
	}
	if s.exacta, err = openProjects(&cfg.Exacta, o, reg); err != nil {
		return nil, err
	}
	if err = o.cluster.register(reg); err != nil {
		return nil, err
	}
	if err = s.registerLatency(reg, o.recorder); err != nil {
		return nil, err
	}
	if cfg.Admin.ListenAddr == "" {
		return s, o.Sockets.check()
	}
	oc := ops.Config{
		Addr: cfg.Admin.ListenAddr, Listener: o.Sockets.take("admin.listen_addr", cfg.Admin.ListenAddr), InsecureBind: cfg.Admin.InsecureBind, Pprof: cfg.Admin.Pprof,
		Live: s.kernel.live, Ready: s.ready, Registry: reg, Build: o.Build, Logger: o.Logger,
		Recovery: s.kernel.store.recovery, Store: func() ops.Store { return s.kernel.store.view(time.Now()) },
		Projects: s.exacta.view(), Latencies: o.recorder.Latencies, Slow: o.recorder.Slow, Connections: s.connections, Monitor: s.monitor, Reload: s.lastReload, Cluster: s.viewCluster(),
		Overview: func() obs.Overview { return s.overview(o.recorder.Latencies(), time.Now()) },
	}
	if s.console, err = s.openConsole(&oc, o.Build.Version); err != nil {
		return nil, err
	}
	oc.Console = s.console
	if s.admin, err = ops.Listen(oc); err != nil {
		return nil, err
	}
	return s, o.Sockets.check()
}

// banner prints what an operator asks first. Its first line is whether data survives.
func (s *server) banner(o Options) {
	cfg := s.cfg.Load()
	fmt.Fprintf(o.Banner, "store: %s, %s\n", cfg.Store.Mode, survives(&cfg.Store))
	fmt.Fprintf(o.Banner, "trunkline %s, settings: %s\n", o.Build.Version, cfg.Summary())
	s.listening(o.Banner, "kernel ipc", &cfg.Kernel.Access, s.kernel.bound)
	if s.web == nil {
		fmt.Fprintln(o.Banner, "http off")
	} else {
		s.listening(o.Banner, "http", &cfg.HTTP.Access, s.web.bound)
	}
	if s.tools != nil {
		s.listening(o.Banner, "toolhost", &cfg.Toolhost.Access, s.tools.bound)
	}
	s.bannerOfThreads(o)
	if s.exacta != nil {
		s.listening(o.Banner, "exacta", &cfg.Exacta.Access, s.exacta.bound)
		s.listening(o.Banner, "exacta websocket", cfg.Exacta.WS(), s.exacta.wsBound)
	}
	if s.admin == nil {
		fmt.Fprintln(o.Banner, "admin off")
		return
	}
	fmt.Fprintf(o.Banner, "admin listening on %s\n", s.admin.Addr())
}

// bannerOfThreads shows where agent threads listen, or why they do not.
func (s *server) bannerOfThreads(o Options) {
	c := &s.cfg.Load().Threads
	switch {
	case s.threads != nil:
		s.listening(o.Banner, "threads http", &c.Access, s.threads.webBound)
		s.listening(o.Banner, "threads lines", c.Lines(), s.threads.lnBound)
		if s.threads.devToken != "" {
			fmt.Fprintf(o.Banner, "threads token for a day: %s\n", s.threads.devToken)
		}
	case len(c.ListenAddr)+len(c.LinesAddr) == 0:
		fmt.Fprintln(o.Banner, "threads off")
	default:
		fmt.Fprintln(o.Banner, threadsClosed)
	}
}

// listening shows the addresses of one section, and warns of those that are open to every client.
func (s *server) listening(to io.Writer, what string, a *config.Access, bs []bound) {
	showBound(to, what, bs)
	for _, b := range bs {
		if b.open {
			s.log.Warn(a.Key("insecure_bind")+" is on: anybody who reaches this address may use it", "addr", b.addr)
		}
	}
}

// showBound prints where a part listens.
func showBound(to io.Writer, what string, bs []bound) {
	for _, b := range bs {
		fmt.Fprintf(to, "%s listening on %s (%s)\n", what, b.addr, b.kind)
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

// recover reads the store, if there is one.
func (s *server) recover(ctx context.Context) error {
	defer s.standBy()()
	if err := s.kernel.recover(ctx, s.failed); err != nil {
		return err
	}
	s.ready.Hold(reasonStarting)
	s.ready.Release(reasonRecovering)
	return nil
}

// abort ends a server that never served.
func (s *server) abort() {
	s.kernel.abort()
	s.web.abort()
	s.tools.abort()
	s.threads.abort()
	s.exacta.abort()
	s.closeAdmin()
	s.leaveCluster()
}

// closeAdmin lets the last answers finish. A scraper that holds its connection past the grace is
// cut; the server's work was done before.
func (s *server) closeAdmin() {
	s.console.shutdown()
	if s.admin == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminGrace)
	defer cancel()
	_ = s.admin.Shutdown(ctx)
}

// drain ends the kernel endpoint and the others side by side, then the admin listener.
func (s *server) drain() error {
	s.ready.Hold(reasonDraining)
	s.console.shutdown()
	s.ready.Release(reasonLameDuck)
	grace := s.cfg.Load().Kernel.ShutdownGrace
	s.log.Info("draining", "grace_secs", int64(grace/time.Second))
	webEnded, toolsEnded, threadsEnded, exactaEnded := make(chan error, 1), make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() { exactaEnded <- s.exacta.shutdown() }()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), threadsGrace)
		defer cancel()
		threadsEnded <- s.threads.shutdown(ctx)
	}()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), toolGrace)
		defer cancel()
		toolsEnded <- s.tools.shutdown(ctx)
	}()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		webEnded <- s.web.shutdown(ctx)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), grace+forceAfter)
	defer cancel()
	var othersErr error
	s.kernel.beforeStore = func() { othersErr = errors.Join(<-toolsEnded, <-threadsEnded) } // their outcomes are in it
	err := errors.Join(s.kernel.shutdown(ctx), <-webEnded)
	err = errors.Join(err, othersErr, <-exactaEnded)
	s.closeAdmin()
	s.leaveCluster()
	if err != nil {
		return fmt.Errorf("cannot drain cleanly: %w", err)
	}
	s.log.Info("stopped")
	return nil
}
