package stream

import (
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/internal/bufpool"
	"trunkline/engine/internal/sock"
)

// conn is one connection; it is the connection.Owner of its port. in belongs to the reader, and to
// the holder of mu while the reader reads ahead; the rest under mu to its holder.
type conn struct {
	host *Host
	rwc  io.ReadWriteCloser
	sock socket // below rwc
	port *connection.Port

	woken    atomic.Bool   // Port.Wake since the writer last pumped
	bell     chan struct{} // one slot: the writer has something to look at
	done     chan struct{} // closed at release
	ended    chan struct{} // closed when the reader has ended
	tending  chan struct{} // one slot: the tender has something to look at
	in       inbuf
	spill    []byte       // the reader's: where what it reads ahead goes first
	unfed    atomic.Bool  // the reader holds bytes that came since it last fed the session
	readErr  error        // the reader's: it failed while it read ahead
	received atomic.Int64 // bytes read by this owner, which State.In does not count
	credit   int          // the writer's: bytes the socket may be given before it is asked what it has not sent

	mu               sync.Mutex
	connection.State           // Peer is written by the reader only
	room             sync.Cond // the reader waits here while it must not feed
	sess             connection.Session
	released         bool
	out              *bufpool.Buffer // replies the writer has not taken; nil while there are none
	inFlight         atomic.Int64    // bytes the writer is sending
	sendFrom         int64           // since when the peer took no byte of what is being sent; 0 while nothing is
	readBy           int64           // when a peer that reads slowestReader would have read all that it took
	startTend        sync.Once
	reads            reading
	frames           int  // how many end in in; -1: not counted
	queued           int  // sock.Queued when last asked; less than 0 since the socket last took something
	roused           bool // the reader was called out of its Read, for a Drain
	delivery         delivery
}

// Panicked logs a panic of a session's method.
func (h *Host) Panicked(doing string, p *connection.Port, r any) {
	h.log.Error("panic "+doing+" a session", "conn", p.ID(), "remote", p.Remote(), "panic", r, "stack", string(debug.Stack()))
}

// OpenSession opens a connection's session; a panic while doing so is an error.
func (h *Host) OpenSession(p *connection.Port) (sess connection.Session, err error) {
	return h.openSession(p, h.cfg.Open)
}

func (h *Host) openSession(p *connection.Port, open connection.Opener) (sess connection.Session, err error) {
	defer func() {
		if r := recover(); r != nil {
			h.Panicked("opening", p, r)
			err = fmt.Errorf("cannot open a session: %v", r)
		}
	}()
	return open(p), nil
}

// CloseSession calls Session.Closed; a panic is logged.
func (h *Host) CloseSession(p *connection.Port, sess connection.Session) {
	defer func() {
		if r := recover(); r != nil {
			h.Panicked("closing", p, r)
		}
	}()
	sess.Closed()
}

func (h *Host) bareConn(rwc io.ReadWriteCloser, p *connection.Port) *conn {
	c := &conn{
		host: h, rwc: rwc, sock: socketOf(rwc), port: p,
		bell: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{}),
		tending: make(chan struct{}, 1), frames: -1,
	}
	c.in.budget = h.cfg.Limits.Input
	c.room.L = &c.mu
	return c
}

// Wake implements connection.Owner. It takes no lock and does not allocate.
func (c *conn) Wake(*connection.Port) {
	c.woken.Store(true)
	c.ring()
	if c.inFlight.Load() > 0 {
		c.nudge()
	}
}

