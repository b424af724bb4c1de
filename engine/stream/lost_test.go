package stream

import (
	"net"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

func TestAResetAfterTheEndIsNoticed(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			h, book, ln := listen(t, network, nil)
			p := dial(t, h, book, ln)
			p.send(linktest.Frame('q', ""), linktest.Frame('e', "x"))
			p.want('e', "x")
			_ = p.c.(writeCloser).CloseWrite()
			kit.Until(t, "the end to be seen", func() bool { return eofCalled(h) })
			time.Sleep(2 * TickEvery)
			if n := h.Gate.Open(); n != 1 {
				t.Fatal("a peer that waits for its answer was cut")
			}
			if c, ok := p.c.(*net.TCPConn); ok {
				_ = c.SetLinger(0)
			}
			_ = p.c.Close()
			p.wantReason(connection.ReasonError)
		})
	}
}

func TestHungUpNeedsASocket(t *testing.T) {
	mine, theirs := net.Pipe()
	_ = mine.Close()
	for _, rwc := range []net.Conn{theirs, &duringRead{Conn: theirs}} {
		if socketOf(rwc).hungUp() {
			t.Errorf("%T is no socket, yet hung up", rwc)
		}
	}
	if socketOf(plain{theirs}).hungUp() {
		t.Error("a transport without a socket hung up")
	}
}
