package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

const (
	subprotocol      = "exacta.ipc.v1"
	tokenSubprotocol = "exacta.token." // and the token in base64url
)

// rules decide who may connect (exacta §2.2).
type rules struct {
	path    string
	origins []string      // beside those of this machine
	token   func() string // empty: none is asked for
	same    bool          // an origin that is the host itself may connect
}

// refuse answers a request that is no handshake, or that may not connect. It returns the status, 0
// for one that may.
func (x *rules) refuse(w http.ResponseWriter, r *http.Request) (status int) {
	why := ""
	switch {
	case r.URL.Path != x.path:
		status, why = http.StatusNotFound, "not found"
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		status, why = http.StatusMethodNotAllowed, "method not allowed"
	case !upgrades(r):
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Sec-WebSocket-Version", "13")
		status, why = http.StatusUpgradeRequired, "a WebSocket of version 13 is expected"
	case !x.allows(r):
		status, why = http.StatusForbidden, "this origin may not connect"
	case !x.knows(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		status, why = http.StatusUnauthorized, "the token is missing or wrong"
	default:
		return 0
	}
	http.Error(w, why, status)
	return status
}

// upgrades reports whether a request asks for a WebSocket of version 13.
func upgrades(r *http.Request) bool {
	return r.ProtoAtLeast(1, 1) && hasToken(r, "Connection", "upgrade") && hasToken(r, "Upgrade", "websocket") &&
		slices.Equal(tokens(r, "Sec-Websocket-Version"), []string{"13"})
}

// tokens returns the elements of a header that is a list.
func tokens(r *http.Request, name string) []string {
	list := strings.Split(strings.Join(r.Header.Values(name), ","), ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

func hasToken(r *http.Request, name, token string) bool {
	return slices.ContainsFunc(tokens(r, name), func(t string) bool { return strings.EqualFold(t, token) })
}

// allows reports whether the origin of a request may connect.
func (x *rules) allows(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	if len(origins) > 1 {
		return false
	}
	origin := origins[0]
	if isLocal(origin) || slices.ContainsFunc(x.origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
		return true
	}
	_, host, _ := strings.Cut(origin, "://")
	return x.same && strings.EqualFold(host, r.Host) && isAddress(r.Host)
}

// isLocal reports whether an origin is of this machine, or of a desktop application.
func isLocal(origin string) bool {
	if origin == "tauri://localhost" || origin == "http://tauri.localhost" || origin == "https://tauri.localhost" {
		return true
	}
	scheme, host, _ := strings.Cut(origin, "://")
	if scheme != "http" && scheme != "https" {
		return false
	}
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i+1:]
		if port == "" || strings.Trim(port, "0123456789") != "" || len(port) > len("65535") {
			return false
		}
	}
	return name == "localhost" || name == "127.0.0.1" || name == "[::1]"
}

// isAddress reports whether the Host of a request is an address and not a name. A page from
// elsewhere reaches this server under a name that it has made point here, and then seems to be of
// the same origin; it cannot do so with an address.
func isAddress(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}

// names reports whether the Host of a request is an address, this machine, or the host of an origin
// that may connect.
func (x *rules) names(r *http.Request) bool {
	if isAddress(r.Host) || isLocal("http://"+r.Host) {
		return true
	}
	return slices.ContainsFunc(x.origins, func(o string) bool {
		u, err := url.Parse(o)
		return err == nil && strings.EqualFold(u.Host, r.Host)
	})
}

// knows reports whether a request shows the token. The time does not depend on what it shows.
func (x *rules) knows(r *http.Request) bool {
	token := x.token()
	if token == "" {
		return true
	}
	if scheme, given, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") && equal(given, token) {
		return true
	}
	for _, p := range tokens(r, "Sec-Websocket-Protocol") {
		encoded, ok := strings.CutPrefix(p, tokenSubprotocol)
		if !ok {
			continue
		}
		given, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(encoded, "="))
		if err == nil && equal(string(given), token) {
			return true
		}
	}
	return false
}

// equal compares secrets. Their length is hidden too.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
