package httpd

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/engine/stream"
)

// Book lists the open connections of one HTTP server. Any goroutine may call its methods.
type Book struct {
	protocol, name string
	in, out        atomic.Int64 // bytes of all connections, closed ones included

	mu   sync.Mutex
	last uint64
	open map[*Conn]struct{}
}

// NewBook returns a book whose connections have the protocol, and names that begin with name.
func NewBook(protocol, name string) *Book {
	return &Book{protocol: protocol, name: name, open: make(map[*Conn]struct{})}
}

// entry is what a book shows of a connection. Times are those of connection.Mono.
type entry struct {
	book    *Book // nil: it is in none
	id      uint64
	addr    string // of the listener
	opened  int64
	in, out atomic.Int64
	heard   atomic.Int64 // when bytes were read or written last
	asked   atomic.Int64 // when the first byte of a request came that has no answer yet; 0: there is none
	lingers atomic.Bool
}

// Enter lists a connection that has no Listener of this package, and came to addr, until its Close.
func (b *Book) Enter(nc net.Conn, addr string) *Conn {
	c := &Conn{Conn: nc}
	b.enter(c, addr)
	return c
}

func (b *Book) enter(c *Conn, addr string) {
	c.book, c.addr, c.opened = b, addr, connection.Mono()
	c.heard.Store(c.opened)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	c.id = b.last
	b.open[c] = struct{}{}
}

func (e *entry) leave(c *Conn) {
	if e.book == nil {
		return
	}
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	delete(e.book.open, c)
}

// Drop closes the connection of a name at once. found is false where none has it.
func (b *Book) Drop(name string) (found bool) {
	b.mu.Lock()
	var dropped *Conn
	for c := range b.open {
		if c.Name() == name {
			dropped = c
		}
	}
	b.mu.Unlock()
	if dropped == nil {
		return false
	}
	dropped.cut()
	return true
}

// cut closes the connection at once.
func (c *Conn) cut() {
	c.slow.Store(false)
	if secure, ok := c.Conn.(interface{ NetConn() net.Conn }); ok { // its own end may wait for the peer
		_ = secure.NetConn().Close()
	}
	_ = c.Close()
}

// Read counts what the peer sends.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.kept.Load() {
		now := connection.Mono()
		c.in.Add(int64(n))
		if c.book != nil {
			c.book.in.Add(int64(n))
		}
		c.heard.Store(now)
		c.asked.CompareAndSwap(0, now)
		c.framing.read(p[:n])
	}
	return n, err
}

// writePart is how much is written at a time, so that a slow peer differs from a stuck one.
const writePart = 64 << 10

// Write counts what the peer is sent. It answers the request at hand.
func (c *Conn) Write(p []byte) (n int, err error) {
	if c.kept.Load() {
		return c.Conn.Write(p)
	}
	c.writing.Store(true)
	defer c.writing.Store(false)
	for {
		part, err := c.Conn.Write(p[n:min(len(p), n+writePart)])
		if part > 0 {
			n += part
			c.out.Add(int64(part))
			if c.book != nil {
				c.book.out.Add(int64(part))
			}
			c.heard.Store(connection.Mono())
			c.asked.Store(0)
		}
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// Name names the connection, such as "http-3".
func (c *Conn) Name() string {
	if c.book == nil {
		return "conn"
	}
	return c.book.name + "-" + strconv.FormatUint(c.id, 10)
}

// Remote returns the address of the peer.
func (c *Conn) Remote() string {
	if s := c.RemoteAddr().String(); s != "" && s != "@" {
		return s
	}
	return c.RemoteAddr().Network()
}

// Began returns when the first byte of the request at hand came, in nanoseconds of connection.Mono;
// now if it is not known, as for one that came together with the one before.
func (c *Conn) Began() int64 {
	if at := c.asked.Load(); at != 0 {
		return at
	}
	return connection.Mono()
}

// connOf returns the connection of the context of a request, nil without one.
func connOf(ctx context.Context) *Conn {
	if c, ok := Of(ctx).(interface{ below() *Conn }); ok {
		return c.below()
	}
	return nil
}

// below returns c; a connection that embeds it has the method too.
func (c *Conn) below() *Conn { return c }

// key is where the context of a request has its connection.
type key struct{}

// with is for http.Server.ConnContext.
func with(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, key{}, c) }

// Of returns the connection that the context of a request has, nil without one.
func Of(ctx context.Context) net.Conn {
	c, _ := ctx.Value(key{}).(net.Conn)
	return c
}

// Peer returns the connection of a request for a slow log, and when the request began.
func Peer(ctx context.Context) (p obs.Peer, began int64) {
	if c := connOf(ctx); c != nil {
		return c, c.Began()
	}
	return nil, connection.Mono()
}

// Totals returns how many connections are open, and the bytes read and written by all there were.
func (b *Book) Totals() (open, in, out int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.open)), b.in.Load(), b.out.Load()
}

// Connections appends a row for each open connection.
func (b *Book) Connections(dst []obs.Connection) []obs.Connection {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, wall := connection.Mono(), time.Now()
	for c := range b.open {
		age := time.Duration(now - c.opened)
		row := obs.Connection{
			ID: c.Name(), Protocol: b.protocol, Listener: c.addr, Peer: c.Remote(), State: "open",
			Opened: wall.Add(-age).UTC(), AgeSeconds: age.Seconds(),
			IdleSeconds: time.Duration(max(now-c.heard.Load(), 0)).Seconds(),
			BytesIn:     c.in.Load(), BytesOut: c.out.Load(), UnsentBytes: stream.Unsent(c.Conn),
		}
		if c.asked.Load() != 0 {
			row.InFlight = 1
		}
		if c.lingers.Load() {
			row.State = "lingering"
		}
		dst = append(dst, row)
	}
	return dst
}
