package web

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"trunkline/engine/connection"
	"trunkline/handlers/internal/httpd"
)

// closeWithin is how long a close frame may wait for the frame that is being sent. That of a peer
// that reads too slowly waits as long as the answer to a ping.
const closeWithin = time.Second

// conn is a WebSocket as an io.ReadWriteCloser of lines. Read belongs to one goroutine, and Write
// to one.
type conn struct {
	owner *sockets
	ws    *websocket.Conn
	below *below

	message io.Reader // what is left of the message that is read
	text    text
	tail    string // the end of its line, if all of it was read

	open bool          // a message was begun and is not ended
	turn chan struct{} // one slot: who sends a frame
	live liveness

	shut    atomic.Bool // no frame but that of the end is sent
	closing sync.Once
	ended   chan struct{} // closed when the peer is gone
}

// accept makes the WebSocket of a handshake. An error was answered.
func (s *sockets) accept(w http.ResponseWriter, r *http.Request) (*conn, error) {
	c := &conn{owner: s, turn: make(chan struct{}, 1), ended: make(chan struct{})}
	c.live.pings = make(chan []byte, 1)
	c.live.heard.Store(connection.Now().Mono)
	tap := &tap{ResponseWriter: w}
	var err error
	c.ws, err = websocket.Accept(tap, r, &websocket.AcceptOptions{
		Subprotocols:       []string{subprotocol},
		InsecureSkipVerify: true, // rules have seen the origin
		OnPingReceived:     c.pinged,
		OnPongReceived:     c.ponged,
	})
	if err != nil {
		return nil, err
	}
	c.below = tap.below
	c.ws.SetReadLimit(int64(s.cfg.messageBytes))
	return c, nil
}

// Read implements io.Reader. Its error is io.EOF in all cases: what was read before is served.
func (c *conn) Read(p []byte) (n int, err error) {
	for n == 0 && len(p) > 0 {
		if c.tail != "" {
			n = copy(p, c.tail)
			c.tail = c.tail[n:]
			return n, nil
		}
		if c.message == nil && !c.next() {
			return 0, io.EOF
		}
		n, err = c.message.Read(p)
		if !c.text.take(p[:n]) {
			return 0, c.fault(websocket.StatusInvalidFramePayloadData, "not UTF-8")
		}
		if err == io.EOF {
			var ok bool
			if c.tail, ok = c.text.end(); !ok {
				return 0, c.fault(websocket.StatusInvalidFramePayloadData, "not UTF-8")
			}
			c.message, err = nil, nil
		}
		if err != nil {
			return 0, c.fault(websocket.StatusProtocolError, "a broken frame")
		}
	}
	return n, nil
}

// next begins the next message.
func (c *conn) next() bool {
	kind, message, err := c.ws.Reader(context.Background())
	switch {
	case err != nil:
		// The library has sent the end for most faults, and what follows sends none then.
		_ = c.fault(websocket.StatusProtocolError, "a broken frame")
	case kind != websocket.MessageText:
		_ = c.fault(websocket.StatusUnsupportedData, "a text message is expected")
	default:
		c.message = message
		return true
	}
	return false
}

// fault ends a connection whose peer broke the protocol, or has ended.
func (c *conn) fault(code websocket.StatusCode, why string) error {
	c.close(code, why)
	return io.EOF
}

// Write implements io.Writer: one message for each line. A line may come in several calls.
func (c *conn) Write(b []byte) (int, error) {
	buf := c.owner.frames.Get().(*[]byte)
	defer c.owner.frames.Put(buf)
	*buf, c.open = appendLines((*buf)[:0], b, c.open)
	if err := c.send(*buf); err != nil {
		return 0, err
	}
	return len(b), nil
}

// send sends whole frames.
func (c *conn) send(frames []byte) error {
	select {
	case c.turn <- struct{}{}:
	case <-c.ended:
		return net.ErrClosed
	}
	defer func() { <-c.turn }()
	if c.shut.Load() {
		return net.ErrClosed
	}
	_, err := c.below.Write(frames)
	return err
}

// Close implements io.Closer. It does not wait for the peer. The owner of the session ends a
// connection when the server does, when there are too many, and when a session cannot go on (exacta
// §2.5).
func (c *conn) Close() error {
	if c.owner.stopping.Load() {
		c.close(websocket.StatusGoingAway, "the server ends")
	} else {
		c.close(websocket.StatusTryAgainLater, "connect again, and subscribe behind the last event")
	}
	return nil
}

// close ends the connection, once: the first reason counts.
func (c *conn) close(code websocket.StatusCode, why string) {
	within := closeWithin
	if code == websocket.StatusTryAgainLater {
		within = c.owner.cfg.pongWithin
	}
	c.closing.Do(func() {
		c.shut.Store(true)
		go func() {
			defer close(c.ended)
			late := time.NewTimer(within)
			defer late.Stop()
			select { // the end comes behind the frame that is being sent
			case c.turn <- struct{}{}:
				<-c.turn
			case <-late.C:
			}
			_ = c.ws.Close(code, why) // it waits for the peer, with a limit
			c.below.cut()
		}()
	})
}

// below is the connection below a WebSocket.
type below struct {
	net.Conn
	hard atomic.Bool
}

// Close implements net.Conn. It waits a moment for the peer to end, because unread bytes would
// reset the connection and destroy the close frame.
func (b *below) Close() error {
	if c, ok := b.Conn.(*httpd.Conn); ok && !b.hard.Load() {
		c.Linger()
	}
	return b.Conn.Close()
}

// cut closes the connection at once.
func (b *below) cut() {
	b.hard.Store(true)
	_ = b.Conn.Close()
}

// tap keeps the connection that is taken over from a ResponseWriter.
type tap struct {
	http.ResponseWriter
	below *below
}

// Hijack implements http.Hijacker.
func (t *tap) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(t.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if c, ok := nc.(*httpd.Conn); ok {
		c.Keep()
	}
	t.below = &below{Conn: nc}
	return t.below, rw, nil
}
