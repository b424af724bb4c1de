package stream

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/internal/bufpool"
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
	h.Stats.CountClosed(connection.ReasonError)
	h.Gate.Release(false)
	_ = nc.Close()
}

// ServeAdmitted serves by goroutines a connection that Accept handed over. It does not wait.
func (h *Host) ServeAdmitted(nc net.Conn, l *connection.Listener) {
	if _, err := h.open(nc, h.NewPort(RemoteName(nc)).From(l), h.cfg.Open); err != nil {
		h.log.Debug("connection not served", "remote", RemoteName(nc), "err", err)
	}
}

type handshaker interface {
	HandshakeContext(context.Context) error
}

// greet makes the TLS handshake, then serves. The handshake takes a slot, which bounds them.
func (h *Host) greet(nc net.Conn, t handshaker, l *connection.Listener) {
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

// Adopted is a connection that changes its owner, with all its state. Its slot comes with it.
type Adopted struct {
	Port    *connection.Port
	Session connection.Session
	State   connection.State
	// Unread was read and not yet taken by the session, Unsent appended by it and not yet taken by
	// the socket. Adopt copies Unsent and keeps Unread.
	Unread, Unsent []byte
	// Charge is what Unread has of Limits.Input.
	Charge connection.Charge
	Why    Departure
}

// Adopt takes a connection over. The former owner must not touch the session afterwards. It does
// not wait.
func (h *Host) Adopt(rwc io.ReadWriteCloser, a Adopted) {
	c := h.bareConn(rwc, a.Port)
	c.sess, c.State = a.Session, a.State
	c.in.b, c.in.to, c.in.charge = a.Unread, len(a.Unread), a.Charge
	c.in.budget.Fit(&c.in.charge, len(a.Unread))
	c.More = true // the former owner may have owed a Pump; another one is harmless
	h.Stats.countLeft(a.Why)
	h.log.Debug("connection left its loop", "conn", a.Port.ID(), "remote", a.Port.Remote(), "why", a.Why.String())
	var unsent *bufpool.Buffer
	if len(a.Unsent) > 0 {
		unsent = h.bufs.Get()
		unsent.B = append(unsent.B, a.Unsent...)
		c.launch(unsent)
	}
	_ = h.start(c, unsent)
}

// refusalsInFlight bounds the goroutines that wait for refused peers. Beyond it a socket gets its
// refusal and is closed at once, while a transport that may have to wait is closed without one.
const refusalsInFlight = 64

const (
	// refuseAtOnce bounds a write that does not wait, for a fresh socket has room.
	refuseAtOnce = 50 * time.Millisecond
	// refuseWithin is how long a refused peer may take for a handshake and for the refusal.
	refuseWithin = time.Second
	// lingerWithin is how long a refused peer's connection still takes and drops what that peer
	// sends, because closing a socket with unread bytes resets it and may cost the peer its answer.
	// Connections that were served linger (delivery).
	lingerWithin = 250 * time.Millisecond
	// lingerBytes is how much is dropped at most.
	lingerBytes = 256 << 10
)

// refuse sends the refusal and closes rwc. A socket is sent it here and now, so that every peer
// gets it however many come; only what takes time gets a goroutine, if one may be had.
func (h *Host) refuse(rwc io.ReadWriteCloser) {
	nc, ok := rwc.(net.Conn)
	if !ok || h.cfg.Refuse == nil {
		_ = rwc.Close()
		return
	}
	wait := h.turnAway
	if _, socket := nc.(syscall.Conn); socket {
		if !h.sendRefusal(nc, refuseAtOnce) {
			_ = nc.Close()
			return
		}
		wait = linger
	}
	if !h.lend(func() { wait(nc) }) {
		_ = nc.Close()
	}
}

// lend runs f in a goroutine if one may be had.
func (h *Host) lend(f func()) bool {
	select {
	case h.lent <- struct{}{}:
	default:
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		<-h.lent
		return false
	}
	h.wg.Go(func() {
		defer func() { <-h.lent }()
		f()
	})
	return true
}

func (h *Host) turnAway(nc net.Conn) {
	_ = nc.SetReadDeadline(time.Now().Add(refuseWithin)) // of a handshake
	if !h.sendRefusal(nc, refuseWithin) {
		_ = nc.Close()
		return
	}
	linger(nc)
}

func (h *Host) sendRefusal(nc net.Conn, within time.Duration) bool {
	_ = nc.SetWriteDeadline(time.Now().Add(within))
	_, err := nc.Write(h.cfg.Refuse(nil))
	return err == nil
}

// linger closes nc after what its peer still sends was dropped for a moment.
func linger(nc net.Conn) {
	defer nc.Close()
	if w, ok := nc.(writeCloser); ok && w.CloseWrite() == nil {
		_ = nc.SetReadDeadline(time.Now().Add(lingerWithin))
		_, _ = io.CopyN(io.Discard, nc, lingerBytes)
	}
}

// writeCloser is a connection whose sending side can be shut down while it goes on reading.
type writeCloser interface{ CloseWrite() error }
