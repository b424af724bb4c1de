package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"trunkline/codec/ndjson"
	"trunkline/engine/cluster/peer"
	"trunkline/engine/stream"
	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/lines"
)

// Limits of clients of lines.
const (
	// sendWithin is how long a client may take nothing of what it is sent (threads §2.4).
	sendWithin = 30 * time.Second
	// closeWithin is how long a client whose owner has ended the connection may go on sending.
	closeWithin = time.Second
	// firstBytes is the first size of the buffer for the first line.
	firstBytes = 4 << 10
	// mostBytes is its largest one: a line and its end.
	mostBytes = lines.MaxGuestLine + len("\r\n")
)

// Lines serves clients over lines of JSON. Its methods may be called from any goroutine.
type Lines struct {
	router
	*httpd.Book               // of the clients
	host        *stream.Host  // accepts them
	within      time.Duration // lines.AuthWithin, unless a test has another
	sends       time.Duration // sendWithin, unless a test has another
	drains      context.Context
	drain       context.CancelFunc
	clients     sync.WaitGroup
}

// NewLines returns a server; end it with Shutdown.
func NewLines(cfg Config) *Lines {
	l := &Lines{
		router: newRouter(cfg),
		Book:   httpd.NewBook("threads", "threads"),
		within: lines.AuthWithin,
		sends:  sendWithin,
	}
	l.drains, l.drain = context.WithCancel(l.ctx)
	l.host = stream.NewHost(stream.Config{Protocol: "threads", MaxConnections: l.cfg.MaxConnections, Files: l.cfg.Files, Logger: l.cfg.Logger,
		Refuse: func(dst []byte) []byte {
			return lines.AppendUnavailable(dst, "too many connections", l.cfg.IDs(nil))
		}})
	return l
}

// Serve accepts on ln, over TLS where it is a listener of crypto/tls, until Shutdown; it closes ln
// and returns nil then.
func (l *Lines) Serve(ln net.Listener) error {
	addr := ln.Addr().String()
	return l.host.Accept(ln, func(nc net.Conn) {
		l.clients.Go(func() {
			defer l.host.Gate.Release(false)
			l.serve(&guest{Conn: l.Enter(nc, addr), l: l})
		})
	})
}

// SetMaxConnections changes Config.MaxConnections, which is at least 1.
func (l *Lines) SetMaxConnections(n int) { l.host.Gate.SetMax(n) }

// Shutdown stops accepting, and has what was asked answered. When ctx ends first, it closes the
// rest and returns an error.
func (l *Lines) Shutdown(ctx context.Context) error {
	l.host.Drain()
	l.drain()
	err := l.host.Gate.Wait(ctx)
	l.stop()
	l.clients.Wait()
	_ = l.host.Close(context.Background()) // it has no connections
	if err != nil {
		return fmt.Errorf("cannot finish lines: %w", err)
	}
	return nil
}

// serve serves a client until its connection has ended.
func (l *Lines) serve(g *guest) {
	defer g.Close()
	defer context.AfterFunc(l.ctx, func() { _ = g.Close() })()
	defer context.AfterFunc(l.drains, func() { g.allow(time.Time{}) })()
	bearer, ok := g.first()
	if !ok {
		return
	}
	owner, owned, err := l.dial(l.partition(bearer), g.Remote())
	if err != nil {
		_, _ = g.Write(lines.AppendUnavailable(nil, noOwner, l.cfg.IDs(nil)))
		return
	}
	g.allow(time.Time{})
	peer.Join(g, owner, l.ctx, owned)
}

// guest is the connection of a client.
type guest struct {
	*httpd.Conn
	l     *Lines
	ahead []byte // was read, and is for the owner
	once  sync.Once
}

// first reads up to the end of the first line, and returns its token; false: the client is gone.
// A line over the limit has none, and the owner refuses it.
func (g *guest) first() (bearer string, ok bool) {
	g.allow(time.Now().Add(g.l.within))
	buf, scanned := make([]byte, 0, firstBytes), 0
	for {
		line, used, state, next := ndjson.Split(buf, scanned, lines.MaxGuestLine)
		scanned = next
		switch {
		case state == ndjson.More:
			if len(buf) == cap(buf) {
				buf = append(make([]byte, 0, mostBytes), buf...)
			}
			n, err := g.Conn.Read(buf[len(buf):cap(buf)])
			if buf = buf[:len(buf)+n]; n == 0 && err != nil {
				return "", false
			}
			continue
		case state == ndjson.Line && len(line) == 0:
			buf = buf[used:] // empty lines are ignored
			continue
		case state == ndjson.Line:
			bearer = lines.Bearer(line)
		}
		g.ahead = buf
		return bearer, true
	}
}

// allow sets when reads end, zero: never. In a drain they end at once.
func (g *guest) allow(until time.Time) {
	_ = g.SetReadDeadline(until)
	if g.l.drains.Err() != nil {
		_ = g.SetReadDeadline(longAgo)
	}
}

// Read implements net.Conn. A drain is the end of what the client sends.
func (g *guest) Read(p []byte) (int, error) {
	if len(g.ahead) > 0 {
		n := copy(p, g.ahead)
		g.ahead = g.ahead[n:]
		return n, nil
	}
	n, err := g.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && g.l.drains.Err() != nil {
		err = io.EOF
	}
	return n, err
}

// Write implements net.Conn. It goes on as long as the client takes something.
func (g *guest) Write(p []byte) (n int, err error) {
	for n < len(p) {
		_ = g.SetWriteDeadline(time.Now().Add(g.l.sends))
		m, err := g.Conn.Write(p[n:])
		if n += m; err != nil && (m == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return n, err
		}
	}
	return n, nil
}

// CloseWrite is called when the owner has ended the connection, and the client has all answers.
func (g *guest) CloseWrite() error {
	err := g.Conn.CloseWrite()
	g.allow(time.Now().Add(closeWithin))
	return err
}

// Close closes the connection once the client has seen the last answer, or for a bounded time. In a
// drain that takes too long it does not wait.
func (g *guest) Close() (err error) {
	g.once.Do(func() {
		if g.l.ctx.Err() == nil {
			g.Linger()
		}
		err = g.Conn.Close()
	})
	return err
}
