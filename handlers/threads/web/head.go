package web

import (
	"net/http"
	"strings"

	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/method"
)

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
