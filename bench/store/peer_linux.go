package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// recordBytes is what the peer appends for a request.
	recordBytes = 300
	// peerRead is how much it reads from a connection in a turn, PROTO_IOBUF_LEN of redis.
	peerRead = 16 << 10
	// peerEvents bounds the connections of a turn; redis takes all that are ready, and so does
	// this.
	peerEvents = 4096
	// peerFile is the size at which the file begins anew, so that a run does not fill the disk.
	// Redis rewrites its file instead.
	peerFile = 256 << 20
	// peerPostpone is how long a write waits for the sync of another thread (everysec).
	peerPostpone = 2 * time.Second
	// peerHold bounds what a client may leave unread before it is closed.
	peerHold = 8 << 20
)

// peerConn is one connection of the peer.
type peerConn struct {
	fd      int
	in      []byte // the part of a frame that a turn left behind
	out     []byte // replies that are not sent
	queued  bool   // it is in loop.replying
	blocked bool   // its socket took no more; epoll reports when it does
}

// loop is the bare group-commit loop.
type loop struct {
	epoll, listener int
	file            *appendFile
	conns           map[int32]*peerConn
	replying        []*peerConn
	buf             []byte
}

// runPeer serves on a free loopback port, appending to a file, until it is stopped.
func runPeer(path string, everysec bool) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-signals
		os.Exit(0)
	}()
	file, err := openAppend(path, everysec)
	if err != nil {
		return err
	}
	l := &loop{file: file, conns: map[int32]*peerConn{}, buf: make([]byte, peerRead)}
	addr, err := l.listen()
	if err != nil {
		return err
	}
	fmt.Printf("listening %s\n", addr)
	runtime.LockOSThread()
	return l.run()
}

func (l *loop) listen() (addr string, err error) {
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return "", fmt.Errorf("cannot open an epoll instance: %w", err)
	}
	if l.listener, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return "", fmt.Errorf("cannot open a socket: %w", err)
	}
	if err = unix.Bind(l.listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		err = unix.Listen(l.listener, unix.SOMAXCONN)
	}
	if err != nil {
		return "", fmt.Errorf("cannot listen: %w", err)
	}
	name, err := unix.Getsockname(l.listener)
	if err != nil {
		return "", fmt.Errorf("cannot read the address: %w", err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port), l.watch(unix.EPOLL_CTL_ADD, l.listener, unix.EPOLLIN)
}

func (l *loop) watch(op, fd int, events uint32) error {
	if err := unix.EpollCtl(l.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("cannot watch a socket: %w", err)
	}
	return nil
}

// run takes turns: what is ready is read, one write and sync make it durable, all replies leave.
func (l *loop) run() error {
	events := make([]unix.EpollEvent, peerEvents)
	for {
		n, err := unix.EpollWait(l.epoll, events, l.file.patience())
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("cannot wait: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			if int(e.Fd) == l.listener {
				err = l.accept()
			} else if c := l.conns[e.Fd]; c != nil {
				err = l.turn(c, e.Events)
			}
			if err != nil {
				return err
			}
		}
		if err := l.file.commit(); err != nil {
			return err
		}
		for _, c := range l.replying {
			c.queued = false
			if err := l.send(c); err != nil {
				return err
			}
		}
		l.replying = l.replying[:0]
	}
}

func (l *loop) accept() error {
	for {
		fd, _, err := unix.Accept4(l.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return nil // none left, or one that has gone again
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // without it replies are late, not lost
		l.conns[int32(fd)] = &peerConn{fd: fd}
		if err := l.watch(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN); err != nil {
			return err
		}
	}
}

// turn serves what is ready on a connection.
func (l *loop) turn(c *peerConn, events uint32) error {
	if events&unix.EPOLLOUT != 0 {
		l.reply(c)
	}
	if events&^unix.EPOLLOUT == 0 {
		return nil
	}
	n, err := unix.Read(c.fd, l.buf)
	if err == unix.EAGAIN || err == unix.EINTR {
		return nil
	}
	if err != nil || n == 0 || len(c.out) > peerHold {
		l.drop(c)
		return nil
	}
	in := l.buf[:n]
	if len(c.in) > 0 {
		c.in = append(c.in, in...)
		in = c.in
	}
	used, count, ok := takeRequests(in, &c.out)
	if !ok {
		l.drop(c)
		return nil
	}
	l.file.add(count)
	c.in = append(c.in[:0], in[used:]...)
	if count > 0 {
		l.reply(c)
	}
	return nil
}

// reply has the connection's replies sent after the commit.
func (l *loop) reply(c *peerConn) {
	if !c.queued {
		c.queued = true
		l.replying = append(l.replying, c)
	}
}

func (l *loop) send(c *peerConn) error {
	if l.conns[int32(c.fd)] != c || len(c.out) == 0 {
		return nil
	}
	n, err := unix.Write(c.fd, c.out)
	if err != nil && err != unix.EAGAIN && err != unix.EINTR {
		l.drop(c)
		return nil
	}
	c.out = append(c.out[:0], c.out[max(n, 0):]...)
	if blocked := len(c.out) > 0; blocked != c.blocked {
		c.blocked = blocked
		events := uint32(unix.EPOLLIN)
		if blocked {
			events |= unix.EPOLLOUT
		}
		return l.watch(unix.EPOLL_CTL_MOD, c.fd, events)
	}
	return nil
}

func (l *loop) drop(c *peerConn) {
	delete(l.conns, int32(c.fd))
	unix.Close(c.fd)
}
