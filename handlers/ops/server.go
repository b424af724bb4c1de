// Package ops is the admin listener, for operators, probes and scrapers.
//
//	GET /healthz   200 while the process is alive and its loops tick, else 503 with the reason
//	GET /readyz    200 while new work is welcome, else 503; reasons and a recovery's progress
//	GET /metrics   the registry of this engine in Prometheus text
//	GET /version   the build as JSON
//	GET /store     what is durable, how far it is written, and how much room there is, as JSON
//	GET /overview  what a look at the whole server shows, as JSON
//	GET /monitor   the frames of one connection (conn=ID) as they pass, as lines of JSON
//	GET /reload    the outcome of the last order to read the settings again, as JSON
//	GET /webhooks  the targets of webhooks, below it their dead letters, as JSON
//	GET /exacta/…  the page that shows projects, of another room
//	GET /console/…  the web console, of another room; browsers are led there from /
//	GET /debug/pprof/…  profiles, only with admin.pprof
//	GET, POST /threads/…, /agents/…, /erasures  orders about agent threads, of another room
//
// It answers GET and HEAD only, and changes nothing, but for the web console and the orders. Who
// may read is one rule for all routes: with tokens (admin.console_token_file) everything but probes
// needs one. Without tokens it binds to loopback, unless the operator insists
// (admin.insecure_bind). On a loopback address the Host header must name
// this machine, but for probes and scrapers. At most maxConnections are open; further ones
// wait in the backlog.
package ops

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"trunkline/engine/obs"
	"trunkline/engine/reactor"
	"trunkline/handlers/internal/httpd"
)

// Bounds of the admin listener. Requests here are short, from one scraper and a few people.
const (
	maxHeaderBytes    = 16 << 10
	maxConnections    = 64 // open at a time on one address; see httpd.Listener for further ones
	probeConnections  = 32 // beside them, for probes; each answers one request
	readTimeout       = 5 * time.Second
	idleTimeout       = 60 * time.Second
	writeTimeout      = 30 * time.Second
	pprofWriteTimeout = 90 * time.Second // a CPU profile runs 30 s by default and is sent at its end
)

// Config is what the admin listener needs from the rest of the process.
type Config struct {
	// Addr is host:port (admin.listen_addr); port 0 lets the system choose.
	Addr string
	// Listener is bound to Addr already; nil: it is not.
	Listener net.Listener
	// InsecureBind allows an address that is not loopback: it was asked for by name
	// (admin.insecure_bind), or there are tokens.
	InsecureBind bool
	// Guard passes on requests of those who may read, and answers all others. nil: all may.
	// Probes do not get there, nor scrapes with PublicMetrics (admin.public_metrics).
	Guard         func(next http.Handler) http.Handler
	PublicMetrics bool
	// AllowedHosts are names under which a loopback address is asked, beside those of this machine
	// (admin.allowed_hosts).
	AllowedHosts []string
	// Pprof adds /debug/pprof/ (admin.pprof).
	Pprof bool
	// Live returns nil while the loops tick; /healthz shows its error. It must return promptly.
	Live func() error
	// Ready holds the reasons shown by /readyz.
	Ready *Readiness
	// Recovery returns the progress of a recovery for /readyz, nil when none is going on.
	Recovery func() *Recovery
	// Store returns the body of /store. It may take locks, and must return promptly.
	Store func() Store
	// Cluster returns the body of /cluster; nil: the server is not a node of a cluster.
	Cluster func(ctx context.Context, check bool) Cluster
	// Standing returns what this server is to the journal of its cluster; nil, or that it returns:
	// there is none.
	Standing func() *obs.Standing
	// Reload returns the body of /reload.
	Reload func() Reload
	// Latencies, Connections and Slow return what /latency, /connections and /slowlog show; nil:
	// that is not found. Connections may wait for the event loops, for a moment.
	Latencies   func() []obs.Latency
	Connections func() []obs.Connection
	Slow        func() obs.SlowLog
	// Overview returns the body of /overview; nil: it is not found. It may take locks, and must
	// return promptly.
	Overview func() obs.Overview
	// Monitor begins to observe a connection for /monitor, with so many bytes of each payload; nil:
	// it is not found. Its error is a *Refusal.
	Monitor func(conn string, payload int) (Monitor, error)
	// Projects answers what is below /exacta/; nil: it is not found.
	Projects http.Handler
	// Console answers what is below /console/, POST included; nil: it is not found.
	Console http.Handler
	// Webhooks answers /webhooks, and below it NAME/dead and, to POST, NAME/resend; nil: they are
	// not found.
	Webhooks http.HandlerFunc
	// Orders answers what is below orderPaths, POST included; nil: it is not found.
	Orders http.Handler
	// Registry is shown by /metrics, Build by /version.
	Registry *obs.Registry
	Build    obs.Build
	Logger   *slog.Logger
}

