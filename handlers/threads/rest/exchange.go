package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/method"
)

// exchange is one request and its answer. It is pooled.
type exchange struct {
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	route  *route
	path   string // raw
	caller method.Caller
	peer   obs.Peer
	began  int64 // ns of connection.Mono
	status int   // of the answer; 0 before it

	bodyRead bool // the body has come to its end
	abort    bool // what is left on the connection must not be read as a request
	pending  int  // its part of Config.Pending

	// These are kept for the next request. id is that of the request, idValue its header value.
	id, in, out []byte
	idValue     []string
}

// serveHTTP answers one request.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	x := s.exchanges.Get().(*exchange)
	path := pathOf(r.RequestURI)
	peer, began := httpd.Peer(r.Context())
	*x = exchange{s: s, w: w, r: r, path: path, route: s.routeOf(path), peer: peer, began: began, id: x.id, in: x.in, out: x.out}
	x.identify()
	x.caller.Dialect = dialectOf(r.Header[headDialect], x.route.dialect)
	x.run()
	x.account()
	abort := x.abort
	s.cfg.Pending.Free(&x.pending)
	s.give(x)
	if abort {
		panic(http.ErrAbortHandler) // net/http closes the connection, without a log line
	}
}

// give puts x back for another request.
func (s *Server) give(x *exchange) {
	*x = exchange{id: x.id, in: httpd.Keep(x.in), out: httpd.Keep(x.out)}
	s.exchanges.Put(x)
}

// identify takes the id that the client chose, or makes one (threads §2.1).
func (x *exchange) identify() {
	given := x.r.Header[headRequestID]
	if len(given) == 1 && method.ValidRequestID(given[0]) {
		x.id, x.idValue, x.caller.FromClient = append(x.id[:0], given[0]...), given, true
	} else {
		x.id = x.s.cfg.IDs(x.id[:0])
		x.idValue, x.caller.BadRequestID = []string{string(x.id)}, len(given) > 0
	}
	x.caller.RequestID = x.id
}

// run passes the request through its gates, as far as they concern its head.
func (x *exchange) run() {
	defer x.recoverPanic()
	if httpd.HeaderBytes(x.r) > x.s.limits.HeaderBytes {
		httpd.HangUp(x.w, x.r)
		x.reply(http.StatusRequestHeaderFieldsTooLarge, textType, []byte("431 Request Header Fields Too Large"))
		return
	}
	if httpd.Ambiguous(x.r) {
		httpd.HangUp(x.w, x.r)
		x.reply(http.StatusBadRequest, textType, []byte("400 Bad Request: "+httpd.TextAmbiguous))
		return
	}
	if x.s.cfg.Forward == nil && strings.HasPrefix(x.path, tokenPrefix) {
		claims, f := x.s.cfg.Authenticate(x.r.Header["Authorization"], x.r.RemoteAddr)
		if x.caller.Claims = claims; f != nil { // gate G1
			x.refuse(f)
			return
		}
	}
	if r := x.route; r.httpMethod != "" && x.r.Method != r.httpMethod && (x.r.Method != http.MethodHead || r.httpMethod != http.MethodGet) {
		x.w.Header()["Allow"] = r.allow
		x.refuse(&method.Fault{Condition: method.WrongHTTPMethod, Message: "this path is served by HTTP " + r.allow[0] + " only"})
		return
	}
	x.route.serve(x)
}

// call runs a method: gate G3 as far as it concerns the body as a whole, and then what the
// dispatcher decides.
func (x *exchange) call() {
	s := x.s
	if f := x.screen(); f != nil {
		x.refuse(f)
		return
	}
	if f := x.readBody(); f != nil {
		httpd.HangUp(x.w, x.r)
		x.refuse(f)
		return
	}
	doc := x.in
	if len(doc) >= 3 && doc[0] == 0xef && doc[1] == 0xbb && doc[2] == 0xbf {
		doc = doc[3:] // a byte order mark
	}
	x.caller.Waited = s.cfg.Follow == nil
	out, o := s.cfg.Dispatcher.Call(x.out[:0], &x.caller, x.route.row, doc)
	if o.Wait != nil {
		x.in, doc = httpd.Keep(x.in[:0]), o.Wait.Again // what waits holds no memory of others
		s.cfg.Pending.Free(&x.pending)
		if o.Fault = s.cfg.Follow.Wait(x.r.Context(), x.caller.Claims, x.bearer(), o.Wait); o.Fault == nil {
			x.caller.Waited = true
			out, o = s.cfg.Dispatcher.Call(out, &x.caller, x.route.row, doc)
		}
	}
	x.out = out
	if o.Index != 0 {
		if err := s.cfg.Dispatcher.Await(o.Index); err != nil {
			o.Fault = &method.Fault{Condition: method.Unavailable, Message: "the change cannot be stored"}
		}
	}
	if o.Fault != nil {
		x.refuse(o.Fault)
		return
	}
	if o.Replay {
		x.w.Header()["X-Idempotent-Replay"] = isTrue
	}
	x.succeed()
}

