// Package rest serves agent threads over HTTP (threads §2.1): the nine methods as JSON in the
// dialects of both paths, health, readiness and metrics (§4.10), and the read-only extensions
// (§4.11). Streamable MCP and the metadata of the protected resource are mounted as handlers.
//
//	POST /v1/mcp/<method>   legacy dialect
//	POST /v1/<method>       spec dialect
//	GET  /v1/audit /v1/trigger_jobs
//	GET  /health /ready /metrics
//
// A request passes its gates in order, and the first that refuses answers: the token, for every
// path below /v1/ and before the body is read; the route and the HTTP method; the media type and
// the size. What follows, from the decoding of the document on, is decided by a method.Dispatcher.
//
// Where the contract is silent:
//
//   - Failed authentications are counted by peer address. A peer over the limit gets 429 in place
//     of 401, and its valid tokens are accepted all the same: behind a proxy, and on the loopback
//     address, many agents share one address, and one of them must not lock out the others.
//   - A refusal is sent at once. A body that nothing has read is read and dropped behind it, so
//     that the next request can follow. If it is over the limit, or the client waits for 100
//     Continue, the connection ends instead.
//   - GET routes answer HEAD too. An encoded body (Content-Encoding) is an unknown media type.
//   - Malformed HTTP, headers over the limit and headers that do not come in time get the plain
//     answers of net/http. A connection on which nothing came is closed without one.
//   - A server that stops answers what still comes with 503.
package rest

import (
	"cmp"
	"net"
	"net/http"
	"strings"
	"sync"

	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/method"
)

// Server serves agent threads over HTTP. Any goroutine may call its methods.
type Server struct {
	*httpd.Server
	cfg    Config
	limits Limits
	routes map[string]*route // by raw path; never written after New

	challenge method.Challenge
	exchanges sync.Pool
	metrics   metrics
}

// New returns a server. Nothing runs before Serve.
func New(cfg Config) *Server {
	cfg.Surface = cfg.WithDefaults()
	s := &Server{cfg: cfg, limits: cfg.Limits.withDefaults(), challenge: method.NewChallenge(cfg.ResourceMetadata)}
	s.exchanges.New = func() any { return new(exchange) }
	s.addRoutes()
	book := httpd.NewBook("threads", cmp.Or(cfg.Name, "threads-http"))
	s.Server = httpd.NewServer(
		httpd.Config{What: "HTTP", Book: book, Connections: s.limits.Connections, Logger: cfg.Logger,
			HTTP: &http.Server{
				Handler:                      http.HandlerFunc(s.serveHTTP),
				DisableGeneralOptionsHandler: true, // OPTIONS * is a path we do not have, like any other
				ReadHeaderTimeout:            s.limits.HeaderTimeout,
				WriteTimeout:                 s.limits.WriteTimeout,
				IdleTimeout:                  s.limits.IdleTimeout,
				MaxHeaderBytes:               s.limits.HeaderBytes,
			}},
	)
	if cfg.Forward != nil {
		s.HTTP.ConnState = func(nc net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				cfg.Forward.Closed(nc)
			}
		}
	}
	return s
}

// Header names in the canonical form of net/http.
const (
	headRequestID = "X-Request-Id"
	headDialect   = "X-Error-Dialect"
)

// pathOf returns the raw path of a request target, without its query; of an absolute target,
// without its scheme and authority.
func pathOf(target string) string {
	target, _, _ = strings.Cut(target, "?")
	if strings.HasPrefix(target, "/") {
		return target
	}
	_, rest, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[i:]
	}
	return "/"
}

// dialectOf returns the dialect that the fields name, else the one of the path.
func dialectOf(fields []string, d method.Dialect) method.Dialect {
	if len(fields) == 1 {
		switch fields[0] {
		case "spec":
			return method.Spec
		case "legacy":
			return method.Legacy
		}
	}
	return d
}

// isJSON reports whether the body is declared as plain JSON in UTF-8.
func isJSON(h http.Header) bool {
	given := h["Content-Type"]
	if len(given) != 1 || !httpd.IsIdentity(h["Content-Encoding"]) {
		return false
	}
	if given[0] == "application/json" {
		return true
	}
	media, ok := httpd.TextType(given[0])
	return ok && media == "application/json"
}

// mounted lets a handler of another package answer.
func (x *exchange) mounted() {
	w := &mountedWriter{ResponseWriter: x.w, x: x}
	httpd.ReadWithin(x.w, x.s.limits.BodyTimeout)
	x.w.Header()[headRequestID] = x.idValue
	x.route.mount.ServeHTTP(w, x.r)
	if x.status == 0 {
		x.status = http.StatusOK // net/http writes it
	}
}

// mountedWriter is what a mounted handler writes to. It sees the status.
type mountedWriter struct {
	http.ResponseWriter
	x *exchange
}

// WriteHeader passes the status on.
func (w *mountedWriter) WriteHeader(status int) {
	x := w.x
	if x.status != 0 || status < http.StatusOK {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	x.status = status
	httpd.WriteWithin(x.w, x.s.limits.WriteTimeout)
	w.ResponseWriter.WriteHeader(status)
}

// Write passes the body on.
func (w *mountedWriter) Write(p []byte) (int, error) {
	if w.x.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Flush sends what was written.
func (w *mountedWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (w *mountedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// forward lets Config.Forward answer.
func (x *exchange) forward() {
	text := ""
	if x.path == mcpPath || x.path == mcpPath+"/" || strings.HasPrefix(x.path, tokenPrefix) {
		text, _ = method.Bearer(x.r.Header["Authorization"])
	}
	ended := false
	defer func() {
		// The client has to see an answer behind which the connection ends.
		if _, closing := x.w.Header()["Connection"]; x.status != 0 && (closing || !ended) {
			httpd.Linger(x.r)
		}
	}()
	f := x.s.cfg.Forward.Forward(&mountedWriter{ResponseWriter: x.w, x: x}, x.r, text)
	if ended = true; f != nil {
		x.refuse(f)
	}
}
