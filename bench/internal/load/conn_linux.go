package load

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// batch is a number of requests written at the same moment.
type batch struct {
	at int64
	n  int
}

// conn is one client connection; it belongs to one worker.
type conn struct {
	fd        int
	index     int // in its worker's list, and in its epoll events
	tape      *Tape
	depth     int
	remaining int // requests still to send; negative: no end
	inflight  int
	owed      int    // requests that may be sent once unsent is gone
	unsent    []byte // the rest of a write that the socket did not take
	carry     []byte // the part of a reply that a read left behind
	batches   []batch
	head      int
	live      int // batches in use from head on
	watching  bool
	dead      bool
}

// dial opens a non-blocking TCP connection without Nagle's delay.
func dial(addr netip.AddrPort) (int, error) {
	if !addr.Addr().Is4() {
		return -1, fmt.Errorf("cannot dial %s: not an IPv4 address", addr)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot open a socket: %w", err)
	}
	to := &unix.SockaddrInet4{Addr: addr.Addr().As4(), Port: int(addr.Port())}
	for {
		if err = unix.Connect(fd, to); err != unix.EINTR {
			break
		}
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("cannot dial %s: %w", addr, err)
	}
	return fd, nil
}

// issue sends n more requests, or remembers that it owes them while an earlier write is not
// through.
func (c *conn) issue(n int, now int64) error {
	if c.remaining >= 0 {
		n = min(n, c.remaining-c.owed)
	}
	if c.owed += n; c.owed == 0 || len(c.unsent) > 0 {
		return nil
	}
	n, c.owed = c.owed, 0
	if c.remaining >= 0 {
		c.remaining -= n
	}
	c.push(batch{at: now, n: n})
	c.inflight += n
	return c.write(c.tape.take(n))
}

func (c *conn) write(b []byte) error {
	n, err := unix.Write(c.fd, b)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		n = 0
	case err != nil:
		return fmt.Errorf("cannot write: %w", err)
	}
	c.unsent = b[n:]
	return nil
}

func (c *conn) push(b batch) {
	c.batches[(c.head+c.live)%len(c.batches)] = b
	c.live++
}

// settle counts the latencies of n replies that arrived at now. hist is nil outside the measured
// window.
func (c *conn) settle(n int, now int64, hist *Histogram) {
	c.inflight -= n
	for n > 0 {
		b := &c.batches[c.head]
		k := min(n, b.n)
		if hist != nil {
			hist.Add(now-b.at, uint64(k))
		}
		n -= k
		if b.n -= k; b.n == 0 {
			c.head = (c.head + 1) % len(c.batches)
			c.live--
		}
	}
}

// done reports that the connection has nothing left to send or to wait for.
func (c *conn) done(stopping bool) bool {
	if c.dead {
		return true
	}
	return c.inflight == 0 && (stopping || c.remaining == 0)
}
