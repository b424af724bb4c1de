package rest

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"trunkline/handlers/threads/follow"
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
	// Follow has the waits and streams of all surfaces.
	Follow *follow.Server
	// Forward answers all requests but those whose header is over its limit; nil: the server does.
	// Of the members above, and of Surface, it needs IDs alone.
	Forward Forwarder
	Limits  Limits
}

// The labels of operations that no row of the methods has. otherLabel is the index of the first.
const (
	otherLabel     = 0
	otherOperation = "other"
	mcpOperation   = "mcp_endpoint"
)

// The values of the other labels. The last of each stands for all that are not listed: labels never
// come from a peer.
var (
	methodLabels = [...]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "other"}
	statusLabels = [...]int{200, 202, 204, 400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 429, 431, 500, 502, 503, 0}
)

// metrics are the counters of threads §4.10 that belong to HTTP. Counting does not allocate.
type metrics struct {
	operations []*operation // by label; never written after New
	faults     [256]atomic.Uint64
}

// operation has the counters of one value of the label operation.
type operation struct {
	name     string
	requests [len(methodLabels)][len(statusLabels)]atomic.Uint64
	nanos    atomic.Uint64
}

// name adds an operation, and returns its label. One that is there keeps it.
func (m *metrics) name(name string) int {
	for i, op := range m.operations {
		if op.name == name {
			return i
		}
	}
	m.operations = append(m.operations, &operation{name: name})
	return len(m.operations) - 1
}

// count notes an answer.
func (m *metrics) count(label int, httpMethod string, status int, took time.Duration) {
	i := slices.Index(methodLabels[:len(methodLabels)-1], httpMethod)
	if i < 0 {
		i = len(methodLabels) - 1
	}
	j := slices.Index(statusLabels[:len(statusLabels)-1], status)
	if j < 0 {
		j = len(statusLabels) - 1
	}
	op := m.operations[label]
	op.requests[i][j].Add(1)
	op.nanos.Add(uint64(max(took, 0)))
}

// Count notes an error envelope of a mounted handler.
func (s *Server) Count(c method.Condition) { s.metrics.faults[c].Add(1) }

// append appends all families in the text format of Prometheus.
func (m *metrics) append(dst []byte) []byte {
	dst = appendFamily(dst, "bridge_requests_total", "Answers over HTTP.")
	for _, op := range m.operations {
		for i := range op.requests {
			for j := range op.requests[i] {
				n := op.requests[i][j].Load()
				if n == 0 {
					continue
				}
				status := "other"
				if statusLabels[j] != 0 {
					status = strconv.Itoa(statusLabels[j])
				}
				dst = append(append(dst, `bridge_requests_total{operation="`...), op.name...)
				dst = append(append(dst, `",method="`...), methodLabels[i]...)
				dst = append(append(append(dst, `",status_code="`...), status...), `"} `...)
				dst = append(strconv.AppendUint(dst, n, 10), '\n')
			}
		}
	}
	dst = appendFamily(dst, "bridge_request_duration_ms_total", "Time of all requests, in milliseconds.")
	for _, op := range m.operations {
		dst = append(append(append(dst, `bridge_request_duration_ms_total{operation="`...), op.name...), `"} `...)
		ms := float64(op.nanos.Load()) / float64(time.Millisecond)
		dst = append(strconv.AppendFloat(dst, ms, 'f', -1, 64), '\n')
	}
	return m.appendFaults(appendFamily(dst, "bridge_errors_total", "Error envelopes over HTTP, by the code of the spec dialect."))
}

// appendFaults adds up the conditions of each code.
func (m *metrics) appendFaults(dst []byte) []byte {
	var names []string
	counts := map[string]uint64{}
	for i := range m.faults {
		if n := m.faults[i].Load(); n > 0 {
			code := method.Condition(i).Codes().Spec
			if counts[code] == 0 {
				names = append(names, code)
			}
			counts[code] += n
		}
	}
	slices.Sort(names)
	for _, code := range names {
		dst = append(append(append(dst, `bridge_errors_total{code="`...), code...), `"} `...)
		dst = append(strconv.AppendUint(dst, counts[code], 10), '\n')
	}
	return dst
}

func appendFamily(dst []byte, name, help string) []byte {
	dst = append(append(append(append(dst, "# HELP "...), name...), ' '), help...)
	return append(append(append(dst, "\n# TYPE "...), name...), " counter\n"...)
}