// Server is a bound admin listener; "localhost" is one in each family.
type Server struct {
	lns  []net.Listener
	http *httpd.Server
}

// Listen binds the address; nothing is answered before Serve. It refuses an address beyond loopback
// without InsecureBind.
func Listen(c Config) (*Server, error) {
	if err := checkAddr(c); err != nil {
		return nil, err
	}
	lns := []net.Listener{c.Listener}
	if c.Listener == nil {
		var err error
		if lns, err = reactor.ListenLocal(c.Addr); err != nil {
			return nil, fmt.Errorf("cannot open admin.listen_addr: %w", err)
		}
	}
	h := &http.Server{
		Handler:           httpd.Unambiguous(admitted(named(lns[0], httpd.NewHosts(c.AllowedHosts), handler(c)))),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}
	if c.Pprof {
		h.WriteTimeout = pprofWriteTimeout
	}
	s := &Server{lns: lns, http: httpd.NewServer(httpd.Config{
		HTTP: h, What: "the admin endpoint", Book: httpd.NewBook("admin", "admin"),
		Connections: maxConnections, Reserved: probeConnections, Logger: c.Logger,
	})}
	for i, ln := range lns {
		lns[i] = s.http.Bound(ln)
	}
	return s, nil
}

// admitted answers only probes where the connection has a place that is reserved for them.
func admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if httpd.Reserved(r) {
			w.Header().Set("Connection", "close")
			if !isProbe(r) {
				w.Header().Set("Retry-After", "1")
				http.Error(
					w,
					"too many connections: the places that are left are for /healthz and /readyz",
					http.StatusServiceUnavailable,
				)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// Addr returns the address it really listens on, of "localhost" the one of IPv4.
func (s *Server) Addr() string { return s.lns[0].Addr().String() }

// Serve answers until Shutdown; it returns nil then, else the first reason why a listener stopped.
func (s *Server) Serve() error {
	stopped := make(chan error, len(s.lns))
	for _, ln := range s.lns {
		go func() { stopped <- s.http.Serve(ln) }()
	}
	return <-stopped
}

// Shutdown stops accepting, lets running answers finish until ctx ends, then closes what is left.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	// A server whose Serve never ran does not know its listeners yet.
	for _, ln := range s.lns {
		_ = ln.Close()
	}
	return err
}

func checkAddr(c Config) error {
	a, err := net.ResolveTCPAddr("tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("cannot use admin.listen_addr %q: %w", c.Addr, err)
	}
	if !a.IP.IsLoopback() && !c.InsecureBind {
		return fmt.Errorf("cannot use admin.listen_addr %q: "+
			"not a loopback address, without tokens, and admin.insecure_bind is false", c.Addr)
	}
	return nil
}

// named answers under the names of this machine and those of hosts alone, where only this machine
// reaches the listener: a page from elsewhere, in a browser here, reaches it under a name of its
// own that points here. Probes and scrapers may come by a proxy under any name, and read nothing of
// clients; projects have a rule of their own. Browsers always send a name.
func named(ln net.Listener, hosts httpd.Hosts, next http.Handler) http.Handler {
	if at, ok := ln.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "" || hosts.Allow(r.Host) || forAll(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		refuse(w, &Refusal{Status: http.StatusMisdirectedRequest,
			Text: fmt.Sprintf("this server answers under localhost, a loopback address, and the names of admin.allowed_hosts, not under %q",
				r.Host)})
	})
}

// forAll reports whether a path is answered under any name.
func forAll(path string) bool {
	switch path {
	case "/healthz", "/readyz", "/version", "/metrics":
		return true
	}
	return strings.HasPrefix(path, projectsPath)
}
