package load

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// closedBuffer is what a worker reads at a time, until a reply is larger.
	closedBuffer = 256 << 10
	// maxReply bounds one reply, in bytes: three times what servers send at most.
	maxReply = 16 << 20
	// drainTimeout bounds the wait for the replies that are still out when a run stops.
	drainTimeout = 10 * time.Second
	// pollMillis is how long an idle worker waits before it looks whether it should stop.
	pollMillis = 20
)

var errClosed = errors.New("connection closed by the server")

// worker drives its connections from one goroutine.
type worker struct {
	s       *Session
	epoll   int
	conns   []*pipeline
	buf     []byte
	latency Histogram
	pace    *pace // nil: not paced

	replies atomic.Uint64
	chunks  atomic.Uint64
	_       [64]byte // the counters are read from another core while they change
}

// run sends, waits and counts until the session stops and nothing is in flight, or nothing is left
// to send. The thread of a pinned worker is not unlocked, so that it ends with the goroutine and
// takes its affinity along.
func (w *worker) run() error {
	if cpus := w.s.cfg.CPUs; len(cpus) > 0 {
		runtime.LockOSThread()
		if err := pin(cpus); err != nil {
			return err
		}
	}
	events := make([]unix.EpollEvent, 1024)
	var deadline time.Time
	if w.pace == nil {
		for _, c := range w.conns {
			w.fail(c, c.issue(w.s.cfg.Depth, w.s.nanotime()))
		}
	} else if w.s.cfg.For > 0 {
		deadline = w.s.epoch.Add(w.s.cfg.For + drainTimeout)
	}
	for {
		stopping := w.s.stopping.Load()
		if w.idle(stopping) {
			return nil
		}
		if stopping && deadline.IsZero() {
			deadline = time.Now().Add(drainTimeout)
		}
		if !deadline.IsZero() && time.Now().After(deadline) {
			return fmt.Errorf("%d replies missing %v after the last request", w.inflight(), drainTimeout)
		}
		n, err := unix.EpollWait(w.epoll, events, w.s.wait)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("cannot wait for replies: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			if e.Fd >= 0 {
				w.turn(w.conns[e.Fd], e.Events, stopping)
			} else {
				_, _ = unix.Read(w.pace.timer, w.buf[:8]) // missed ticks follow from the clock
			}
		}
		if w.pace != nil && !stopping {
			w.sendDue(w.s.nanotime())
		}
	}
}

// idle reports that every connection is done. It looks at all of them only when that can be the
// case.
func (w *worker) idle(stopping bool) bool {
	if w.pace != nil {
		return w.s.deadConns.Load() > 0 || (stopping || w.pace.sent == w.pace.total) && w.inflight() == 0
	}
	if !stopping && !w.s.cfg.Once && w.s.deadConns.Load() == 0 {
		return false
	}
	for _, c := range w.conns {
		if !c.dead && (c.inflight > 0 || !stopping && c.remaining != 0) {
			return false
		}
	}
	return true
}

func (w *worker) inflight() (n int) {
	for _, c := range w.conns {
		if !c.dead {
			n += c.inflight
		}
	}
	return n
}

// turn serves one event of one connection.
func (w *worker) turn(c *pipeline, events uint32, stopping bool) {
	if c.dead {
		return
	}
	replies, err := 0, error(nil)
	if events&^unix.EPOLLOUT != 0 {
		replies, err = w.read(c)
	}
	if err == nil && len(c.unsent) > 0 && events&unix.EPOLLOUT != 0 {
		err = c.write(c.unsent)
	}
	now := w.s.nanotime()
	if replies > 0 {
		w.settle(c, replies, now)
		w.replies.Add(uint64(replies))
	}
	if err == nil && !stopping && w.pace == nil {
		err = c.issue(replies, now)
	}
	if err == nil {
		err = w.watch(c)
	}
	w.fail(c, err)
}

// settle counts the latencies of replies that arrived at now.
func (w *worker) settle(c *pipeline, replies int, now int64) {
	if each := w.s.cfg.Each; each != nil {
		for range replies {
			at := time.Duration(c.batches[c.head].at)
			each(w.s.epoch.Add(at), time.Duration(now)-at)
			c.settle(1, now, nil)
		}
		return
	}
	latency := &w.latency
	if !w.s.recording.Load() {
		latency = nil
	}
	c.settle(replies, now, latency)
}

// watch asks for EPOLLOUT exactly while something is unsent.
func (w *worker) watch(c *pipeline) error {
	if want := len(c.unsent) > 0; want != c.watching {
		c.watching = want
		e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.index)}
		if want {
			e.Events |= unix.EPOLLOUT
		}
		return unix.EpollCtl(w.epoll, unix.EPOLL_CTL_MOD, c.out, &e)
	}
	return nil
}

// read takes what has arrived and returns the number of whole replies in it.
func (w *worker) read(c *pipeline) (replies int, err error) {
	held := copy(w.buf, c.carry)
	n, err := unix.Read(c.in, w.buf[held:])
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("cannot read: %w", err)
	case n == 0:
		return 0, errClosed
	}
	in := w.buf[:held+n]
	used, replies, events, err := w.s.cfg.Protocol(&w.s.cfg, in)
	if events > 0 {
		w.chunks.Add(uint64(events))
	}
	if err == nil && used == 0 && len(in) == len(w.buf) {
		if len(w.buf) > maxReply {
			err = errors.New("cannot take a reply larger than any frame")
		}
		w.buf = append(w.buf, make([]byte, len(w.buf))...) // in still names the old one
	}
	if err == nil && replies > c.inflight {
		err = fmt.Errorf("cannot take %d replies to %d requests", replies, c.inflight)
		replies = c.inflight
	}
	c.carry = append(c.carry[:0], in[used:]...)
	return replies, err
}

// fail ends a connection that had an error: its requests in flight count as dropped.
func (w *worker) fail(c *pipeline, err error) {
	if err == nil {
		return
	}
	c.dead = true
	w.s.deadConns.Add(1)
	w.s.dropped.Add(uint64(c.inflight))
	w.s.report(err)
	c.close()
}

// pin binds the calling thread to some CPUs. The caller has locked its goroutine to the thread.
func pin(cpus []int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("cannot pin to CPUs %v: %w", cpus, err)
	}
	return nil
}

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
