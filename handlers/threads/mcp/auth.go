package mcp

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// maxTokenBytes bounds a token (threads §3.1).
const maxTokenBytes = 8192

// authenticate takes the claims from the fields of Authorization.
func (x *exchange) authenticate(fields []string) *method.Fault {
	if len(fields) == 0 {
		return unauthorized("missing")
	}
	text, ok := bearer(fields)
	if !ok {
		return unauthorized("malformed")
	}
	claims, err := x.h.cfg.Verify(text)
	if err == nil {
		x.caller.Claims = claims
		return nil
	}
	var no *token.Refusal
	switch {
	case errors.Is(err, token.ErrOutOfScope):
		return &method.Fault{Condition: method.OtherWorkspace, Message: "the token is for a workspace that is not served here"}
	case !errors.As(err, &no):
		return unauthorized("malformed")
	case no.Retryable:
		return &method.Fault{Condition: method.KeysUnavailable, Message: "tokens cannot be verified now", Details: reason(no.Reason)}
	}
	return unauthorized(no.Reason)
}

// bearer returns the token of the Authorization fields. ok is false unless there is one field with
// one token.
func bearer(fields []string) (text string, ok bool) {
	scheme, text, _ := strings.Cut(fields[0], " ")
	text = strings.TrimLeft(text, " ")
	if len(fields) != 1 || !strings.EqualFold(scheme, "bearer") || text == "" || len(text) > maxTokenBytes {
		return "", false
	}
	return text, !strings.ContainsAny(text, " \t,")
}

func unauthorized(why string) *method.Fault {
	return &method.Fault{Condition: method.Unauthorized, Message: "the bearer token is not accepted", Details: reason(why)}
}

func reason(why string) []byte { return jsonx.Build(nil).Text("reason", why).End() }

// allows reports whether pages of an origin may use the server: those of this machine, and those
// that are named. A request without an origin is not of a page.
func (h *Handler) allows(origins []string) bool {
	if len(origins) == 0 {
		return true
	}
	if len(origins) > 1 {
		return false
	}
	for _, o := range h.cfg.AllowedOrigins {
		if strings.EqualFold(o, origins[0]) {
			return true
		}
	}
	u, err := url.Parse(origins[0])
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && isLoopback(u.Hostname())
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

// isLoopback reports whether a host without a port is this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
