package web

import (
	"net"
	"testing"

	"trunkline/handlers/internal/conns"
)

// from is a connection between two addresses.
type from struct {
	net.Conn
	local, remote net.Addr
}

func (f from) LocalAddr() net.Addr  { return f.local }
func (f from) RemoteAddr() net.Addr { return f.remote }

// forwardedAddr is the address of a client of another node.
type forwardedAddr string

func (forwardedAddr) Network() string  { return "forwarded" }
func (f forwardedAddr) String() string { return string(f) }

// TestLocalAddr: a forwarded client has connected to loopback if it is there itself.
func TestLocalAddr(t *testing.T) {
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	there := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 2}
	f := func(local, remote net.Addr, loopback bool, want net.Addr) {
		t.Helper()
		c := &conn{Conn: conns.NewBook("x", "x").Enter(from{local: local, remote: remote}, "x")}
		got := c.LocalAddr()
		a, _ := got.(*net.TCPAddr)
		if want != nil && got != want || (a != nil && a.IP.IsLoopback()) != loopback {
			t.Errorf("%v from %v: %v", local, remote, got)
		}
	}
	unix := &net.UnixAddr{Name: "@"}
	f(here, here, true, here)
	f(there, here, false, there)
	f(here, there, true, here)
	f(unix, unix, false, unix)
	f(here, nil, true, here)
	for _, client := range []forwardedAddr{"127.0.0.1:5", "[::1]:5", "[::ffff:127.0.0.1]:5"} {
		f(there, client, true, nil)
	}
	for _, client := range []forwardedAddr{"10.0.0.1:5", "uid:1000", "", "localhost:5"} {
		f(here, client, false, client)
	}
}
