package ops

import (
	"fmt"
	"net"
	"net/http"
	"strings"

	"trunkline/handlers/internal/conns"
)

// named answers under the names of this machine and those of hosts alone, where only this machine
// reaches the listener: a page from elsewhere, in a browser here, reaches it under a name of its
// own that points here. Probes and scrapers may come by a proxy under any name, and read nothing of
// clients; projects have a rule of their own. Browsers always send a name.
func named(ln net.Listener, hosts conns.Hosts, next http.Handler) http.Handler {
	if at, ok := ln.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "" || hosts.Allow(r.Host) || forAll(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		refuse(w, &Refusal{Status: http.StatusMisdirectedRequest,
			Text: fmt.Sprintf("this server answers under localhost, a loopback address, and the names of admin.allowed_hosts, not under %q",
				r.Host)})
	})
}

// forAll reports whether a path is answered under any name.
func forAll(path string) bool {
	switch path {
	case "/healthz", "/readyz", "/version", "/metrics":
		return true
	}
	return strings.HasPrefix(path, projectsPath)
}
