package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"trunkline/engine/obs"
	"trunkline/handlers/internal/conns"
)

// Bounds of the admin listener. Requests here are short, from one scraper and a few people.
const (
	maxHeaderBytes    = 16 << 10
	maxConnections    = 64 // open at a time; further ones wait in the backlog until one closes
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
	// InsecureBind allows an address that is not loopback (admin.insecure_bind).
	InsecureBind bool
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
	// Cluster returns the body of /cluster; nil: it is not found.
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
	// Registry is shown by /metrics, Build by /version.
	Registry *obs.Registry
	Build    obs.Build
	Logger   *slog.Logger
}

// Server is a bound admin listener.
type Server struct {
	ln   net.Listener
	http *http.Server
}

// Listen binds the address; nothing is answered before Serve. It refuses an address beyond loopback
// without InsecureBind, because everything here is readable without authentication.
func Listen(c Config) (*Server, error) {
	if err := checkAddr(c); err != nil {
		return nil, err
	}
	ln, err := c.Listener, error(nil)
	if ln == nil {
		if ln, err = net.Listen(network(c.Addr), c.Addr); err != nil {
			return nil, fmt.Errorf("cannot listen on admin.listen_addr %s: %w", c.Addr, err)
		}
	}
	h := &http.Server{
		Handler:           named(ln, handler(c)),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
	}
	if c.Pprof {
		h.WriteTimeout = pprofWriteTimeout
	}
	return &Server{ln: conns.Limit(ln, maxConnections), http: h}, nil
}

// Addr returns the address it really listens on.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Serve answers until Shutdown; it returns nil then, else the reason it stopped.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve the admin endpoint: %w", err)
	}
	return nil
}

// Shutdown stops accepting, lets running answers finish until ctx ends, then closes what is left.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close()
	}
	// A server whose Serve never ran does not know its listener yet.
	_ = s.ln.Close()
	return err
}

func checkAddr(c Config) error {
	a, err := net.ResolveTCPAddr("tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("cannot use admin.listen_addr %q: %w", c.Addr, err)
	}
	if !a.IP.IsLoopback() && !c.InsecureBind {
		return fmt.Errorf("cannot use admin.listen_addr %q: not a loopback address, and admin.insecure_bind is false", c.Addr)
	}
	return nil
}

// network keeps a literal address in its family: plain "tcp" would open 0.0.0.0 for IPv6 as well.
func network(addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return "tcp"
	case ip.Unmap().Is4():
		return "tcp4"
	}
	return "tcp6"
}
