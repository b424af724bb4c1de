package reactor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"

	"trunkline/engine/connection"
	"trunkline/engine/stream"
)

// unixPathMax is what sockaddr_un holds, without its final zero.
const unixPathMax = 107

// staleWithin is how long a unix socket may take to answer.
const staleWithin = time.Second

// lockSuffix makes the name of a unix socket's lock file from that of the socket.
const lockSuffix = ".lock"

// Listen opens "host:port" or "unix:///path" (kernel-ipc D41). A literal IPv4 or IPv6 address is
// bound in its own family only.
//
// A unix socket gets mode 0600 and belongs to the process with an exclusive lock on path+".lock",
// which the listener does until it is closed; the lock file stays. Under the lock, a socket that
// does not answer is replaced, while one that is in use, and a file that is no socket, are errors.
// The socket file is removed when the listener closes, unless another one has taken its name since.
func Listen(addr string) (net.Listener, error) {
	var ln net.Listener
	var err error
	if path, ok := strings.CutPrefix(addr, "unix://"); ok {
		ln, err = listenUnix(path)
	} else {
		// Keep-alive is set per connection by the accept loop.
		ln, err = (&net.ListenConfig{KeepAlive: -1}).Listen(context.Background(), tcpNetwork(addr), addr)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	return ln, nil
}

// localPorts is how often a port is chosen that has to be free in both families.
const localPorts = 8

// ListenLocal opens "localhost:port" on both loopback addresses, with one port where it is 0, and
// any other address as Listen does. A machine without IPv6 has one listener.
func ListenLocal(addr string) ([]net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || !strings.EqualFold(host, "localhost") {
		ln, err := Listen(addr)
		return []net.Listener{ln}, err
	}
	for try := 1; ; try++ {
		four, err := Listen(net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			return nil, err
		}
		_, taken, _ := net.SplitHostPort(four.Addr().String())
		six, err := Listen(net.JoinHostPort("::1", taken))
		switch {
		case err == nil:
			return []net.Listener{four, six}, nil
		case errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT):
			return []net.Listener{four}, nil
		}
		_ = four.Close()
		if taken == port || try == localPorts || !errors.Is(err, unix.EADDRINUSE) {
			return nil, err
		}
	}
}

// tcpNetwork keeps a literal address in its family: "tcp" would open 0.0.0.0 for IPv6 as well.
func tcpNetwork(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "tcp"
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return "tcp"
	case ip.Unmap().Is4():
		return "tcp4"
	}
	return "tcp6"
}

// unixListener is a socket file that belongs to this process while lock is held.
type unixListener struct {
	*net.UnixListener
	path string
	made fs.FileInfo // device and inode of the socket file when it was made
	lock *os.File
	once sync.Once
}

// Close removes the socket file if it is still the same, stops listening and releases the lock, in
// this order: the open socket keeps its inode number from being given to another file before the
// comparison, and the lock keeps other servers off the name. Closing again returns net.ErrClosed.
func (l *unixListener) Close() error {
	err := net.ErrClosed
	l.once.Do(func() {
		var removeErr error
		if now, statErr := os.Lstat(l.path); statErr == nil && os.SameFile(now, l.made) {
			removeErr = os.Remove(l.path)
		}
		err = errors.Join(removeErr, l.UnixListener.Close(), l.lock.Close())
	})
	return err
}

func listenUnix(path string) (net.Listener, error) {
	if path == "" || len(path) > unixPathMax {
		return nil, fmt.Errorf("the path must have 1 to %d bytes", unixPathMax)
	}
	lock, err := lockPath(path + lockSuffix)
	if err != nil {
		return nil, err
	}
	if err = clearStale(path); err == nil {
		var ln *unixListener
		if ln, err = bindUnix(path); err == nil {
			ln.lock = lock
			return ln, nil
		}
	}
	_ = lock.Close()
	return nil, err
}

// lockPath takes the lock that decides which of several servers may replace and bind a socket. The
// system releases it when its holder ends, however that happens. The file must stay: two servers
// could hold locks on two files of that name, one of them removed.
func lockPath(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock file: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("another server holds the lock %s: %w", path, syscall.EADDRINUSE)
	}
	return nil, fmt.Errorf("cannot lock %s: %w", path, err)
}

// bindUnix sets the mode before the name appears, where the system takes it from the descriptor,
// and after it everywhere.
func bindUnix(path string) (*unixListener, error) {
	cfg := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
	}}
	ln, err := cfg.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	l := &unixListener{UnixListener: ln.(*net.UnixListener), path: path}
	if err = os.Chmod(path, 0o600); err == nil {
		l.made, err = os.Lstat(path)
	}
	if err != nil {
		_ = ln.Close()
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it would remove whatever has the name by then
	return l, nil
}

// clearStale removes a socket that does not answer.
func clearStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("a file that is not a socket is in the way")
	}
	c, err := net.DialTimeout("unix", path, staleWithin)
	switch {
	case err == nil:
		_ = c.Close()
		return fmt.Errorf("another server answers there: %w", syscall.EADDRINUSE)
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	default:
		return fmt.Errorf("cannot tell whether another server answers there: %w", err)
	}
}

// joinsInFlight bounds the connections on their way from an accept loop to their event loop, each
// of which has two descriptors. It is less where the limit of open files is low.
const joinsInFlight = 64

var (
	errNotOpened = errors.New("the event loop could not register it")
	errLoopEnded = errors.New("the event loop ended")
)

// join brings an accepted connection to the loop with the fewest.
func (s *Server) join(nc net.Conn, from *connection.Listener) {
	if zoned(nc) {
		s.host.ServeAdmitted(nc, from)
		return
	}
	l := s.pick()
	s.lent <- struct{}{}
	s.joining.Go(func() {
		defer func() { <-s.lent }()
		s.enroll(l, nc, from)
	})
}

func (s *Server) pick() *loop {
	best := s.loops[0]
	for _, l := range s.loops[1:] {
		if l.count.Load() < best.count.Load() {
			best = l
		}
	}
	best.count.Add(1)
	return best
}

// enroll opens the session and registers the socket; the loop owns both once its OnOpen ran.
func (s *Server) enroll(l *loop, nc net.Conn, from *connection.Listener) {
	c := &conn{loop: l, port: s.host.NewPort(stream.RemoteName(nc)).From(from)}
	var err error
	if c.sess, err = s.host.OpenSession(c.port); err == nil {
		if err = c.register(nc); err == nil {
			return
		}
		s.host.CloseSession(c.port, c.sess)
	}
	l.count.Add(-1)
	s.host.Abandon(nc, err)
}

// register returns once the connection is on its loop, or cannot be. gnet closes nc.
func (c *conn) register(nc net.Conn) error {
	res, err := c.loop.el.Enroll(gnet.NewContext(context.Background(), c), nc)
	if err != nil {
		return err
	}
	select {
	case r := <-res:
		if r.Err != nil {
			return r.Err
		}
		if !c.opened { // gnet keeps this failure to itself
			return errNotOpened
		}
		return nil
	case <-c.loop.ended:
		return errLoopEnded
	}
}

// zoned reports whether a peer is a link-local IPv6 one. gnet puts the zone of an address into a
// pool of writable buffers when it is done with it, although the bytes are a string that package
// net goes on using; so these connections do not go there.
func zoned(nc net.Conn) bool {
	for _, a := range []net.Addr{nc.LocalAddr(), nc.RemoteAddr()} {
		if t, ok := a.(*net.TCPAddr); ok && t.Zone != "" {
			return true
		}
	}
	return false
}
