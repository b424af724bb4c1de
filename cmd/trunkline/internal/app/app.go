package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/obs"
	"trunkline/handlers/ops"
)

// Reasons shown by /readyz.
const (
	reasonStarting = "starting"
	reasonDraining = "draining"
)

// adminGrace is how long the admin listener may take to finish its last answers, after the drain.
const adminGrace = time.Second

// forceAfter is how much longer than shutdown_grace_secs a drain is waited for: the endpoint closes connections by force at
// the grace's end, and this bounds the rest.
const forceAfter = 3 * time.Second

// Options is what a server needs beside its settings.
type Options struct {
	Build  obs.Build
	Logger *slog.Logger
	// Banner gets the lines for people: what survives, where the settings come from, every address that is listened on.
	Banner io.Writer
}

// server is one running instance.
type server struct {
	cfg    *config.Config
	log    *slog.Logger
	ready  *ops.Readiness
	kernel *endpoint
	web    *web        // nil when http.listen_addr is empty
	admin  *ops.Server // nil when admin.listen_addr is empty
	failed chan error
}

// Run serves until ctx ends, then drains (kernel-ipc §2.7) and returns nil; an error means that something could not be bound
// or stopped by itself.
func Run(ctx context.Context, cfg *config.Config, o Options) error {
	s, err := bind(cfg, o)
	if err != nil {
		return err
	}
	s.banner(o)
	warnFiles(s.log, cfg)
	s.serve()
	s.ready.Release(reasonStarting)
	s.log.Info("serving", "settings", cfg.Summary())
	select {
	case <-ctx.Done():
		err = nil
	case err = <-s.failed:
		s.log.Error("stopping", "error", err)
	}
	if drainErr := s.drain(); err == nil {
		err = drainErr
	}
	return err
}

// bind opens every listener or none.
func bind(cfg *config.Config, o Options) (*server, error) {
	reg, err := obs.NewRegistry(o.Build)
	if err != nil {
		return nil, err
	}
	s := &server{cfg: cfg, log: o.Logger, ready: new(ops.Readiness), failed: make(chan error, 1)}
	s.ready.Hold(reasonStarting)
	if s.kernel, err = openEndpoint(cfg, o.Logger, reg); err != nil {
		return nil, err
	}
	if s.web, err = openWeb(&cfg.HTTP, o.Logger, reg); err != nil {
		s.kernel.Abort()
		return nil, err
	}
	if cfg.Admin.ListenAddr == "" {
		return s, nil
	}
	s.admin, err = ops.Listen(ops.Config{
		Addr: cfg.Admin.ListenAddr, InsecureBind: cfg.Admin.InsecureBind, Pprof: cfg.Admin.Pprof,
		Live: s.kernel.Live, Ready: s.ready, Registry: reg, Build: o.Build, Logger: o.Logger,
	})
	if err != nil {
		s.kernel.Abort()
		s.web.Abort()
		return nil, err
	}
	return s, nil
}

// banner says what an operator asks first. Its first line is whether data survives.
func (s *server) banner(o Options) {
	fmt.Fprintf(o.Banner, "store: %s, %s\n", s.cfg.Store.Mode, survives(&s.cfg.Store))
	fmt.Fprintf(o.Banner, "trunkline %s, settings: %s\n", o.Build.Version, s.cfg.Summary())
	s.listening(o.Banner, "kernel ipc", &s.cfg.Kernel.Access, s.kernel.bound)
	if s.web == nil {
		fmt.Fprintln(o.Banner, "http off")
	} else {
		s.listening(o.Banner, "http", &s.cfg.HTTP.Access, s.web.bound)
	}
	if s.admin == nil {
		fmt.Fprintln(o.Banner, "admin off")
		return
	}
	fmt.Fprintf(o.Banner, "admin listening on %s\n", s.admin.Addr())
}

// listening shows the addresses of one section, and warns of those that are open to anybody.
func (s *server) listening(to io.Writer, what string, a *config.Access, bs []bound) {
	for _, b := range bs {
		fmt.Fprintf(to, "%s listening on %s (%s)\n", what, b.addr, b.kind)
		if b.open {
			s.log.Warn(a.Key("insecure_bind")+" is on: anybody who reaches this address may use it", "addr", b.addr)
		}
	}
}

// serve starts answering; the first part that stops by itself is reported in failed.
func (s *server) serve() {
	report := func(err error) {
		if err == nil {
			return
		}
		select {
		case s.failed <- err:
		default:
		}
	}
	s.kernel.Serve(report)
	s.web.Serve(report)
	if s.admin != nil {
		go func() { report(s.admin.Serve()) }()
	}
}

// drain ends the kernel endpoint and the HTTP listener side by side, then the admin listener.
func (s *server) drain() error {
	s.ready.Hold(reasonDraining)
	s.log.Info("draining", "grace_secs", s.cfg.Kernel.ShutdownGraceSecs)
	grace := seconds(s.cfg.Kernel.ShutdownGraceSecs)
	webEnded := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		webEnded <- s.web.Shutdown(ctx)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), grace+forceAfter)
	defer cancel()
	err := errors.Join(s.kernel.Shutdown(ctx), <-webEnded)
	if s.admin != nil {
		adminCtx, cancel := context.WithTimeout(context.Background(), adminGrace)
		defer cancel()
		// A scraper that holds its connection past the grace is cut; the server's work was done before.
		_ = s.admin.Shutdown(adminCtx)
	}
	if err != nil {
		return fmt.Errorf("cannot drain cleanly: %w", err)
	}
	s.log.Info("stopped")
	return nil
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
