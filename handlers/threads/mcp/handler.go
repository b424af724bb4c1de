// Package mcp serves agent threads to clients of the Model Context Protocol over streamable HTTP
// (threads §2.2): a tool for each method, threads as resources, and two prompts.
//
// A responder answers the messages of all revisions, over HTTP and on a Stream, which is stdio. It
// refuses what no two readers may understand in two ways before anything runs, splits batches, and
// answers ordinary tool calls by itself, as the SDK would, byte by byte. The official SDK has the
// rest, one message at a time, under an id of the responder's: it reads numbers as floating point.
// In front of HTTP are the checks of Host, Origin, token, Accept and media type.
package mcp

import (
	"bytes"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/follow"
	"trunkline/handlers/threads/method"
)

// maxBody bounds the body of a request: an input of the largest size, and what MCP has around it.
const maxBody = 1<<20 + 16<<10

// maxBeside is how many requests the SDK answers side by side, maxOwn how many of one agent: a
// client that does not read holds its place. Further ones wait, at most waitBeside.
const (
	maxBeside  = 64
	maxOwn     = maxBeside / 4
	waitBeside = 5 * time.Second
)

// A result of the SDK takes some 15 times its bytes. Short ones are not counted.
const (
	resultCost  = 15
	shortResult = 4 << 10
)

// endpoint is the operation of refusals that are about no method (threads §4.10).
const endpoint = "mcp_endpoint"

// Config is what a Handler works with.
type Config struct {
	// Surface has the methods. Every answer with 401 or 403 goes to the Refused of its Dispatcher,
	// and so do the faults of tool calls that are answered so over plain HTTP. IDs are for requests
	// whose answer has no X-Request-Id yet. Its Logger gets the panics of calls.
	method.Surface
	// PublicURL is where clients reach the server. AllowedOrigins may use it from web pages, as may
	// its own origin and those on loopback. AllowedHosts are names that requests on a loopback
	// address may have, beside those of this machine, of PublicURL and of AllowedOrigins.
	PublicURL                    string
	AllowedOrigins, AllowedHosts []string
	// CallsPerMinute bounds the tool calls of an agent; it has to be at least 1.
	CallsPerMinute int
	// Count gets the condition of each error envelope; nil: none.
	Count func(method.Condition)
	// Follow has the waits and streams of all surfaces; nil: no call waits.
	Follow *follow.Server
	// Draining reports that the server is stopping; nil: it is not.
	Draining func() bool
}

// Handler answers requests to /mcp.
type Handler struct {
	cfg       Config
	sdk       http.Handler
	origins   map[string]bool // in lower case
	hosts     httpd.Hosts
	limiter   *limiter
	beside    chan struct{} // has an element for each request that the SDK answers
	own       own           // counts these requests of each agent
	listening own           // and the streams of subscriptions
	challenge method.Challenge
	exchanges sync.Pool // of *exchange
}

// New returns a handler.
func New(cfg Config) *Handler {
	cfg.Surface = cfg.WithDefaults()
	if cfg.Count == nil {
		cfg.Count = func(method.Condition) {}
	}
	h := &Handler{cfg: cfg, limiter: newLimiter(max(1, cfg.CallsPerMinute)), beside: make(chan struct{}, maxBeside), challenge: method.NewChallenge(cfg.ResourceMetadata)}
	h.exchanges.New = func() any {
		x := &exchange{h: h}
		x.to, x.rows = x, cfg.Rows
		return x
	}
	h.sdk = newSDK(cfg.Rows, cfg.Follow != nil)
	h.origins, h.hosts = allowed(&cfg)
	return h
}

// SetCallsPerMinute changes Config.CallsPerMinute, which is at least 1.
func (h *Handler) SetCallsPerMinute(n int) { h.limiter.setRate(n) }

// exchange is one request and what is known of it. Those of which the SDK saw nothing are pooled.
type exchange struct {
	h *Handler
	responder
	caller method.Caller
	bearer string // the token of caller

	peer  obs.Peer
	began int64 // ns of connection.Mono

	turn    sync.Mutex // of the calls: one that the SDK began may go on beside the next one
	called  bool       // a tool
	refused bool       // the request as a whole
	sdk     bool       // the SDK saw a part of the request, so that calls may go on

	pending int  // its part of Config.Pending
	counted bool // the results of the SDK are part of that
	results int  // bytes of these

	id, in []byte // kept for the next request
}

