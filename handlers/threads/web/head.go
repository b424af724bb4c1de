package web

import (
	"errors"
	"mime"
	"net/http"
	"strings"

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

// bearer returns the token of the Authorization fields of a request. ok is false unless there is
// one field with one token.
func bearer(fields []string) (token string, ok bool) {
	if len(fields) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(fields[0], " ")
	token = strings.TrimLeft(token, " ")
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return "", false
	}
	return token, !strings.ContainsAny(token, " \t,")
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
	if len(given) != 1 || len(h["Content-Encoding"]) > 0 && !isIdentity(h["Content-Encoding"]) {
		return false
	}
	if given[0] == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(given[0])
	if err != nil && (!errors.Is(err, mime.ErrInvalidMediaParameter) || strings.Contains(strings.ToLower(given[0]), "charset")) {
		return false // parameters are ignored, but an unreadable character set
	}
	charset, set := params["charset"]
	return media == "application/json" && (!set || strings.EqualFold(charset, "utf-8"))
}

// isIdentity reports whether the codings leave a body as it is.
func isIdentity(codings []string) bool {
	for _, c := range codings {
		if !strings.EqualFold(c, "identity") {
			return false
		}
	}
	return true
}
