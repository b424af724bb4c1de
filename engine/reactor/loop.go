package reactor

import (
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"

	"trunkline/engine/connection"
	"trunkline/engine/internal/poison"
)

// keepOut is the largest output buffer a loop keeps between turns: twice a full turn's replies.
const keepOut = 2 * connection.DefaultUnsentBytes

// What a loop may be ordered to do at its next round.
const (
	dueScan   uint32 = 1 << iota // look at the timers
	dueDrain                     // drain the sessions
	dueFinish                    // close the connections whose sessions are done in a drain
	dueForce                     // close everything
	dueList                      // describe the connections
	dueEcho                      // answer a probe
	dueDrop                      // close the connection of a removal
)

// loop is one event loop's connections. Fields below the inbox belong to the loop's goroutine.
type loop struct {
	srv   *Server
	el    gnet.EventLoop
	bell  net.Conn // a byte on it starts a round
	ding  [1]byte
	ended chan struct{} // closed when the loop has ended
	echo  chan struct{} // one slot: the answer to a probe
	count atomic.Int32  // connections here and on their way here
	rung  atomic.Bool   // the bell was rung since the last round began
	// parked is set while the loop waits in park. What rings then clears it and sends to unpark,
	// which has one slot.
	parked atomic.Bool
	unpark chan struct{}
	due    atomic.Uint32
	group  *connection.Loop
	asked  atomic.Pointer[survey] // what dueList is for

	removal atomic.Pointer[removal] // what dueDrop is for

	mu      sync.Mutex
	inbox   []*conn // woken connections, each at most once until it is pumped
	retired bool

	ready, spare []*conn // connections to serve in the next round; spare is the other one's memory
	conns        []*conn
	out          []byte // the turn's output: no connection keeps any
	sink         []byte
	input        input
	timer        *time.Timer // of park
	draining     bool
	forced       bool
	bytesIn      int64 // not yet in the stats
	bytesOut     int64
}

// newLoop rings itself into the gnet loop with the fewest connections.
func newLoop(s *Server) (*loop, error) {
	l := &loop{srv: s, ended: make(chan struct{}), echo: make(chan struct{}, 1), unpark: make(chan struct{}, 1)}
	l.timer = time.NewTimer(maxPark)
	l.group = connection.NewLoop(l.ring) // before the loop can come round
	theirs, ours, err := socketpair()
	if err != nil {
		return nil, err
	}
	g, err := s.client.EnrollContext(theirs, l)
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("cannot enroll a bell: %w", err)
	}
	l.bell, l.el = ours, g.EventLoop()
	return l, nil
}

func socketpair() (a, b net.Conn, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if a, err = fileConn(fds[0]); err != nil {
		_ = unix.Close(fds[1])
		return nil, nil, err
	}
	if b, err = fileConn(fds[1]); err != nil {
		_ = a.Close()
	}
	return a, b, err
}

// fileConn makes a net.Conn of fd, which it takes over.
func fileConn(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	return net.FileConn(f)
}

// order asks for something at the next round. Any goroutine.
func (l *loop) order(what uint32) {
	l.due.Or(what)
	l.ring()
}

// ring makes the loop come round, or ends its park. At most one byte is under way, so the write
// never waits; the bell's own lock keeps a late ring from reaching a descriptor that has become
// someone else's.
func (l *loop) ring() {
	switch {
	case l.rung.Swap(true):
	case l.parked.CompareAndSwap(true, false):
		l.unpark <- struct{}{}
	default:
		_, _ = l.bell.Write(l.ding[:])
	}
}

// retire drops what others still ask of a loop that has ended.
func (l *loop) retire() {
	l.mu.Lock()
	l.retired, l.inbox = true, nil
	l.mu.Unlock()
	_ = l.bell.Close()
}

// round serves what did not come from a socket. Where nearly everything that was read recently
// waits for something that comes soon, as a write of the journal, the loop waits for it too. So the
// replies leave in this round, and requests gather for the next write meanwhile.
func (l *loop) round() {
	l.pass()
	if l.group.EndRound() && l.input.mostlyWaiting() && l.park() {
		l.pass()
		l.group.EndRound()
	}
}

// input counts the bytes that sessions were fed recently, and those of them whose replies wait. By
// bytes, a client with many requests in flight counts more than one with a single request.
type input struct{ fed, waiting int }

// inputWindow is how many bytes count at least, once so many came: at twice that all count half.
const inputWindow = 16 << 10

func (i *input) add(n int, waits bool) {
	i.fed += n
	if waits {
		i.waiting += n
	}
	for i.fed >= 2*inputWindow {
		i.fed, i.waiting = i.fed/2, i.waiting/2
	}
}

// mostlyWaiting reports whether at most an eighth does not wait: the next requests of those clients
// may be delayed.
func (i *input) mostlyWaiting() bool { return i.waiting > 0 && i.waiting >= i.fed-i.fed/8 }

