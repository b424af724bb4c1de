package stream

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"trunkline/engine/link"
)

// After an Accept error such as EMFILE the listener stays; connections wait in its backlog.
const (
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
	acceptLogEvery = 10 * time.Second
)

// handshakeWithin bounds a TLS handshake, which holds a connection slot from its first byte on.
const handshakeWithin = 10 * time.Second

// keepAlive finds dead peers that hold streams (kernel-ipc §2.2).
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}

// ServeListener accepts connections and serves each by goroutines, until Drain; it closes ln and
// returns nil then. TLS handshakes are made by the connection's goroutine, with a deadline.
func (h *Host) ServeListener(ln net.Listener) error {
	l := h.Listener(ln)
	return h.Accept(ln, func(nc net.Conn) {
		if t, ok := nc.(handshaker); ok {
			h.wg.Go(func() { h.greet(nc, t, l) })
			return
		}
		h.ServeAdmitted(nc, l)
	})
}

// Accept runs an accept loop: serve gets each connection with its slot taken, its socket options
// set and its peer allowed, and owns both from then on; it must not block for long. Connections
// beyond the limit are refused. It returns nil after Drain, which closes ln.
func (h *Host) Accept(ln net.Listener, serve func(net.Conn)) error {
	if !h.enter(ln) {
		_ = ln.Close()
		return errDraining
	}
	defer h.leave(ln)
	var p patience
	for {
		nc, err := ln.Accept()
		if err != nil {
			if !h.failedAccept(ln, err, &p) {
				return nil
			}
			continue
		}
		p.pause = 0
		h.arrived(nc, serve)
	}
}

func (h *Host) enter(ln net.Listener) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		return false
	}
	h.lns[ln] = struct{}{}
	h.accepts.Add(1)
	return true
}

func (h *Host) leave(ln net.Listener) {
	h.mu.Lock()
	delete(h.lns, ln)
	h.mu.Unlock()
	_ = ln.Close()
	h.accepts.Done()
}

// patience is what an accept loop remembers of its failures.
type patience struct {
	pause  time.Duration // the last one made, since the last success
	logged time.Time
}

// failedAccept waits before the next try; false means that the loop is to end. Out of descriptors,
// accepting fails and succeeds by turns: it is logged once in acceptLogEvery.
func (h *Host) failedAccept(ln net.Listener, err error, p *patience) bool {
	select {
	case <-h.running.Done():
		return false
	default:
	}
	if errors.Is(err, net.ErrClosed) {
		h.log.Warn("listener closed by someone else", "addr", ln.Addr().String())
		return false
	}
	if now := time.Now(); now.Sub(p.logged) >= acceptLogEvery {
		p.logged = now
		h.log.Warn("cannot accept connections, trying again", "addr", ln.Addr().String(), "err", err)
	}
	p.pause = min(max(2*p.pause, acceptPauseMin), acceptPauseMax)
	wait := time.NewTimer(p.pause)
	defer wait.Stop()
	select {
	case <-h.running.Done():
		return false
	case <-wait.C:
		return true
	}
}

func (h *Host) arrived(nc net.Conn, serve func(net.Conn)) {
	if err := PeerAllowed(nc); err != nil {
		h.Stats.Refused.Add(1)
		h.log.Warn("connection closed", "err", err)
		_ = nc.Close()
		return
	}
	if !h.Gate.admit() {
		h.Stats.Refused.Add(1)
		if h.Gate.files != nil && h.Gate.Open() < h.Gate.Max() {
			h.Gate.files.refused(h.log)
			if _, socket := nc.(syscall.Conn); socket && h.cfg.Refuse != nil {
				h.sendRefusal(nc, refuseAtOnce)
			}
			_ = nc.Close() // at once: to wait for its peer takes a descriptor
			return
		}
		h.refuse(nc)
		return
	}
	h.Stats.Accepted.Add(1)
	tune(nc)
	serve(nc)
}

// Abandon closes a connection that Accept handed over but that never came to have a session.
func (h *Host) Abandon(nc net.Conn, why error) {
	h.log.Debug("connection not served", "remote", RemoteName(nc), "err", why)
	h.Stats.CountClosed(link.ReasonError)
	h.Gate.Release(false)
	_ = nc.Close()
}

// ServeAdmitted serves by goroutines a connection that Accept handed over. It does not wait.
func (h *Host) ServeAdmitted(nc net.Conn, l *link.Listener) {
	if _, err := h.open(nc, h.NewPort(RemoteName(nc)).From(l), h.cfg.Open); err != nil {
		h.log.Debug("connection not served", "remote", RemoteName(nc), "err", err)
	}
}

type handshaker interface {
	HandshakeContext(context.Context) error
}

// greet makes the TLS handshake, then serves. The handshake takes a slot, which bounds them.
func (h *Host) greet(nc net.Conn, t handshaker, l *link.Listener) {
	ctx, cancel := context.WithTimeout(h.running, handshakeWithin)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		h.Abandon(nc, err)
		return
	}
	h.ServeAdmitted(nc, l)
}

// UnixPeer is what RemoteName begins with for the peer of a unix socket.
const UnixPeer = "uid:"

// RemoteName returns the peer's address for people; of a unix peer, which has none, UnixPeer and
// its user where the system reports it.
func RemoteName(nc net.Conn) string {
	if uc, ok := nc.(*net.UnixConn); ok {
		if name, ok := unixPeer(uc); ok {
			return name
		}
		return UnixPeer + "unknown"
	}
	a := nc.RemoteAddr()
	if a == nil {
		return "unknown"
	}
	if s := a.String(); s != "" && s != "@" {
		return s
	}
	return a.Network()
}

// tune sets the socket options of kernel-ipc §2.2. Reading shows if the peer is gone.
func tune(nc net.Conn) {
	if w, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = w.NetConn()
	}
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetNoDelay(true)
		_ = t.SetKeepAliveConfig(keepAlive)
	}
}
