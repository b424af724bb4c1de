package app

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/reactor"
)

const kindTLS = "tls"

// bound is one open listener.
type bound struct {
	ln   net.Listener
	addr string // as people write it: host:port with the real port, or unix:///path
	kind string // tcp, tls or unix
	open bool   // reachable by every client, allowed by insecure_bind
}

// listenAll opens the listeners of one section in order; the first that cannot be opened closes the
// others.
func listenAll(a *config.Access) (out []bound, err error) {
	listeners, err := a.Listeners()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := a.TLS()
	if err != nil {
		return nil, err
	}
	for _, l := range listeners {
		ln, err := reactor.Listen(l.String())
		if err != nil {
			closeAll(out)
			return nil, fmt.Errorf("cannot open %s: %w", a.Key("listen_addr"), err)
		}
		b := bound{ln: ln, addr: ln.Addr().String(), kind: l.Kind(), open: l.Open}
		if l.Network == "unix" {
			b.addr = l.String()
		}
		if l.TLS {
			b.ln = tls.NewListener(ln, tlsConfig)
		}
		out = append(out, b)
	}
	return out, nil
}

// serveLoops starts the accept loops of all listeners, and the watch over the event loops: report
// gets the end of an accept loop, died that of an event loop which ended by itself.
func serveLoops(tasks *sync.WaitGroup, loops *reactor.Server, bs []bound, report, died func(error)) {
	for _, b := range bs {
		serve := loops.Serve
		if b.kind == kindTLS {
			serve = loops.ServeStreams
		}
		tasks.Go(func() { report(serve(b.ln)) })
	}
	tasks.Go(func() {
		if err, ended := <-loops.Done(); ended {
			died(err)
		}
	})
}

func closeAll(bs []bound) {
	for _, b := range bs {
		_ = b.ln.Close()
	}
}