// give puts x back for another request.
func (h *Handler) give(x *exchange) {
	if x.sdk {
		return
	}
	h.cfg.Pending.Free(&x.pending)
	*x = exchange{h: h, id: x.id, in: httpd.Keep(x.in), responder: responder{to: x, rows: h.cfg.Rows, strict: x.strict,
		text: httpd.Keep(x.text), out: httpd.Keep(x.out)}}
	h.exchanges.Put(x)
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := h.exchanges.Get().(*exchange)
	x.peer, x.began = httpd.Peer(r.Context())
	if given := w.Header()["X-Request-Id"]; len(given) == 1 {
		x.id = append(x.id[:0], given[0]...)
	} else {
		x.id = h.cfg.IDs(x.id[:0])
		w.Header()["X-Request-Id"] = []string{string(x.id)}
	}
	x.caller.RequestID = x.id
	if h.share(w.Header(), r) {
		w.WriteHeader(http.StatusNoContent)
		x.answered()
		h.give(x)
		return
	}
	if f := x.admit(r); f != nil {
		if f.Condition.Codes().Status == http.StatusUnauthorized {
			w.Header()["Www-Authenticate"] = h.challenge.For(r.Header["Authorization"])
		}
		x.refuse(w, f)
	} else {
		x.serve(w, r)
	}
	x.answered()
	h.give(x)
}

// answered counts a request that called no tool.
func (x *exchange) answered() {
	x.turn.Lock()
	defer x.turn.Unlock()
	if !x.called {
		x.h.cfg.Meter.Record(method.AsideEndpoint.Number(), connection.Mono()-x.began, 1, method.Failed(x.refused), x.peer)
	}
}

// serveSDK implements transport.
func (x *exchange) serveSDK(w http.ResponseWriter, r *http.Request) *method.Fault {
	h := x.h
	x.sdk = true
	defer x.forget()
	who := caller{x.caller.Claims.Workspace, x.caller.Claims.Agent}
	if !h.own.enter(who) {
		return &method.Fault{Condition: method.Unavailable, Message: "the agent makes too many requests at once"}
	}
	defer h.own.leave(who)
	x.turn.Lock()
	x.counted, x.results = true, 0
	x.turn.Unlock()
	wait := time.NewTimer(waitBeside)
	defer wait.Stop()
	select {
	case h.beside <- struct{}{}:
		defer func() { <-h.beside }()
	case <-wait.C:
		return &method.Fault{Condition: method.Unavailable, Message: "the server answers too many requests at once"}
	case <-r.Context().Done():
		return nil
	}
	h.sdk.ServeHTTP(w, r)
	return nil
}

// forget gives back what the request had in memory. Calls of the SDK that go on take nothing more.
func (x *exchange) forget() {
	x.turn.Lock()
	defer x.turn.Unlock()
	x.counted = false
	x.h.cfg.Pending.Free(&x.pending)
}

// admit checks who asks, and from where.
func (x *exchange) admit(r *http.Request) *method.Fault {
	if !x.h.allows(r.Header["Origin"]) {
		return &method.Fault{Condition: method.Forbidden,
			Message: "pages of this origin may not use the server: threads.mcp_origins has those that may"}
	}
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && a.IP.IsLoopback() &&
		!x.h.hosts.Allow(r.Host) {
		return &method.Fault{Condition: method.Forbidden,
			Message: "the server has another name than the Host of this request: " +
				"threads.allowed_hosts has further ones, and threads.public_url counts, too"}
	}
	claims, f := x.h.cfg.Authenticate(r.Header["Authorization"], r.RemoteAddr)
	if f == nil {
		x.caller.Claims = claims
		x.bearer, _ = method.Bearer(r.Header["Authorization"])
	}
	return f
}

// refuse answers with the error envelope of f.
func (x *exchange) refuse(w http.ResponseWriter, f *method.Fault) {
	codes, head := f.Condition.Codes(), w.Header()
	status := codes.Status
	x.refused = true
	x.h.cfg.Count(f.Condition)
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		x.h.cfg.Dispatcher.Refused(&x.caller, endpoint, f)
	}
	if codes.Retryable {
		head["Retry-After"] = method.RetryAfter(f)
	}
	head["Content-Type"], head["Cache-Control"] = []string{"application/json; charset=utf-8"}, []string{"no-store"}
	w.WriteHeader(status)
	_, _ = w.Write(method.AppendEnvelope(nil, f, method.Spec, x.caller.RequestID, x.h.cfg.Now()))
}

