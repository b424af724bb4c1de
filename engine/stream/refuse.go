package stream

import (
	"io"
	"net"
	"syscall"
	"time"
)

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
