package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/envelope"
	"trunkline/engine/obs"
	"trunkline/engine/reactor"
	"trunkline/handlers/exchange"
)

const (
	kindTLS       = "tls"
	kindForwarded = "forwarded" // by other nodes
	kindLocal     = "local"     // inside of the process
)

// bound is one open listener.
type bound struct {
	ln   net.Listener
	raw  net.Listener // below TLS
	addr string       // as people write it: host:port with the real port, or unix:///path
	kind string       // tcp, tls, unix or forwarded
	open bool         // reachable by every client, allowed by insecure_bind
	tls  *tls.Config  // nil without TLS
}

// listenAll returns the listeners of one section: those that the node keeps, or new ones.
func listenAll(a *config.Access, o Options) ([]bound, error) {
	if o.kept != nil {
		return o.kept.lend(a, o)
	}
	return openAll(a, o)
}

// openAll opens the listeners of one section in order; the first that cannot be opened closes the
// others.
func openAll(a *config.Access, o Options) (out []bound, err error) {
	listeners, err := a.Listeners()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := o.certs.of(a)
	if err != nil {
		return nil, err
	}
	for _, l := range listeners {
		lns := []net.Listener{o.Sockets.take(a.AddrKey(), l.String())}
		if lns[0] == nil {
			if lns, err = reactor.ListenLocal(l.String()); err != nil {
				closeAll(out)
				return nil, fmt.Errorf("cannot open %s: %w", a.AddrKey(), err)
			}
		}
		for _, ln := range lns {
			b := bound{ln: ln, raw: ln, addr: ln.Addr().String(), kind: l.Kind(), open: l.Open}
			if l.Network == "unix" {
				b.addr = l.String()
			}
			if l.TLS {
				b.ln, b.tls = tls.NewListener(ln, tlsConfig), tlsConfig
			}
			out = append(out, b)
		}
	}
	return out, nil
}

// serveLoops starts the accept loops of all listeners, and the watch over the event loops: report
// gets the end of an accept loop, died that of an event loop which ended by itself.
func serveLoops(tasks *sync.WaitGroup, loops *reactor.Server, bs []bound, report, died func(error)) {
	for _, b := range bs {
		serve := loops.Serve
		switch b.kind {
		case kindTLS, kindForwarded, kindLocal:
			serve = loops.ServeStreams
		}
		tasks.Go(func() { report(serve(b.ln)) })
	}
	tasks.Go(func() {
		if err, ended := <-loops.Done(); ended {
			died(err)
		}
	})
}

// abortLoops ends listeners and event loops that never served; loops may be nil.
func abortLoops(bs []bound, loops *reactor.Server) {
	closeAll(bs)
	if loops != nil {
		ctx, cancel := context.WithTimeout(context.Background(), forceAfter)
		defer cancel()
		_ = loops.Shutdown(ctx)
	}
}

func closeAll(bs []bound) {
	for _, b := range bs {
		_ = b.ln.Close()
	}
}

// warnFiles warns when the limit of open files, raised as far as it went, may be hit before the
// limits of connections are. It must be called after the event loops have started, which raises the
// limit.
func warnFiles(log *slog.Logger, cfg *config.Config) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		log.Warn("cannot read the limit of open files", "error", err)
		return
	}
	compareFiles(log, uint64(l.Cur), cfg)
}

// compareFiles warns when limit is below what the settings may take.
func compareFiles(log *slog.Logger, limit uint64, cfg *config.Config) {
	if wanted := cfg.Files(); limit < wanted {
		log.Warn("the limit of open files (RLIMIT_NOFILE) is low for the max_connections of the sections: connections may be refused or closed before they are reached",
			"limit", limit, "wanted", wanted)
	}
}

// web is the envelope exchange over HTTP (envelope §2.3).
type web struct {
	srv   *exchange.Server
	bound []bound
	tasks sync.WaitGroup // one accept loop per listener
}

// openWeb binds every address of http.listen_addr or none; without addresses it returns nil.
// Nothing is accepted before Serve.
func openWeb(c *config.HTTP, o Options, reg *obs.Registry) (*web, error) {
	if len(c.ListenAddr) == 0 {
		return nil, nil
	}
	bs, err := listenAll(&c.Access, o)
	if err != nil {
		return nil, err
	}
	engine := envelope.NewEngine(envelope.Options{Now: time.Now, NewID: envelope.RandomID, StageOrder: c.DefaultStageOrder})
	hc := c.HTTPConfig
	hc.Logger, hc.Recorder = o.Logger, o.recorder
	for i := range bs {
		bs[i].ln = o.files.Listener(bs[i].ln, o.Logger)
	}
	w := &web{srv: exchange.NewServer(engine, hc), bound: bs}
	if err := addMetrics(reg, webMetrics, func() *exchange.Stats { s := w.srv.Stats(); return &s }); err != nil {
		closeAll(bs)
		return nil, err
	}
	return w, nil
}

// serve starts answering on every listener. An accept loop that ends by itself is reported.
func (w *web) serve(report func(error)) {
	if w == nil {
		return
	}
	for _, b := range w.bound {
		w.tasks.Go(func() { report(w.srv.Serve(b.ln)) })
	}
}

// shutdown lets running requests finish until ctx ends and closes what is left then, which is no
// failure.
func (w *web) shutdown(ctx context.Context) error {
	if w == nil {
		return nil
	}
	err := w.srv.Shutdown(ctx)
	w.tasks.Wait()
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// abort ends a listener that never served.
func (w *web) abort() {
	if w != nil {
		closeAll(w.bound)
	}
}
