package load

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	readBuffer = 256 << 10
	// drainTimeout bounds the wait for the replies that are still out when a run stops.
	drainTimeout = 10 * time.Second
	// pollMillis is how long an idle worker waits before it looks whether it should stop.
	pollMillis = 20
)

var errClosed = errors.New("connection closed by the server")

// worker drives its connections from one goroutine.
type worker struct {
	s     *Session
	epoll int
	conns []*conn
	buf   []byte
	hist  Histogram

	replies atomic.Uint64
	chunks  atomic.Uint64
	_       [64]byte // the counters are read from another core while they change
}

// pinned is run on the given CPUs. The thread is not unlocked, so that it ends with the goroutine
// and takes its affinity along.
func (w *worker) pinned(cpus []int) error {
	if len(cpus) > 0 {
		runtime.LockOSThread()
		if err := pin(cpus); err != nil {
			return err
		}
	}
	return w.run()
}

// run sends, waits and counts until the session stops and nothing is in flight, or nothing is left
// to send.
func (w *worker) run() error {
	events := make([]unix.EpollEvent, 1024)
	var deadline time.Time
	for _, c := range w.conns {
		w.fail(c, c.issue(c.depth, w.s.nanotime()))
	}
	for {
		stopping := w.s.stopping.Load()
		if w.idle(stopping) {
			return nil
		}
		if stopping {
			if deadline.IsZero() {
				deadline = time.Now().Add(drainTimeout)
			} else if time.Now().After(deadline) {
				return fmt.Errorf("%d replies missing %v after the last request", w.inflight(), drainTimeout)
			}
		}
		n, err := unix.EpollWait(w.epoll, events, w.s.wait)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("cannot wait for replies: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			w.turn(w.conns[e.Fd], e.Events, stopping)
		}
	}
}

// idle reports that every connection is done. It looks at all of them only when that can be the
// case.
func (w *worker) idle(stopping bool) bool {
	if !stopping && !w.s.finite && w.s.deadConns.Load() == 0 {
		return false
	}
	for _, c := range w.conns {
		if !c.done(stopping) {
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
func (w *worker) turn(c *conn, events uint32, stopping bool) {
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
		hist := &w.hist
		if !w.s.recording.Load() {
			hist = nil
		}
		c.settle(replies, now, hist)
		w.replies.Add(uint64(replies))
	}
	if err == nil && !stopping {
		err = c.issue(replies, now)
	}
	if err == nil {
		err = w.watch(c)
	}
	w.fail(c, err)
}

// watch asks for EPOLLOUT exactly while something is unsent.
func (w *worker) watch(c *conn) error {
	if want := len(c.unsent) > 0; want != c.watching {
		c.watching = want
		e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.index)}
		if want {
			e.Events |= unix.EPOLLOUT
		}
		return unix.EpollCtl(w.epoll, unix.EPOLL_CTL_MOD, c.fd, &e)
	}
	return nil
}

// read takes what has arrived and returns the number of whole replies in it.
func (w *worker) read(c *conn) (replies int, err error) {
	held := copy(w.buf, c.carry)
	n, err := unix.Read(c.fd, w.buf[held:])
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("cannot read: %w", err)
	case n == 0:
		return 0, errClosed
	}
	in := w.buf[:held+n]
	used, replies, err := w.s.split(w, c, in)
	if err == nil && used == 0 && len(in) == len(w.buf) {
		if len(w.buf) > maxFrame {
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
func (w *worker) fail(c *conn, err error) {
	if err == nil {
		return
	}
	c.dead = true
	w.s.deadConns.Add(1)
	w.s.dropped.Add(uint64(c.inflight))
	w.s.report(err)
	unix.Close(c.fd)
}

// splitKernel counts the unary replies in b and passes every ERROR frame to the session's evaluate.
func splitKernel(w *worker, c *conn, b []byte) (used, replies int, err error) {
	for {
		typ, payload, size, ok, err := ParseFrame(b[used:])
		if !ok || err != nil {
			return used, replies, err
		}
		used += size
		switch typ {
		case Response:
			c.tape.answered(1)
			replies++
		case Error:
			replies++
			if err := w.s.evaluate(c.tape.answered(1), payload); err != nil {
				return used, replies, err
			}
		case Chunk, streamEnd:
			w.chunks.Add(1)
		default:
			return used, replies, fmt.Errorf("cannot take a frame of type 0x%02X", typ)
		}
	}
}

// splitter counts the replies in b.
type splitter = func(w *worker, c *conn, b []byte) (used, replies int, err error)

func splitterOf(cfg Config) splitter {
	switch cfg.Protocol {
	case RESP:
		return splitBy(parseRESP)
	case HTTP:
		return splitBy(parseHTTP)
	case NATS:
		return splitNATS
	case Answers:
		return func(w *worker, _ *conn, b []byte) (used, replies int, err error) {
			used, replies, events, err := splitAnswers(b, cfg.Good, cfg.Greeted, cfg.Event)
			if events > 0 {
				w.chunks.Add(uint64(events))
			}
			return used, replies, err
		}
	case Lines:
		return func(_ *worker, _ *conn, b []byte) (used, replies int, err error) { return SplitLines(b, cfg.Reply) }
	}
	return splitKernel
}

// splitBy makes a splitter of a function that sizes one reply.
func splitBy(parse func(b []byte) (size int, ok bool, err error)) splitter {
	return func(_ *worker, _ *conn, b []byte) (used, replies int, err error) {
		for used < len(b) {
			size, ok, err := parse(b[used:])
			if !ok || err != nil {
				return used, replies, err
			}
			used += size
			replies++
		}
		return used, replies, nil
	}
}