// bearer returns the token of the request.
func (x *exchange) bearer() string {
	text, _ := method.Bearer(x.r.Header["Authorization"])
	return text
}

// succeed answers with x.out, if there is room for it. Long ones are of what reads.
func (x *exchange) succeed() {
	if len(x.out) > httpd.Trusted && !x.s.cfg.Pending.Fit(&x.pending, len(x.in)+len(x.out)) {
		x.refuse(method.Crowded)
		return
	}
	x.reply(http.StatusOK, jsonType, x.out)
}

// screen returns what speaks against the body before it is read; nil if nothing does.
func (x *exchange) screen() *method.Fault {
	switch {
	case !isJSON(x.r.Header):
		return &method.Fault{Condition: method.WrongMediaType, Message: "the Content-Type must be application/json in UTF-8"}
	case x.r.ContentLength > int64(x.s.limits.BodyBytes):
		return tooLarge
	case x.s.Draining.Load():
		return &method.Fault{Condition: method.Unavailable, Message: "the server is stopping"}
	}
	return nil
}

var tooLarge = &method.Fault{Condition: method.TooLarge, Message: "the body is over the limit"}

// readBody reads the body into x.in. After a fault the connection cannot be used any more.
func (x *exchange) readBody() *method.Fault {
	if x.r.ContentLength == 0 {
		x.in = x.in[:0]
		return nil
	}
	httpd.ReadWithin(x.w, x.s.limits.BodyTimeout)
	var err error
	x.in, err = httpd.ReadBody(x.r.Body, x.in, x.r.ContentLength, x.s.limits.BodyBytes,
		func(bytes int) bool { return x.s.cfg.Pending.Fit(&x.pending, bytes) })
	switch {
	case err == nil:
		x.bodyRead = true
		return nil
	case err == httpd.ErrTooLarge:
		return tooLarge
	case err == httpd.ErrNoSpace:
		return method.Crowded
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &method.Fault{Condition: method.BodyTimeout, Message: "the body did not come in time"}
	}
	return &method.Fault{Condition: method.Invalid, Message: "the body cannot be read to its end"}
}

// recoverPanic answers a panic, so that the request does not end the server.
func (x *exchange) recoverPanic() {
	p := recover()
	switch {
	case p == nil:
		return
	case p == http.ErrAbortHandler: // of a mounted handler
		x.abort = true
		return
	}
	x.s.cfg.Logger.Error("cannot answer an HTTP request: panic", "request_id", string(x.id), "operation", x.route.operation, "panic", p, "stack", string(debug.Stack()))
	x.in, x.out = nil, nil // may still be in use
	if x.status != 0 {
		x.abort = true
		return
	}
	clear(x.w.Header())
	x.refuse(&method.Fault{Condition: method.Defect, Message: "the request could not be served"})
}

// account counts the answer and logs it, unless another server does. Refusals for a time, of which
// there may be many, are logged as little as successes.
func (x *exchange) account() {
	if x.s.cfg.Forward != nil {
		return
	}
	took := time.Duration(connection.Mono() - x.began)
	x.s.metrics.count(x.route.label, x.r.Method, x.status, took)
	if x.route.operation != mcpOperation { // the handler of MCP knows which methods are called
		x.s.cfg.Meter.Record(x.route.meterRow(), int64(took), 1, method.Failed(x.status >= http.StatusBadRequest), x.peer)
	}
	level := slog.LevelDebug
	if x.status >= http.StatusBadRequest && x.status != http.StatusTooManyRequests {
		level = slog.LevelInfo
	}
	if l := x.s.cfg.Logger; l.Enabled(context.Background(), level) {
		l.LogAttrs(context.Background(), level, "request", slog.String("request_id", string(x.id)), slog.String("operation", x.route.operation),
			slog.Int("status", x.status), slog.Float64("duration_secs", took.Seconds()))
	}
}
