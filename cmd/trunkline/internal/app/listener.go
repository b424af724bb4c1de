package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/cmd/trunkline/internal/monitor"
	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/engine/reactor"
	"trunkline/engine/stream"
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
		lns := []net.Listener{o.Sockets.Take(a.AddrKey(), l.String())}
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

// clientServer serves the connections of net.Listeners until Shutdown.
type clientServer interface {
	Serve(ln net.Listener) error
	Shutdown(ctx context.Context) error
	SetMaxConnections(n int)
}

// clientBook is what lists connections, those of event loops aside.
type clientBook interface {
	Connections([]obs.Connection) []obs.Connection
	Totals() (open, in, out int64)
	Drop(name string) (found bool)
}

// listener is one setting with addresses: what is bound, and what serves the clients. A nil one
// serves none.
type listener struct {
	label    string // as the banner names it
	section  string // as metrics name it
	protocol string // as lists of connections name it
	name     string // what the names of connections of lines and of frames begin with
	service  string // as other nodes name it; empty: they forward no clients
	of       string // what the event loops are of, for a message
	legs     bool   // the clients come by a router
	access   *config.Access
	most     func(*config.Config) int // connections that there may be; nil: another part sets that
	bound    []bound
	peers    []bound // for what other nodes and routers forward

	clients clientServer    // nil before it was opened, and where another listener has the connections
	loops   *reactor.Server // clients, if it has event loops
	book    clientBook      // clients, if it has none and lists its connections
	taps    connection.Taps // of the event loops
	form    *monitor.Form   // of what goes over the connections of the event loops
	dead    atomic.Pointer[error]
	tasks   sync.WaitGroup // accept loops and the watch over the event loops
}

// bind opens the addresses. counted: the server does not count the files of its connections.
func (l *listener) bind(o Options, counted bool) (err error) {
	l.bound, err = listenAll(l.access, o)
	for i := range l.bound {
		if counted {
			l.bound[i].ln = o.files.Listener(l.bound[i].ln, o.Logger)
		}
	}
	return err
}

// startLoops starts event loops for the connections.
func (l *listener) startLoops(loops int, sc stream.Config, form *monitor.Form, o Options) error {
	l.name, l.form = cmp.Or(l.name, l.protocol), form
	sc.Protocol, sc.Name, sc.Open, sc.Files, sc.Logger = l.protocol, l.name, l.taps.Opener(sc.Open), o.files, o.Logger
	srv, err := reactor.New(reactor.Config{Loops: loops, Config: sc})
	if err != nil {
		return fmt.Errorf("cannot start the event loops%s: %w", l.of, err)
	}
	l.clients, l.loops = srv, srv
	return nil
}

// handTo has srv serve the connections.
func (l *listener) handTo(srv clientServer) {
	l.clients = srv
	l.book, _ = srv.(clientBook)
}

// show prints the addresses.
func (l *listener) show(to io.Writer) {
	for _, b := range l.bounds() {
		fmt.Fprintf(to, "%s listening on %s (%s)\n", l.label, b.addr, b.kind)
	}
}

// bounds returns what is bound.
func (l *listener) bounds() []bound {
	if l == nil {
		return nil
	}
	return l.bound
}

// serve starts answering. An accept loop, or an event loop, that ends by itself is reported.
func (l *listener) serve(report func(error)) {
	if l == nil {
		return
	}
	for _, b := range slices.Concat(l.bound, l.peers) {
		serve := l.clients.Serve
		if l.loops != nil && (b.kind == kindTLS || b.kind == kindForwarded || b.kind == kindLocal) {
			serve = l.loops.ServeStreams
		}
		l.tasks.Go(func() { report(serve(b.ln)) })
	}
	if l.loops == nil {
		return
	}
	l.tasks.Go(func() {
		if err, ended := <-l.loops.Done(); ended {
			l.dead.Store(&err)
			report(err)
		}
	})
}

// live returns nil while every event loop runs, else why one ended.
func (l *listener) live() error {
	if err := l.dead.Load(); err != nil {
		return *err
	}
	return nil
}

// shutdown answers what was asked until ctx ends, and closes what is left then.
func (l *listener) shutdown(ctx context.Context) error {
	if l == nil {
		return nil
	}
	err := l.clients.Shutdown(ctx)
	l.tasks.Wait()
	return err
}

// abort ends a listener that never served.
func (l *listener) abort() {
	if l == nil {
		return
	}
	closeAll(l.bound)
	if l.clients != nil {
		_ = within(forceAfter, l.clients.Shutdown)
	}
}

// connections appends a row for each open connection.
func (l *listener) connections(ctx context.Context, rows []obs.Connection) []obs.Connection {
	switch {
	case l.loops != nil:
		return append(rows, l.loops.Connections(ctx)...)
	case l.book != nil:
		return l.book.Connections(rows)
	}
	return rows
}

// totals returns how many connections are open, and the bytes read and written by all there were.
func (l *listener) totals() (open, in, out int64) {
	switch {
	case l.loops != nil:
		return l.loops.Totals()
	case l.book != nil:
		return l.book.Totals()
	}
	return 0, 0, 0
}

// drop closes the connection of a name at once. found is false where none has it.
func (l *listener) drop(ctx context.Context, name string) (found bool, err error) {
	switch {
	case l.loops != nil:
		return l.loops.Drop(ctx, name)
	case l.book != nil:
		return l.book.Drop(name), nil
	}
	return false, nil
}

// unlessLate drops the error of a shutdown that took too long: what was left then was closed.
func unlessLate(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// listeners are those of all parts. Those of a replica are others when another one took its place.
func (s *server) listeners() []*listener {
	all := slices.Concat(s.router.listeners(), []*listener{s.web.listener}, s.exacta.listeners())
	for _, r := range s.replicas() {
		all = append(all, r.listeners()...)
	}
	return slices.DeleteFunc(all, func(l *listener) bool { return l == nil })
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
