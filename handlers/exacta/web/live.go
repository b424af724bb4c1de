package web

import (
	"bytes"
	"context"
	"sync/atomic"

	"github.com/coder/websocket"

	"trunkline/engine/link"
)

// liveness is what a connection knows of its pings. All connections share one wheel, which looks at
// them twice a second; a goroutine runs only while a frame is due (exacta §2.2, §10).
type liveness struct {
	heard   atomic.Int64 // when the last pong came, or the connection began: Mono of link.Instant
	asked   int64        // when the last ping was due, of the wheel
	due     atomic.Bool  // a ping is to be sent
	pings   chan []byte  // one slot: the last ping of the peer that was not answered
	sending atomic.Bool
}

// turnWheel pings peers, and ends the connections of those that do not answer.
func (s *sockets) turnWheel() {
	now := link.Now().Mono
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		heard := c.live.heard.Load()
		switch c.live.asked = max(c.live.asked, heard); {
		case now-heard >= int64(s.cfg.pongWithin):
			c.close(websocket.StatusGoingAway, "no pong")
		case now-c.live.asked >= int64(s.cfg.pingEvery):
			c.live.asked = now
			c.live.due.Store(true)
			c.sendControls()
		}
	}
}

// pinged notes a ping. It is not answered here: a peer that reads slowly would hold up what it
// sends. Of several only the last one is answered (RFC 6455 §5.5.3).
func (c *conn) pinged(_ context.Context, payload []byte) bool {
	select {
	case <-c.live.pings:
	default:
	}
	c.live.pings <- bytes.Clone(payload)
	c.sendControls()
	return false
}

func (c *conn) ponged(context.Context, []byte) { c.live.heard.Store(link.Now().Mono) }

// sendControls has pings and answers to pings sent. It does not wait.
func (c *conn) sendControls() {
	if c.live.sending.CompareAndSwap(false, true) {
		go func() {
			for c.sendControl() {
			}
		}()
	}
}

// sendControl sends one frame that is due. It reports false, and lets another goroutine begin, if
// there is none.
func (c *conn) sendControl() bool {
	var frame []byte
	select {
	case payload := <-c.live.pings:
		frame = appendFrame(nil, fin|opPong, payload)
	default:
		if c.live.due.Swap(false) {
			frame = appendFrame(nil, fin|opPing, nil)
		}
	}
	if frame != nil {
		_ = c.send(frame) // a connection that is gone ends
		return true
	}
	c.live.sending.Store(false)
	again := len(c.live.pings) > 0 || c.live.due.Load() // since it was looked at
	return again && c.live.sending.CompareAndSwap(false, true)
}
