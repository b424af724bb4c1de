package stream

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestUIDAllowed(t *testing.T) {
	f := func(peer, own uint32, want bool) {
		t.Helper()
		if got := uidAllowed(peer, own); got != want {
			t.Errorf("uid %d at a server of %d: %v", peer, own, got)
		}
	}
	f(1000, 1000, true)
	f(0, 1000, true)
	f(1001, 1000, false)
	f(1001, 0, false)
}

// dialAs connects to a unix socket as another user.
func dialAs(uid int, addr string) (net.Conn, error) {
	type dialed struct {
		nc  net.Conn
		err error
	}
	out := make(chan dialed)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine, and its user with it
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); e != 0 {
			out <- dialed{nil, e}
			return
		}
		nc, err := net.Dial("unix", addr)
		out <- dialed{nc, err}
	}()
	d := <-out
	return d.nc, d.err
}

// TestListenersLookAtTheUser: a socket without a file, as one with an open file, lets everyone
// connect.
func TestListenersLookAtTheUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs to connect as another user")
	}
	inner, err := net.Listen("unix", "@"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	var log bytes.Buffer
	ln := (*Files)(nil).Listener(inner, slog.New(slog.NewTextHandler(&log, nil)))
	stranger, err := dialAs(65534, inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	own, err := net.Dial("unix", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if _, err := own.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, c := range []net.Conn{nc, stranger} {
		_ = c.SetDeadline(time.Now().Add(time.Minute))
	}
	b := make([]byte, 2)
	if n, err := nc.Read(b); err != nil || string(b[:n]) != "x" {
		t.Errorf("%q, %v", b[:n], err)
	}
	if n, err := stranger.Read(b); n > 0 || err == nil {
		t.Errorf("another user is served: %d bytes, %v", n, err)
	}
	if !strings.Contains(log.String(), "uid 65534, pid") {
		t.Errorf("the log has no reason: %s", log.String())
	}
}
