package stream

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

// drainProbe answers 'u' after each Feed that takes frames once it was asked to drain.
type drainProbe struct {
	*linktest.Session
	drained bool
}

func (j *drainProbe) Drain(now connection.Instant) {
	j.drained = true
	j.Session.Drain(now)
}

func (j *drainProbe) Feed(in, out []byte, now connection.Instant) (int, []byte, connection.Verdict) {
	used, out, v := j.Session.Feed(in, out, now)
	if j.drained && used > 0 {
		out = linktest.Append(out, 'u', nil)
	}
	return used, out, v
}

func judged(c *Config) {
	open := c.Open
	c.Open = func(p *connection.Port) connection.Session { return &drainProbe{Session: open(p).(*linktest.Session)} }
}

func TestDrainWaitsForFramesBehindABlockedSession(t *testing.T) {
	h, book, ln := listen(t, "tcp", judged)
	p := dial(t, h, book, ln)
	hold := linktest.Frame('h', "")
	p.send(linktest.Frame('e', "first"), hold, linktest.Frame('e', "behind"), hold, linktest.Frame('e', "last"))
	p.want('e', "first")
	h.Drain()
	for _, behind := range []string{"behind", "last"} { // blocked twice
		book.Last().Release()
		p.want('h', "")
		p.want('e', behind)
	}
	p.wantClosed(connection.ReasonDrain)
}

// duringRead calls do while a Read has its bytes and no other goroutine knows of them.
type duringRead struct {
	net.Conn
	once sync.Once
	do   func()
}

func (d *duringRead) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p)
	if n > 0 {
		d.once.Do(d.do)
	}
	return n, err
}

func TestDrainWaitsForBytesJustRead(t *testing.T) {
	h, book := newHost(t, judged)
	mine, theirs := net.Pipe()
	defer mine.Close()
	go func() { _ = h.Serve(&duringRead{Conn: theirs, do: h.Drain}, "pipe") }()
	p := &peer{t, mine, h, book}
	p.send(linktest.Frame('e', "in time"))
	p.want('e', "in time")
	p.wantClosed(connection.ReasonDrain)
}

// TestDrainReachesAQuietReader covers the ways a reader may wait: with nothing, inside a frame,
// after the peer's end.
func TestDrainReachesAQuietReader(t *testing.T) {
	f := func(name string, r connection.Reason, before func(p *peer), after func(p *peer)) {
		t.Run(name, func(t *testing.T) {
			h, book, ln := listen(t, "tcp", judged)
			p := dial(t, h, book, ln)
			before(p)
			h.Drain()
			after(p)
			p.wantClosed(r)
		})
	}
	echo := func(p *peer) {
		p.send(linktest.Frame('e', "x"))
		p.want('e', "x")
	}
	nothing := func(*peer) {}
	f("nothing read", connection.ReasonDrain, echo, nothing)
	f("inside a frame", connection.ReasonDrain, func(p *peer) {
		p.send(linktest.Frame('e', "x"), []byte{0, 0})
		p.want('e', "x")
	}, nothing)
	f("later frames are told", connection.ReasonDrain, func(p *peer) {
		p.send(linktest.Frame('q', ""))
		echo(p)
	}, func(p *peer) {
		kit.Until(p.t, "the session to be told", func() bool { return drainCalled(p.host) })
		p.send(linktest.Frame('e', "late"))
		p.want('e', "late")
		p.want('u', "")
		p.book.Last().Release()
		p.want('q', "")
	})
	f("after the end", connection.ReasonEOF, func(p *peer) {
		p.send(linktest.Frame('q', ""))
		echo(p)
		_ = p.c.(*net.TCPConn).CloseWrite()
		kit.Until(p.t, "the end to be seen", func() bool { return eofCalled(p.host) })
	}, func(p *peer) {
		p.book.Last().Release()
		p.want('q', "")
	})
}

func drainCalled(h *Host) bool {
	c := h.list(nil)[0]
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Draining() && !c.DrainDue()
}

func eofCalled(h *Host) bool {
	c := h.list(nil)[0]
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Peer == connection.PeerEOF
}

// plain is a transport that is not a net.Conn and has no deadlines.
type plain struct{ c net.Conn }

func (p plain) Read(b []byte) (int, error)  { return p.c.Read(b) }
func (p plain) Write(b []byte) (int, error) { return p.c.Write(b) }
func (p plain) Close() error                { return p.c.Close() }

func TestDrainWithoutDeadlines(t *testing.T) {
	h, book := newHost(t, judged)
	mine, theirs := net.Pipe()
	defer mine.Close()
	go func() { _ = h.Serve(plain{theirs}, "plain") }()
	p := &peer{t, mine, h, book}
	p.send(linktest.Frame('e', "x"))
	p.want('e', "x")
	h.Drain()
	p.wantClosed(connection.ReasonDrain)
}

func TestADeadlineOfSomeoneElseIsAnError(t *testing.T) {
	h, book := newHost(t, nil)
	mine, theirs := net.Pipe()
	defer mine.Close()
	_ = theirs.SetReadDeadline(time.Now().Add(time.Millisecond))
	_ = h.Serve(theirs, "pipe")
	(&peer{t, mine, h, book}).wantClosed(connection.ReasonError)
}

// locked wakes its owner at its first Feed only, and what unblocks it comes with a Pump after its
// second one.
type locked struct {
	*linktest.Session
	port  *connection.Port
	feeds int
	free  bool
}

func (l *locked) Feed(in, out []byte, now connection.Instant) (int, []byte, connection.Verdict) {
	if l.free || len(in) == 0 {
		return l.Session.Feed(in, out, now)
	}
	if l.feeds++; l.feeds == 1 {
		l.port.Wake()
	}
	return 0, out, connection.Blocked
}

func (l *locked) Pump(out []byte, room int, now connection.Instant) ([]byte, bool) {
	l.free = l.feeds > 1
	out, more := l.Session.Pump(out, room, now)
	return out, more || !l.free
}

func TestAnyPumpUnblocks(t *testing.T) {
	h, book := newHost(t, func(c *Config) {
		open := c.Open
		c.Open = func(p *connection.Port) connection.Session {
			return &locked{Session: open(p).(*linktest.Session), port: p}
		}
	})
	mine, theirs := net.Pipe()
	defer mine.Close()
	_ = mine.SetDeadline(time.Now().Add(5 * time.Second))
	go func() { _ = h.Serve(theirs, "pipe") }()
	p := &peer{t, mine, h, book}
	p.send(linktest.Frame('e', "x"))
	p.want('e', "x")
	_ = h.Close(context.Background())
}
