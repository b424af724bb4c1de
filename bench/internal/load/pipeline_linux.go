package load

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// batch is a number of requests written at the same moment.
type batch struct {
	at int64
	n  int
}

// pipeline is one connection of a closed loop; it belongs to one worker.
type pipeline struct {
	in, out   int // descriptors, of a socket the same
	index     int // in its worker's list, and in its epoll events
	tape      *Tape
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

// dialTimeout bounds one attempt to connect.
const dialTimeout = 5 * time.Second

// open opens a connection, and returns descriptors to read from it and to write to it that do not
// block and are the caller's.
func (c *Config) open() (in, out int, err error) {
	if c.In != nil {
		in, inErr := descriptor(c.In)
		out, outErr := descriptor(c.Out)
		return in, out, errors.Join(inErr, outErr)
	}
	nc, err := net.DialTimeout("tcp", c.Addr, dialTimeout)
	if err != nil {
		return -1, -1, fmt.Errorf("cannot dial %s: %w", c.Addr, err)
	}
	defer nc.Close()
	fd, err := descriptor(nc.(*net.TCPConn))
	return fd, fd, err
}

// descriptor returns a further descriptor of what is open.
func descriptor(of syscall.Conn) (fd int, err error) {
	raw, err := of.SyscallConn()
	if err == nil {
		failed := raw.Control(func(open uintptr) { fd, err = unix.FcntlInt(open, unix.F_DUPFD_CLOEXEC, 0) })
		err = errors.Join(failed, err)
	}
	if err != nil {
		return -1, fmt.Errorf("cannot use a connection: %w", err)
	}
	return fd, nil
}

func (c *pipeline) close() {
	unix.Close(c.in)
	if c.out != c.in {
		unix.Close(c.out)
	}
}

// issue sends n more requests, or remembers that it owes them while an earlier write is not
// through.
func (c *pipeline) issue(n int, now int64) error {
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

func (c *pipeline) write(b []byte) error {
	n, err := unix.Write(c.out, b)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		n = 0
	case err != nil:
		return fmt.Errorf("cannot write: %w", err)
	}
	c.unsent = b[n:]
	return nil
}

func (c *pipeline) push(b batch) {
	c.batches[(c.head+c.live)%len(c.batches)] = b
	c.live++
}

// settle counts the latencies of n replies that arrived at now. latency is nil outside the
// measured window.
func (c *pipeline) settle(n int, now int64, latency *Histogram) {
	c.inflight -= n
	for n > 0 {
		b := &c.batches[c.head]
		k := min(n, b.n)
		if latency != nil {
			latency.Add(now-b.at, uint64(k))
		}
		n -= k
		if b.n -= k; b.n == 0 {
			c.head = (c.head + 1) % len(c.batches)
			c.live--
		}
	}
}
