package web

import (
	"net"
	"net/http"
	"net/url"
	"time"

	"trunkline/handlers/threads/method"
)

// Limits of a Limits that names none (threads §2.1, §6).
const (
	defaultBodyBytes     = 1 << 20
	defaultHeaderBytes   = 32 << 10
	defaultHeaderTimeout = 10 * time.Second
	defaultBodyTimeout   = 30 * time.Second
	defaultIdleTimeout   = 72 * time.Second
	defaultWriteTimeout  = 30 * time.Second
	defaultConnections   = 1024
)

// Limits bounds what a peer may send, and how long that may take. Zero members get the values of
// the contract.
type Limits struct {
	// BodyBytes is the size of the largest decoded body.
	BodyBytes int
	// HeaderBytes bounds the header fields with names, values and line ends.
	HeaderBytes int
	// HeaderTimeout, BodyTimeout and WriteTimeout are the time for the headers of a request, for
	// its body, and for its answer. IdleTimeout is how long a connection may wait for its next
	// request.
	HeaderTimeout, BodyTimeout, IdleTimeout, WriteTimeout time.Duration
	// Connections may be open; further ones wait in the system's backlog.
	Connections int
}

func (l Limits) withDefaults() Limits {
	orInt := func(n *int, by int) {
		if *n <= 0 {
			*n = by
		}
	}
	orTime := func(d *time.Duration, by time.Duration) {
		if *d <= 0 {
			*d = by
		}
	}
	orInt(&l.BodyBytes, defaultBodyBytes)
	orInt(&l.HeaderBytes, defaultHeaderBytes)
	orTime(&l.HeaderTimeout, defaultHeaderTimeout)
	orTime(&l.BodyTimeout, defaultBodyTimeout)
	orTime(&l.IdleTimeout, defaultIdleTimeout)
	orTime(&l.WriteTimeout, defaultWriteTimeout)
	orInt(&l.Connections, defaultConnections)
	return l
}

// Extension answers a GET route with a JSON object, which it appends to dst. c is lent.
type Extension func(c *method.Caller, query url.Values, dst []byte) ([]byte, *method.Fault)

// Forwarder answers requests in place of a Server: it brings them to others.
type Forwarder interface {
	// Forward answers a request, as a handler of net/http does. bearer is its token, which nothing
	// has verified; it is empty where there is none, and for a path that needs none. A fault that
	// is returned is the answer, before which there must be none. It may panic with
	// http.ErrAbortHandler, which ends the connection.
	Forward(w http.ResponseWriter, r *http.Request, bearer string) *method.Fault
	// Closed is called with what httpd.Of returns when a connection is closed and has no request.
	Closed(nc net.Conn)
}

// Config is what a Server works with.
type Config struct {
	// Name begins the names of connections. Empty: threads-http.
	Name string
	// Surface has the methods. Every answer with 401 or 403 goes to the Refused of its Dispatcher,
	// those of its Call included, except those of MCP. Its Logger gets a line for each request:
	// refusals at level info, the rest at level debug.
	method.Surface
	// Unready returns why the server is not ready, empty where it is; nil: it always is.
	Unready func() (reason string)
	// Metrics appends families beside those of HTTP to /metrics; nil: none.
	Metrics func(dst []byte) []byte
	// MCP is mounted at /mcp, Metadata at the two paths of the protected resource. Where they are
	// nil, there is nothing.
	MCP, Metadata http.Handler
	// Audit and Jobs answer /v1/audit and /v1/trigger_jobs. Where they are nil, there is nothing.
	Audit, Jobs Extension
	// Forward answers all requests but those whose header is over its limit; nil: the server does.
	// Of the members above, and of Surface, it needs IDs alone.
	Forward Forwarder
	Limits  Limits
}
