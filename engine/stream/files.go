package stream

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// spareDescriptors is how many descriptors connections leave to the rest of the process: the files
// of the store (256), connections that move to another owner, listeners, the admin endpoint,
// workers. Where the limit is low they leave half of it.
const spareDescriptors = 384

// Files counts the descriptors that all connections of a process may take. nil counts nothing.
type Files struct {
	spare  int64 // what connections leave to the rest
	free   atomic.Int64
	logged atomic.Int64
}

// NewFiles returns what the limit of open files leaves for connections, or nil if it is unknown.
func NewFiles() *Files {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return nil
	}
	limit := int64(min(uint64(l.Cur), 1<<32))
	f := &Files{spare: min(spareDescriptors, limit/2)}
	f.free.Store(limit - f.spare)
	return f
}

// Share returns how many of n things may be open that take spare descriptors: n, and where the
// limit is low as much less as there are fewer than spareDescriptors, but at least 1.
func (f *Files) Share(n int) int {
	if f == nil {
		return n
	}
	return max(1, int(int64(n)*f.spare/spareDescriptors))
}

// take reports whether there is a descriptor for one more connection.
func (f *Files) take() bool {
	if f == nil || f.free.Add(-1) >= 0 {
		return true
	}
	f.free.Add(1)
	return false
}

// add counts descriptors that are there whatever the limit.
func (f *Files) add(n int64) {
	if f != nil {
		f.free.Add(-n)
	}
}

// refused logs, now and then, why a connection was refused.
func (f *Files) refused(log *slog.Logger) {
	now, last := time.Now().UnixNano(), f.logged.Load()
	if (last == 0 || now-last >= int64(acceptLogEvery)) && f.logged.CompareAndSwap(last, now) {
		log.Warn("refusing connections: the limit of open files (RLIMIT_NOFILE) is near, and the rest is for the store and for connections that are there")
	}
}

// Listener returns ln for an owner without a Gate: its connections are counted. Those for which
// there is no descriptor are closed, and those of a unix socket whose peer is another user.
func (f *Files) Listener(ln net.Listener, log *slog.Logger) net.Listener {
	return &countedListener{Listener: ln, files: f, log: log}
}

type countedListener struct {
	net.Listener
	files *Files
	log   *slog.Logger
}

// Accept implements net.Listener.
func (l *countedListener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		// The file of a socket that a supervisor has opened may be open to all users.
		err = peerAllowed(nc)
		if err == nil && l.files.take() {
			return &countedConn{Conn: nc, files: l.files}, nil
		}
		if err != nil {
			l.log.Warn("connection closed", "err", err)
		} else {
			l.files.refused(l.log)
		}
		_ = nc.Close()
	}
}

type countedConn struct {
	net.Conn
	files *Files
	once  sync.Once
}

// CloseWrite ends the sending direction, where the transport can.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(writeCloser); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.files.add(-1) })
	return err
}
