package httpd

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/connection"
)

// Listener is a listener with a bound on its open connections. At the bound it closes the
// connection that has waited for its peer longest, if that is patience or longer; else the next one
// waits until a connection closes, and those after it in the system's backlog.
type Listener struct {
	net.Listener
	book *Book
	addr string

	mu     sync.Mutex
	change *sync.Cond // one of the fields below changed
	most   int
	open   map[*Conn]struct{}
	spare  int // free slots of Config.Reserved
	closed bool

	stopped *atomic.Bool // of the server; nil: it has none
}

// patience is how long a connection may wait for its peer while another one waits for its slot: to
// take what it is sent, or to ask for something.
const patience = 2 * time.Second

// shortPatience is the time that a connection in a slot of Config.Reserved has for each: who comes
// next may be one that asks at once.
const shortPatience = patience / 8

// lookEvery is how often a listener at its bound looks for a connection to close.
const lookEvery = patience / 8

// Limit returns ln with a bound: at most so many connections are open at once.
func Limit(ln net.Listener, most int) *Listener {
	l := &Listener{Listener: ln, most: most, open: make(map[*Conn]struct{})}
	l.change = sync.NewCond(&l.mu)
	return l
}

// Limit is the function Limit for a listener whose connections the book lists.
func (b *Book) Limit(ln net.Listener, most int) *Listener {
	l := Limit(ln, most)
	l.book, l.addr = b, ln.Addr().String()
	return l
}

// setLimit changes the bound. Connections above a lower one stay open.
func (l *Listener) setLimit(most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = most
	l.change.Broadcast()
}

// Accept waits for a connection, then for a free slot. It returns a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &Conn{Conn: c, from: l}
	if !l.take(conn) {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	conn.opened = connection.Mono()
	conn.heard.Store(conn.opened)
	if l.book != nil {
		l.book.enter(conn, l.addr)
	}
	return conn, nil
}

// take waits for a slot; false: the listener is closed.
func (l *Listener) take(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed {
		if len(l.open) < l.most {
			l.open[c] = struct{}{}
			return true
		}
		if !l.evict() && l.spare > 0 {
			l.spare--
			c.reserved = true
			return true
		}
		timer := time.AfterFunc(lookEvery, l.change.Broadcast)
		l.change.Wait()
		timer.Stop()
	}
	return false
}

// evict closes the connection that has waited for its peer longest, if that is patience or longer.
// It reports whether there is one.
func (l *Listener) evict() bool {
	now := connection.Mono()
	last := now - int64(patience)
	var longest *Conn
	for c := range l.open {
		if since := c.waitsSince(now); since <= last {
			longest, last = c, since
		}
	}
	if longest == nil {
		return false
	}
	longest.kept.Store(true) // once
	go longest.cut()
	return true
}

func (l *Listener) give(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.reserved {
		l.spare++
	} else {
		delete(l.open, c)
	}
	l.change.Signal()
}

// Open returns how many connections are open, those in slots of Config.Reserved left out.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// stall is the state by which a listener finds a connection that waits for its peer.
type stall struct {
	kept    atomic.Bool // it is not closed for another one
	writing atomic.Bool

	// A write that has got no further since a look is at sent. Listener.mu guards both.
	sent, since int64
}

// Keep has the connection live on, however long it waits for its peer.
func (c *Conn) Keep() { c.kept.Store(true) }

// KeepStream is Keep for the connection of a request whose answer has pauses. It ends with that.
func KeepStream(w http.ResponseWriter, r *http.Request) {
	if c := connOf(r.Context()); c != nil {
		w.Header().Set("Connection", "close")
		c.Keep()
	}
}

// waitsSince returns since when the connection waits for its peer; now: it does not.
func (c *Conn) waitsSince(now int64) int64 {
	switch {
	case c.kept.Load():
		return now
	case c.writing.Load():
		if out := c.out.Load(); c.since == 0 || out != c.sent {
			c.sent, c.since = out, now
		}
		return c.since
	case c.asked.Load() != 0:
		c.since = 0
		return now
	}
	c.since = 0
	return c.heard.Load()
}

// Reserved reports whether the connection of a request is in a slot of Config.Reserved.
func Reserved(r *http.Request) bool {
	c := connOf(r.Context())
	return c != nil && c.reserved
}

// SetReadDeadline and SetWriteDeadline leave less time to a connection in a slot of
// Config.Reserved.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.Conn.SetReadDeadline(c.soon(t)) }

// SetWriteDeadline is described at SetReadDeadline.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(c.soon(t)) }

func (c *Conn) soon(t time.Time) time.Time {
	if !c.reserved {
		return t
	}
	if most := time.Now().Add(shortPatience); t.IsZero() || t.After(most) {
		return most
	}
	return t
}

// Close also ends an Accept that waits for a slot.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.change.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}
