package reactor

import (
	"net"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit/linktest"
)

// TestTheLastFrameNeedsNoEnd: as in engine/stream, where such a connection goes.
func TestTheLastFrameNeedsNoEnd(t *testing.T) {
	s := start(t, "tcp", func(c *Config) { c.Limits.EndOfInput = "d" })
	p := s.dial()
	whole := linktest.Frame('e', "end")
	p.send(linktest.Frame('e', "a"), whole[:len(whole)-1])
	p.want('e', "a")
	if err := p.c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	p.want('e', "end")
	p.wantClosed(connection.ReasonEOF)
}

// TestALateFrameIsAnswered: a peer whose frame takes too long is informed before it is cut.
func TestALateFrameIsAnswered(t *testing.T) {
	s := start(t, "tcp", func(c *Config) {
		c.Limits.FrameWithin, c.Limits.LateFrame = int64(100*time.Millisecond),
			func(b []byte) []byte { return append(b, linktest.Frame('x', "late")...) }
	})
	p := s.dial()
	p.send([]byte{0, 0})
	p.want('x', "late")
	p.wantClosed(connection.ReasonProtocol)
}
