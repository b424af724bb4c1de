package stream

import (
	"io"
	"net"
	"time"
)

// refusalsInFlight bounds the goroutines that tell peers why they are refused; beyond it connections are closed without a word.
const refusalsInFlight = 64

const (
	// refuseWithin is how long a refused peer may take to complete a handshake and to take the refusal.
	refuseWithin = time.Second
	// lingerWithin is how long a closing connection still takes and drops what the peer sends, because closing a socket with
	// unread bytes resets it and may cost the peer its last answers.
	lingerWithin = 250 * time.Millisecond
	// lingerBytes is how much is dropped at most.
	lingerBytes = 256 << 10
)

// refuse sends the refusal and closes rwc, in a goroutine of its own if one may be had.
func (h *Host) refuse(rwc io.ReadWriteCloser) {
	nc, ok := rwc.(net.Conn)
	if !ok || h.cfg.Refuse == nil {
		_ = rwc.Close()
		return
	}
	select {
	case h.lent <- struct{}{}:
	default:
		_ = rwc.Close()
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		<-h.lent
		_ = rwc.Close()
		return
	}
	h.wg.Go(func() {
		defer func() { <-h.lent }()
		h.turnAway(nc)
	})
}

func (h *Host) turnAway(nc net.Conn) {
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(refuseWithin))
	if _, err := nc.Write(h.cfg.Refuse(nil)); err != nil {
		return
	}
	if w, ok := nc.(writeCloser); ok && w.CloseWrite() == nil {
		_ = nc.SetReadDeadline(time.Now().Add(lingerWithin))
		_, _ = io.CopyN(io.Discard, nc, lingerBytes)
	}
}

// writeCloser is a connection that can tell its peer "no more from here" and go on reading.
type writeCloser interface{ CloseWrite() error }