// call implements transport.
func (x *exchange) call(dst []byte, row *method.Row, args []byte, checked bool) (text []byte, failed bool) {
	h, start := x.h, len(dst)
	x.turn.Lock()
	x.called = true
	x.turn.Unlock()
	defer func() {
		h.cfg.Meter.Record(row.Number(), connection.Mono()-x.began, 1, method.Failed(failed), x.peer)
	}()
	defer func() {
		if p := recover(); p != nil {
			h.cfg.Logger.Error("a tool call panicked", "method", row.Name, "panic", p, "stack", string(debug.Stack()))
			text, failed = x.envelope(dst[:start], row, &method.Fault{Condition: method.Defect, Message: "the request could not be served"}), true
		}
	}()
	if h.cfg.Draining != nil && h.cfg.Draining() {
		return x.envelope(dst, row, &method.Fault{Condition: method.Unavailable, Message: "the server is stopping"}), true
	}
	if wait := h.limiter.take(x.caller.Claims, h.cfg.Now()); wait > 0 {
		return x.envelope(dst, row, method.Limited(wait, "the agent made too many tool calls")), true
	}
	text, o := x.dispatch(dst, row, args, checked, x.sdk || h.cfg.Follow == nil)
	if o.Wait != nil {
		args = o.Wait.Again
		x.release()
		if o.Fault = h.cfg.Follow.Wait(x.ctx, x.caller.Claims, x.bearer, o.Wait); o.Fault == nil {
			text, o = x.dispatch(dst, row, args, checked, true)
		}
	}
	if o.Index != 0 {
		if err := h.cfg.Dispatcher.Await(o.Index); err != nil {
			o.Fault = &method.Fault{Condition: method.Unavailable, Message: "the change cannot be stored"}
		}
	}
	if o.Fault != nil {
		return x.envelope(text[:start], row, o.Fault), true
	}
	return text, false
}

// release gives back the memory of the request, unless it is a batch, before the call waits.
func (x *exchange) release() {
	x.turn.Lock()
	defer x.turn.Unlock()
	if !isBatch(x.in) {
		x.m.id.Raw = bytes.Clone(x.m.id.Raw)
		x.in = nil
		x.h.cfg.Pending.Free(&x.pending)
	}
}

// dispatch runs a method. waited is as method.Caller.Waited.
func (x *exchange) dispatch(dst []byte, row *method.Row, args []byte, checked, waited bool) ([]byte, method.Outcome) {
	x.turn.Lock()
	defer x.turn.Unlock()
	x.caller.Checked, x.caller.Waited = checked, waited
	text, o := x.h.cfg.Dispatcher.Call(dst, &x.caller, row, args)
	n := len(text) - len(dst)
	if x.counted && n > shortResult && !x.h.cfg.Pending.Fit(&x.pending, len(x.in)+resultCost*(x.results+n)) { // of a method that reads
		return dst, method.Outcome{Fault: method.Crowded}
	}
	x.results += n
	return text, o
}

// crowded implements transport.
func (x *exchange) crowded(dst []byte, row *method.Row, bytes int) (text []byte, is bool) {
	if x.h.cfg.Pending.Fit(&x.pending, len(x.in)+bytes) {
		return dst, false
	}
	return x.envelope(dst, row, method.Crowded), true
}

// notified implements transport: a request of HTTP knows nothing of others.
func (x *exchange) notified(*message) {}

// envelope appends the error envelope of a tool call.
func (x *exchange) envelope(dst []byte, row *method.Row, f *method.Fault) []byte {
	x.h.cfg.Count(f.Condition)
	if status := f.Condition.Codes().Status; status == http.StatusUnauthorized || status == http.StatusForbidden {
		x.h.cfg.Dispatcher.Refused(&x.caller, "mcp."+row.Name, f)
	}
	return method.AppendEnvelope(dst, f, method.Spec, x.caller.RequestID, x.h.cfg.Now())
}
