package httpd

import (
	"net"
	"net/netip"
	"strings"
)

// Hosts are names under which a server on a loopback address is asked, beside those of this
// machine. A page from elsewhere, in a browser here, reaches the server under a name of its own
// that was made to point here: such a name is not among them.
type Hosts map[string]bool

// NewHosts returns the set of names, each with a port or without.
func NewHosts(names []string) Hosts {
	h := Hosts{}
	for _, n := range names {
		if n = hostname(n); n != "" {
			h[n] = true
		}
	}
	return h
}

// Allow reports whether a Host, with a port or without, names this machine or is in the set.
func (h Hosts) Allow(host string) bool { return IsLoopback(host) || h[hostname(host)] }

// IsLoopback reports whether a Host, with a port or without, is localhost or a loopback address.
func IsLoopback(host string) bool {
	switch host { // nearly always
	case "127.0.0.1", "localhost":
		return true
	}
	host = hostname(host)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// hostname returns the name in a Host: in lower case, without the port, brackets and a final dot.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
