package mcp

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/method"
)

// Values of header fields. net/http only reads them.
var (
	jsonType  = []string{"application/json"}
	bothTypes = []string{"application/json, text/event-stream"}
	noCaching = []string{"no-cache, no-transform"} // as the SDK has it
	postOnly  = []string{http.MethodPost}
	closes    = []string{"close"}
)

// The errors of requests whose body is not looked at.
var (
	errVerb  = &rpcError{http.StatusMethodNotAllowed, jsonrpc.CodeInvalidRequest, "messages are sent by HTTP POST"}
	errMedia = &rpcError{http.StatusUnsupportedMediaType, jsonrpc.CodeInvalidRequest,
		"the Content-Type has to be application/json, without a Content-Encoding"}
	errAccept = &rpcError{http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest,
		"the answer is application/json, which Accept excludes"}
	errRevisions = &rpcError{http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "MCP-Protocol-Version is there twice"}
	errLate      = &rpcError{http.StatusRequestTimeout, jsonrpc.CodeInvalidRequest, "the body did not come in time"}
	errCut       = &rpcError{http.StatusBadRequest, jsonrpc.CodeParseError, "the body cannot be read to its end"}
	errLong      = &rpcError{http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest,
		"the body is over the limit of 1064960 bytes"}
)

// serve answers a request that is admitted.
func (x *exchange) serve(w http.ResponseWriter, r *http.Request) {
	e := x.screen(r)
	if e == nil {
		var f *method.Fault
		if e, f = x.readBody(r); e != nil || f != nil {
			w.Header()["Connection"] = closes
		}
		if f != nil {
			x.refuse(w, f)
			return
		}
	}
	if e != nil {
		if x.out = x.out[:0]; e == errVerb {
			w.Header()["Allow"] = postOnly
		}
		x.reply(w, x.refuseMessage(e))
		return
	}
	x.ctx = r.Context()
	if x.listens(x.in) {
		x.listen(w)
		return
	}
	status := x.respond(x.in)
	if x.fault != nil {
		x.refuse(w, x.fault)
		return
	}
	x.reply(w, status)
}

// screen takes the fields of the header that messages depend on, and returns why the request is
// refused before its body is read.
func (x *exchange) screen(r *http.Request) *rpcError {
	h := r.Header
	x.version, x.verb, x.tool = h["Mcp-Protocol-Version"], h["Mcp-Method"], h["Mcp-Name"]
	switch {
	case r.Method != http.MethodPost:
		return errVerb
	case !isJSON(h["Content-Type"]) || !httpd.IsIdentity(h["Content-Encoding"]):
		return errMedia
	case !accepts(h["Accept"]):
		return errAccept
	case len(x.version) > 1:
		return errRevisions
	}
	return nil
}

// shortReply is how long an answer may be for net/http to add its length.
const shortReply = 2 << 10

// reply sends x.out.
func (x *exchange) reply(w http.ResponseWriter, status int) {
	h := w.Header()
	if len(x.out) > 0 {
		h["Content-Type"], h["Cache-Control"] = jsonType, noCaching
	}
	x.refused = x.failed
	if len(x.out) >= shortReply {
		h["Content-Length"] = []string{strconv.Itoa(len(x.out))}
	}
	w.WriteHeader(status)
	_, _ = w.Write(x.out) // an error is dropped: the peer is gone
}

// isJSON reports whether the type of the body is JSON.
func isJSON(fields []string) bool {
	if len(fields) != 1 {
		return false
	}
	if fields[0] == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(fields[0])
	return err == nil && media == "application/json"
}

// accepts reports whether the client takes JSON: the most exact range that has it decides (RFC 9110
// §12.5.1). Without Accept it takes anything.
func accepts(fields []string) bool {
	exact, takes := 0, true
	for _, f := range fields {
		for part := range strings.SplitSeq(f, ",") {
			media, params, _ := strings.Cut(part, ";")
			level := 0
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "application/json":
				level = 3
			case "application/*":
				level = 2
			case "*/*":
				level = 1
			case "":
				continue
			}
			if exact == 0 {
				takes = false // something is there
			}
			if level > 0 && level >= exact {
				exact, takes = level, !isZero(params)
			}
		}
	}
	return takes
}

// isZero reports whether the parameters of a range have a weight of 0.
func isZero(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		if name, value, _ := strings.Cut(strings.TrimSpace(p), "="); strings.EqualFold(name, "q") {
			weight, err := strconv.ParseFloat(value, 64)
			return err == nil && weight == 0
		}
	}
	return false
}

// readBody reads the body into x.in. With an error or a fault it is not at its end.
func (x *exchange) readBody(r *http.Request) (*rpcError, *method.Fault) {
	var err error
	x.in, err = httpd.ReadBody(r.Body, x.in, r.ContentLength+1, maxBody,
		func(bytes int) bool { return x.h.cfg.Pending.Fit(&x.pending, bytes) })
	switch {
	case err == nil:
		return nil, nil
	case err == httpd.ErrTooLarge:
		return errLong, nil
	case err == httpd.ErrNoSpace:
		return nil, method.Crowded
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errLate, nil
	}
	return errCut, nil
}

// allows reports whether pages of an origin may use the server: those of this machine, and those
// that are named. A request without an origin is not of a page.
func (h *Handler) allows(origins []string) bool {
	if len(origins) == 0 {
		return true
	}
	if len(origins) > 1 {
		return false
	}
	if h.origins[strings.ToLower(origins[0])] {
		return true
	}
	u, err := url.Parse(origins[0])
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && httpd.IsLoopback(u.Host)
}

// allowed returns the origins of pages, and the names of hosts, that a configuration allows.
func allowed(cfg *Config) (origins map[string]bool, hosts httpd.Hosts) {
	origins = map[string]bool{}
	names := cfg.AllowedHosts
	for _, text := range append([]string{cfg.PublicURL}, cfg.AllowedOrigins...) {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			origins[strings.ToLower(u.Scheme+"://"+u.Host)] = true
			names = append(names[:len(names):len(names)], u.Host)
		}
	}
	return origins, httpd.NewHosts(names)
}

// What a page may send and see.
var (
	corsMethods = []string{http.MethodPost}
	corsHeaders = []string{"Accept, Authorization, Content-Type, Last-Event-ID, MCP-Method, MCP-Name, MCP-Protocol-Version, MCP-Session-Id, X-Request-Id"}
	corsExposed = []string{"MCP-Protocol-Version, MCP-Session-Id, WWW-Authenticate, X-Request-Id"}
	corsMaxAge  = []string{"600"}
)

// share lets a page of an allowed origin see the answer. It reports whether the request is a
// browser's question for that, which has no token.
func (h *Handler) share(head http.Header, r *http.Request) (preflight bool) {
	origins := r.Header["Origin"]
	if len(origins) == 0 || !h.allows(origins) {
		return false
	}
	head["Access-Control-Allow-Origin"], head["Vary"] = origins, []string{"Origin"}
	if r.Method != http.MethodOptions || len(r.Header["Access-Control-Request-Method"]) == 0 {
		head["Access-Control-Expose-Headers"] = corsExposed
		return false
	}
	head["Access-Control-Allow-Methods"], head["Access-Control-Allow-Headers"] = corsMethods, corsHeaders
	head["Access-Control-Max-Age"] = corsMaxAge
	return true
}
