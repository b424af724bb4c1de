package stream

import (
	"net"
	"testing"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit/linktest"
)

// TestTheLastFrameNeedsNoEnd: where the protocol states how a frame ends, one that is cut by the
// end of the input is whole.
func TestTheLastFrameNeedsNoEnd(t *testing.T) {
	h, book, ln := listen(t, "tcp", func(c *Config) { c.Limits.EndOfInput = "d" })
	f := func(sent []byte, answered bool) {
		t.Helper()
		p := dial(t, h, book, ln)
		p.send(linktest.Frame('e', "a"), sent)
		if err := p.c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		p.want('e', "a")
		if answered {
			p.want('e', "end")
		}
		if _, b, err := linktest.Read(p.c); err == nil {
			t.Errorf("one more frame: %q", b)
		}
	}
	whole := linktest.Frame('e', "end")
	f(whole[:len(whole)-1], true)
	f(whole[:len(whole)-2], false) // still not whole: dropped
	f(nil, false)                  // nothing is begun that no one sent
	f(whole, true)
}

// TestALateFrameIsAnswered: a peer whose frame takes too long is informed before it is cut.
func TestALateFrameIsAnswered(t *testing.T) {
	late := string(linktest.Frame('x', "late"))
	timed := func(l *connection.Limits) {
		withTimers(l)
		l.LateFrame = func(b []byte) []byte { return append(b, late...) }
	}
	bubble(t, timed, func(p *peer) {
		p.send([]byte{0, 0})
		p.want('x', "late")
		p.wantClosed(connection.ReasonProtocol)
	})
}
