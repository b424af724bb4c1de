package httpd

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
)

const most = 8

// piped is a listener in memory, so that waiting can be seen without waiting.
type piped struct {
	net.Listener
	come   chan net.Conn
	closed chan struct{}
}

func (p *piped) Accept() (net.Conn, error) {
	select {
	case c := <-p.come:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *piped) Close() error { close(p.closed); return nil }

// crowd puts n connections into the backlog of a limited listener and accepts what it lets in;
// accepted counts them.
func crowd(n int) (ln *Listener, accepted chan net.Conn, ended chan error) {
	p := &piped{come: make(chan net.Conn, n), closed: make(chan struct{})}
	for range n {
		c, _ := net.Pipe()
		p.come <- c
	}
	ln, accepted, ended = Limit(p, most), make(chan net.Conn, n), make(chan error, 1)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	return ln, accepted, ended
}

func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln, accepted, ended := crowd(most + 2)
		want := func(why string, n int) {
			t.Helper()
			synctest.Wait()
			if len(accepted) != n {
				t.Fatalf("%s: %d connections accepted, want %d", why, len(accepted), n)
			}
		}
		want("at the limit", most)
		first := <-accepted
		first.Close()
		want("one left, one more came", most)
		first.Close()
		want("closing twice frees one slot", most)
		ln.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept without a slot ended with %v", err)
		}
	})
}

func TestAFailedAcceptKeepsNoSlot(t *testing.T) {
	p := &piped{closed: make(chan struct{})}
	ln := Limit(p, 1)
	p.Close()
	for range 2 {
		if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept ended with %v", err)
		}
	}
}

func TestTheBoundChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln, accepted, ended := crowd(most + 4)
		want := func(why string, n int) {
			t.Helper()
			synctest.Wait()
			if len(accepted) != n {
				t.Fatalf("%s: %d connections accepted, want %d", why, len(accepted), n)
			}
		}
		want("at the limit", most)
		ln.setLimit(most + 1)
		want("one more may come", most+1)
		ln.setLimit(most - 1)
		(<-accepted).Close()
		(<-accepted).Close()
		want("at the lower limit none comes", most-1)
		(<-accepted).Close()
		want("below it one does", most-1)
		ln.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept without a slot ended with %v", err)
		}
	})
}

// listenerOf accepts one connection.
type listenerOf struct{ net.Conn }

func (l listenerOf) Accept() (net.Conn, error) { return l.Conn, nil }
func (l listenerOf) Addr() net.Addr            { return l.LocalAddr() }

// TestCloseWithoutWaiting: closing twice, as a forced end does, must not linger.
func TestCloseWithoutWaiting(t *testing.T) {
	s := NewServer(Config{HTTP: new(http.Server), Book: NewBook("x", "x"), Connections: 1,
		Logger: slog.New(slog.DiscardHandler)})
	near, far := net.Pipe()
	defer far.Close()
	ln := s.Bound(listenerOf{near})
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.(*Conn).LingerAtEnd()
	s.stopped.Store(true)
	c.Close()
	c.Close()
	if _, err := far.Write([]byte("x")); err == nil || ln.Open() != 0 {
		t.Error("the connection is open or keeps its place")
	}
}

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
		c := NewBook("x", "x").Enter(from{local: local, remote: remote}, "x")
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
