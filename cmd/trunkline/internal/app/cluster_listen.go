package app

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/cluster/peer"
)

// kept are the listeners of a node by their setting. They stay open while one replica takes the
// place of another; clients that connect meanwhile wait in the backlog.
type kept map[string][]bound

// lend returns the listeners of a section for one replica: they are opened for the first one.
func (k kept) lend(a *config.Access, o Options) ([]bound, error) {
	open := k[a.AddrKey()]
	if open == nil {
		var err error
		if open, err = openAll(a, o); err != nil {
			return nil, err
		}
		k[a.AddrKey()] = open
	}
	lent := make([]bound, len(open))
	for i, b := range open {
		l := lend(b.raw.(peer.Listener))
		b.ln, b.raw = l, l
		if b.tls != nil {
			b.ln = tls.NewListener(l, b.tls)
		}
		lent[i] = b
	}
	return lent, nil
}

// close closes all of them.
func (k kept) close() {
	for _, open := range k {
		for _, b := range open {
			_ = b.raw.Close()
		}
	}
}

// lent is a listener of the node for the time of one replica: Close ends Accept, and leaves the
// listener of the node open.
type lent struct {
	peer.Listener
	ended chan struct{}
	end   func()
}

// lend returns a listener whose former borrower has closed it.
func lend(ln peer.Listener) *lent {
	_ = ln.SetDeadline(time.Time{})
	l := &lent{Listener: ln, ended: make(chan struct{})}
	l.end = sync.OnceFunc(func() {
		close(l.ended)
		_ = ln.SetDeadline(time.Unix(1, 0))
	})
	return l
}

// Accept implements net.Listener.
func (l *lent) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	select {
	case <-l.ended:
		if err == nil {
			_ = nc.Close()
		}
		return nil, net.ErrClosed
	default:
		return nc, err
	}
}

// Close implements net.Listener.
func (l *lent) Close() error {
	l.end()
	return nil
}
