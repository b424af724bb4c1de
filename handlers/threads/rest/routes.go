package rest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/handlers/threads/method"
)

// Paths, and the prefixes of paths. All below the first one needs a token, and so does mcpPath.
const (
	tokenPrefix  = "/v1/"
	legacyPrefix = "/v1/mcp/"
	mcpPath      = "/mcp"
	streamPath   = "/v1/stream"
)

// route is one path.
type route struct {
	row    *method.Row
	extend Extension
	mount  http.Handler
	serve  func(*exchange)
	// httpMethod is the one that is served; GET includes HEAD; empty: the handler decides. allow is
	// the value of Allow.
	httpMethod string
	allow      []string
	// operation is the name for logs and the audit, label its index in the metrics.
	operation string
	label     int
	dialect   method.Dialect
}

// Values of Allow.
var (
	postOnly = []string{http.MethodPost}
	getOnly  = []string{http.MethodGet + ", " + http.MethodHead}
)

// nowhere are the routes of paths that are not there, by their dialect.
var nowhere = [...]route{
	method.Spec:   {operation: otherOperation, label: otherLabel, serve: (*exchange).lost},
	method.Legacy: {operation: otherOperation, label: otherLabel, serve: (*exchange).lost, dialect: method.Legacy},
}

// forwarded are the routes of a server that forwards, by their dialect.
var forwarded = [...]route{
	method.Spec:   {operation: otherOperation, label: otherLabel, serve: (*exchange).forward},
	method.Legacy: {operation: otherOperation, label: otherLabel, serve: (*exchange).forward, dialect: method.Legacy},
}

// addRoutes builds the table of all paths.
func (s *Server) addRoutes() {
	s.routes = map[string]*route{}
	add := func(path string, r route) {
		r.label = s.metrics.name(r.operation)
		s.routes[path] = &r
	}
	get := func(path string, serve func(*exchange), extend Extension) route {
		return route{serve: serve, extend: extend, httpMethod: http.MethodGet, allow: getOnly, operation: http.MethodGet + " " + path}
	}
	s.metrics.name(otherOperation)
	for i := range s.cfg.Rows {
		row := &s.cfg.Rows[i]
		r := route{row: row, serve: (*exchange).call, httpMethod: http.MethodPost, allow: postOnly, operation: "mcp." + row.Name}
		add(tokenPrefix+row.Name, r)
		r.dialect = method.Legacy
		add(legacyPrefix+row.Name, r)
	}
	add("/health", get("/health", (*exchange).health, nil))
	add("/ready", get("/ready", (*exchange).ready, nil))
	add("/metrics", get("/metrics", (*exchange).metrics, nil))
	// The metrics count the rest as other.
	extend := func(path string, e Extension) {
		if e != nil {
			r := get(path, (*exchange).extension, e)
			s.routes[path] = &r
		}
	}
	extend("/v1/audit", s.cfg.Audit)
	extend("/v1/trigger_jobs", s.cfg.Jobs)
	if s.cfg.Follow != nil {
		r := get(streamPath, (*exchange).stream, nil)
		s.routes[streamPath] = &r
	}
	if s.cfg.MCP != nil {
		for _, path := range []string{mcpPath, mcpPath + "/"} {
			add(path, route{mount: s.cfg.MCP, serve: (*exchange).mounted, operation: mcpOperation})
		}
	}
	if s.cfg.Metadata != nil {
		for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
			add(path, route{mount: s.cfg.Metadata, serve: (*exchange).mounted, operation: otherOperation})
		}
	}
}

// meterRow returns the row of the meter that counts requests for the route.
func (r *route) meterRow() int {
	switch {
	case r.row != nil:
		return r.row.Number()
	case r.operation == http.MethodGet+" "+streamPath:
		return method.AsideStream.Number()
	case r == &nowhere[method.Spec] || r == &nowhere[method.Legacy]:
		return method.AsideInvalid.Number()
	}
	return method.AsideOther.Number()
}

// routeOf returns the route of a raw path. The comparison is exact.
func (s *Server) routeOf(path string) *route {
	if r := s.routes[path]; r != nil && s.cfg.Forward == nil {
		return r
	}
	dialect := method.Spec
	if strings.HasPrefix(path, legacyPrefix) {
		dialect = method.Legacy
	}
	if s.cfg.Forward != nil {
		return &forwarded[dialect]
	}
	return &nowhere[dialect]
}

// lost answers a path that is not there.
func (x *exchange) lost() {
	name := strconv.QuoteToASCII(jsonx.Clip(x.path, maxShown))
	x.refuse(&method.Fault{Condition: method.NotFound, Message: "there is no method or path " + name})
}

// maxShown is how much of a text of a peer a message shows.
const maxShown = 48

// health answers that the process runs.
func (x *exchange) health() { x.state(http.StatusOK, "true", "") }

// ready answers whether methods can be served: the store can write, and tokens can be verified.
func (x *exchange) ready() {
	reason := ""
	if s := x.s; s.Draining.Load() {
		reason = "draining"
	} else if s.cfg.Unready != nil {
		reason = s.cfg.Unready()
	}
	if reason != "" {
		x.w.Header()["Retry-After"] = method.RetryAfter(&method.Fault{})
		x.state(http.StatusServiceUnavailable, "false", reason)
		return
	}
	x.state(http.StatusOK, "true", "")
}

func (x *exchange) state(status int, ok, reason string) {
	x.out = append(append(append(x.out[:0], `{"ok":`...), ok...), `,"service":"bridge-api","now":"`...)
	x.out = append(method.AppendTime(x.out, x.s.cfg.Now()), '"')
	if reason != "" {
		x.out = jsonx.AppendString(append(x.out, `,"reason":`...), reason)
	}
	x.out = append(x.out, '}')
	x.reply(status, jsonType, x.out)
}

// metrics answers with the counters in the text format of Prometheus.
func (x *exchange) metrics() {
	x.out = x.s.metrics.append(x.out[:0])
	if more := x.s.cfg.Metrics; more != nil {
		x.out = more(x.out)
	}
	x.reply(http.StatusOK, metricsType, x.out)
}

// extension answers a GET route of threads §4.11.
func (x *exchange) extension() {
	query, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		x.refuse(&method.Fault{Condition: method.Invalid, Message: "the query cannot be read"})
		return
	}
	out, f := x.route.extend(&x.caller, query, x.out[:0])
	if x.out = out; f != nil {
		x.refuse(f)
		return
	}
	x.succeed()
}