func (c *conn) ring() {
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

// unsent is what Limits.UnsentBytes bounds. The caller holds mu.
func (c *conn) unsent() int {
	if c.out == nil {
		return int(c.inFlight.Load())
	}
	return len(c.out.B) + int(c.inFlight.Load())
}

// recoverPanic is deferred around session methods, with mu held: a panic closes this connection
// only.
func (c *conn) recoverPanic() {
	if r := recover(); r != nil {
		c.host.Panicked("in", c.port, r)
		c.release(connection.ReasonPanic)
		c.cut()
	}
}

// release ends the session and gives the slot back. Only the first reason counts; later calls
// return false. The caller holds mu.
func (c *conn) release(r connection.Reason) bool {
	if c.released {
		return false
	}
	c.released = true
	if c.reads == ahead { // the reader has spill, and may be in its Read for as long as the connection lingers
		c.in.drop()
	}
	c.port.SetOwner(nil)
	c.host.Stats.CountClosed(r)
	c.host.CloseSession(c.port, c.sess)
	c.out = nil
	c.room.Broadcast()
	c.host.forget(c)
	c.host.Gate.Release(c.Rests)
	c.host.log.Debug("connection closed", "conn", c.port.ID(), "remote", c.port.Remote(), "reason", r.String())
	close(c.done)
	return true
}

// abort closes the connection now, whatever it still has to send. One that lingers is left to that.
func (c *conn) abort(r connection.Reason) {
	c.mu.Lock()
	first := c.release(r)
	c.mu.Unlock()
	if first {
		c.cut()
	}
}

// cut closes the transport without the courtesies a TLS connection would block for.
func (c *conn) cut() {
	if w, ok := c.rwc.(interface{ NetConn() net.Conn }); ok {
		_ = w.NetConn().Close()
		return
	}
	_ = c.rwc.Close()
}

// overdue reports a timer of this connection that ran out (kernel-ipc §2.4).
func (c *conn) overdue(now connection.Instant) (r connection.Reason, late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recoverPanic()
	if c.released {
		return 0, false
	}
	l, load := &c.host.cfg.Limits, c.sess.Load()
	if l.SendWithin > 0 && c.sendFrom != 0 && !c.progress(now) && now.Mono-c.takesFrom(load.Streams) >= l.SendWithin {
		return connection.ReasonWrite, true
	}
	r, late = c.Overdue(l, load, c.unsent(), now.Mono)
	if r == connection.ReasonFrame && late && l.LateFrame != nil && c.Verdict != connection.Close {
		c.rouse() // what is left of the frame is let go
		c.sendLast(l.LateFrame)
		return 0, false
	}
	return r, late
}

// progress restarts the write timer where the peer takes what the socket has, although that has no
// room for more yet: a socket that was full takes bytes again when a part of it is free, which
// takes a slow peer long. The caller holds mu.
func (c *conn) progress(now connection.Instant) bool {
	n, known := c.sock.ask(sock.Queued)
	took := known && n < c.queued
	if took {
		c.sendFrom = now.Mono
		c.takes(c.queued-n, now.Mono)
	}
	c.queued = n
	return took
}

// slowestReader is how many bytes a second a subscriber may be slow to read. Its system may
// acknowledge nothing until a whole buffer of it was read, some 160 KiB on loopback.
const slowestReader = 10 << 10

// takes notes that the peer's system took n bytes. The caller holds mu.
func (c *conn) takes(n int, now int64) {
	c.readBy = max(c.readBy, now) + int64(n)*int64(time.Second)/slowestReader
	c.readBy = min(c.readBy, now+c.host.cfg.Limits.SendWithin)
}

// takesFrom returns when the write timer began. For a subscriber it begins when it could have read
// what it took, and no later than one more SendWithin. The caller holds mu.
func (c *conn) takesFrom(streams bool) int64 {
	if streams {
		return max(c.sendFrom, c.readBy)
	}
	return c.sendFrom
}

// sendLast has the writer send a last frame and close. The caller holds mu.
func (c *conn) sendLast(frame func(dst []byte) []byte) {
	if c.out == nil {
		c.out = c.host.bufs.Get()
	}
	c.out.B = frame(c.out.B)
	c.Close()
	c.ring()
}

// Drop closes a connection at once, whatever it has to send: one that is served or lingers here.
// found is false where none has the name. It does not wait.
func (h *Host) Drop(name string) (found bool) {
	id, ok := h.Number(name)
	if !ok {
		return false
	}
	named := func(c *conn) bool { return c.port.ID() == id }
	if open := h.list(nil); slices.ContainsFunc(open, named) {
		open[slices.IndexFunc(open, named)].abort(connection.ReasonDropped)
		return true
	}
	last := h.listLingering()
	i := slices.IndexFunc(last, named)
	if i >= 0 {
		last[i].cut()
	}
	return i >= 0
}

// Number returns the number of the connection that has this name; ok is false where it is none of
// this Host.
func (h *Host) Number(name string) (id uint64, ok bool) { return h.direct.Number(name) }
