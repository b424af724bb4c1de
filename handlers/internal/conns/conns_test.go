package conns

import (
	"errors"
	"net"
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
		ln.SetLimit(most + 1)
		want("one more may come", most+1)
		ln.SetLimit(most - 1)
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
