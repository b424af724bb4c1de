package mcp

import (
	"net/http"
	"net/url"
	"strings"

	"trunkline/handlers/internal/httpd"
)

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