// maxPark is the longest that a loop waits in a round, whatever the disk does. As long do sockets
// wait that have become ready.
const maxPark = time.Millisecond

// park waits until the loop is rung, and reports true, or false after maxPark.
func (l *loop) park() bool {
	l.parked.Store(true)
	if !l.rung.Load() {
		l.timer.Reset(maxPark)
		select {
		case <-l.unpark:
			return true
		case <-l.timer.C:
		}
	}
	if l.parked.CompareAndSwap(true, false) {
		return false // also where the bell was rung before it was parked: the round comes
	}
	<-l.unpark // rung at the same time
	return true
}

// pass is one part of a round.
func (l *loop) pass() {
	l.group.BeginRound() // while rung is true, for its wake-ups need no ring
	l.rung.Store(false)
	l.group.BeginRound() // what was reached in between did not ring either
	now := l.srv.now()
	l.mu.Lock()
	for i, c := range l.inbox {
		l.inbox[i] = nil
		if c.gone {
			continue
		}
		c.woken = true
		if !c.queued {
			c.queued = true
			l.ready = append(l.ready, c)
		}
	}
	l.inbox = l.inbox[:0]
	l.mu.Unlock()
	if what := l.due.Swap(0); what != 0 {
		if what&dueList != 0 {
			l.list(now)
		}
		if what&dueDrop != 0 {
			l.dropAsked()
		}
		if what &^= dueList | dueDrop; what != 0 {
			l.obey(what, now)
		}
	}
	l.serve(now)
}

// enqueue has c served in the next round.
func (l *loop) enqueue(c *conn) {
	if !c.queued {
		c.queued = true
		l.ready = append(l.ready, c)
	}
	l.ring()
}

// serve gives every ready connection one turn; another one comes after the sockets had theirs.
func (l *loop) serve(now connection.Instant) {
	batch := l.ready
	l.ready = l.spare[:0]
	for i, c := range batch {
		batch[i] = nil
		c.queued = false
		if !c.gone && !c.turn(now) {
			l.drop(c)
		}
	}
	l.spare = batch[:0]
}

// drop has gnet close the descriptor of a connection that is done with, outside of its own events.
func (l *loop) drop(c *conn) { _ = l.el.Close(c.sock) }

// obey carries out orders. It walks backwards, for removal moves the last connection.
func (l *loop) obey(what uint32, now connection.Instant) {
	l.report()
	if what&dueEcho != 0 {
		select {
		case l.echo <- struct{}{}:
		default:
		}
	}
	l.draining = l.draining || what&dueDrain != 0
	l.forced = l.forced || what&dueForce != 0
	for i := len(l.conns) - 1; i >= 0; i-- {
		c := l.conns[i]
		keep := true
		switch {
		case l.forced:
			keep = c.close(connection.ReasonDrain)
		case what&dueDrain != 0:
			keep = c.drain(now)
		case what&dueFinish != 0 && c.Rests:
			keep = c.lastTurn(now)
		}
		if keep && what&dueScan != 0 {
			keep = c.inTime(now)
		}
		if !keep {
			l.drop(c)
		}
	}
}

func (l *loop) add(c *conn) {
	c.index = len(l.conns)
	l.conns = append(l.conns, c)
}

func (l *loop) remove(c *conn) {
	last := len(l.conns) - 1
	l.conns[c.index] = l.conns[last]
	l.conns[c.index].index = c.index
	l.conns[last] = nil
	l.conns = l.conns[:last]
	l.count.Add(-1)
}

// report brings the byte counts to the stats, twice a second rather than every turn.
func (l *loop) report() {
	l.srv.stats.BytesIn.Add(l.bytesIn)
	l.srv.stats.BytesOut.Add(l.bytesOut)
	l.bytesIn, l.bytesOut = 0, 0
}

// giveBack ends the loan of the output buffer.
func (l *loop) giveBack(out []byte) {
	poison.Fill(out)
	if cap(out) <= keepOut {
		l.out = out[:0]
	} else {
		l.out = nil
	}
}

// handler is what gnet calls. The context of each gnet connection is its conn, or a bell's loop.
type handler struct{ gnet.BuiltinEventEngine }

func (*handler) OnOpen(g gnet.Conn) ([]byte, gnet.Action) {
	if c, ok := g.Context().(*conn); ok && !c.open(g) {
		return nil, gnet.Close
	}
	return nil, gnet.None
}

func (*handler) OnTraffic(g gnet.Conn) gnet.Action {
	in, _ := g.Next(-1)
	switch x := g.Context().(type) {
	case *conn:
		if !x.received(in) {
			return gnet.Close
		}
	case *loop:
		x.round()
	}
	return gnet.None
}

func (*handler) OnClose(g gnet.Conn, err error) gnet.Action {
	switch x := g.Context().(type) {
	case *conn:
		x.hungUp(err)
	case *loop:
		close(x.ended)
		x.srv.loopEnded(err)
	}
	return gnet.None
}
