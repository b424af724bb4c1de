package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
)

const (
	childLoop = "group-commit"

	loopRead    = 16 << 10 // bytes read from a connection in a turn, PROTO_IOBUF_LEN of redis
	loopEvents  = 4096     // connections of a turn; redis takes all that are ready, and so does this
	loopFrame   = 1 << 20  // bytes of a request
	recordBytes = 300      // appended for a request
	// fileBytes is the size at which the file begins again, so that a run does not fill the disk.
	// Redis rewrites its file instead.
	fileBytes = 256 << 20
	// postponement is how long a write waits for the sync of another thread (everysec).
	postponement = 2 * time.Second
)

var record = bytes.Repeat([]byte{0xa5}, recordBytes)

// loopConn is one connection of the bare loop. Its socket blocks: it is read when it is ready, and
// what the load generator leaves unread fits into the socket.
type loopConn struct {
	fd  int
	in  []byte // the part of a frame that a turn left behind
	out []byte // replies of this turn
}

type loop struct {
	epoll, listener int
	conns           map[int32]*loopConn
	replying        []*loopConn
	buf             []byte

	file     *os.File
	everysec bool
	size     int64
	records  []byte // of this turn, and of those whose write was postponed
	written  time.Time
	syncing  atomic.Bool
}

func runLoop(args []string) (err error) {
	l := &loop{everysec: args[0] == "everysec", conns: map[int32]*loopConn{}, buf: make([]byte, loopRead)}
	if l.file, err = os.Create(args[1]); err != nil {
		return err
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	socket, err := ln.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	defer socket.Close() // which also keeps it from being closed before
	l.listener = int(socket.Fd())
	l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err = errors.Join(err, l.watch(l.listener)); err != nil {
		return err
	}
	if l.everysec {
		go l.syncEachSecond()
	}
	fmt.Printf("listening %s\n", ln.Addr())
	runtime.LockOSThread()
	return l.run()
}

func (l *loop) watch(fd int) error {
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// run takes turns: what is ready is read, one write and sync make it durable, all replies leave.
func (l *loop) run() error {
	events := make([]unix.EpollEvent, loopEvents)
	for {
		wait := -1
		if len(l.records) > 0 {
			wait = 100 // milliseconds
		}
		n, err := unix.EpollWait(l.epoll, events, wait)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("cannot wait: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			if int(e.Fd) == l.listener {
				l.accept()
			} else if c := l.conns[e.Fd]; !l.take(c) {
				l.drop(c)
			}
		}
		if err := l.commit(); err != nil {
			return fmt.Errorf("cannot append: %w", err)
		}
		for _, c := range l.replying {
			if _, err := unix.Write(c.fd, c.out); err != nil {
				l.drop(c)
			}
			c.out = c.out[:0]
		}
		l.replying = l.replying[:0]
	}
}

func (l *loop) accept() {
	fd, _, err := unix.Accept4(l.listener, unix.SOCK_CLOEXEC)
	if err != nil {
		return // it has gone again
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // without it replies are late, not lost
	c := &loopConn{fd: fd}
	l.conns[int32(fd)] = c
	if l.watch(fd) != nil {
		l.drop(c)
	}
}

// take reads what is ready on a connection. It returns false at its end, and after what is no
// request.
func (l *loop) take(c *loopConn) bool {
	n, err := unix.Read(c.fd, l.buf)
	if err != nil || n == 0 {
		return false
	}
	in := l.buf[:n]
	if len(c.in) > 0 {
		c.in = append(c.in, in...)
		in = c.in
	}
	used, count, ok := takeRequests(in, &c.out)
	if ok && count > 0 {
		for range count {
			l.records = append(l.records, record...)
		}
		l.replying = append(l.replying, c)
	}
	c.in = append(c.in[:0], in[used:]...)
	return ok
}

func (l *loop) drop(c *loopConn) {
	delete(l.conns, int32(c.fd))
	unix.Close(c.fd)
}

// commit writes the records and, in always, syncs them. While the other thread syncs, when a write
// would wait for it, it is postponed.
func (l *loop) commit() error {
	if len(l.records) == 0 || l.syncing.Load() && time.Since(l.written) < postponement {
		return nil
	}
	n, err := l.file.Write(l.records)
	l.records, l.size, l.written = l.records[:0], l.size+int64(n), time.Now()
	if err == nil && !l.everysec {
		err = unix.Fdatasync(int(l.file.Fd()))
	}
	if err == nil && l.size >= fileBytes {
		_, seekErr := l.file.Seek(0, io.SeekStart)
		l.size, err = 0, errors.Join(seekErr, l.file.Truncate(0))
	}
	return err
}

func (l *loop) syncEachSecond() {
	for range time.Tick(time.Second) {
		l.syncing.Store(true)
		if err := unix.Fdatasync(int(l.file.Fd())); err != nil {
			fmt.Fprintln(os.Stderr, "cannot sync:", err)
			os.Exit(1)
		}
		l.syncing.Store(false)
	}
}

// takeRequests finds the whole frames that b begins with and appends a reply with an empty body to
// each to out. ok is false for what is no request in the common form.
func takeRequests(b []byte, out *[]byte) (used, count int, ok bool) {
	for {
		kind, payload, n := frame.Split(b[used:], loopFrame)
		if n == 0 {
			return used, count, true
		}
		var r mpack.Request
		if n == frame.Malformed || kind != frame.Request {
			return used, count, false
		}
		if _, ok := mpack.ParseHead(payload, &r); !ok {
			return used, count, false
		}
		start := len(*out)
		*out = mpack.AppendMap(mpack.AppendResponseHead(frame.Begin(*out, frame.Response), r.ID), 0)
		frame.Finish(*out, start)
		used += n
		count++
	}
}
