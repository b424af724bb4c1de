package reactor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unixPathMax is what sockaddr_un holds, without its final zero.
const unixPathMax = 107

// staleWithin is how long a unix socket may take to show that somebody answers.
const staleWithin = time.Second

// Listen opens "host:port" or "unix:///path" (kernel-ipc D41). A unix socket gets mode 0600; one that nobody answers is
// replaced, while one that is in use, and a file that is no socket, are errors. The file is removed when the listener closes.
func Listen(addr string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(addr, "unix://")
	if !isUnix {
		// Keep-alive is set per connection by the accept loop.
		ln, err := (&net.ListenConfig{KeepAlive: -1}).Listen(context.Background(), "tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
		}
		return ln, nil
	}
	if path == "" || len(path) > unixPathMax {
		return nil, fmt.Errorf("cannot listen on %s: the path must have 1 to %d bytes", addr, unixPathMax)
	}
	if err := clearStale(path); err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	ln, err := listenUnix(path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	return ln, nil
}

// listenUnix sets the mode before the name appears, where the system takes it from the descriptor, and after it everywhere.
func listenUnix(path string) (net.Listener, error) {
	cfg := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
	}}
	ln, err := cfg.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close()
		return nil, err
	}
	return ln, nil
}

// clearStale removes a socket that nobody answers.
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
		return errors.New("another server answers there")
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	default:
		return fmt.Errorf("cannot tell whether another server answers there: %w", err)
	}
}
