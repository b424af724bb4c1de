// Command baregnet is the bound of the wire benchmark: gnet with a frame splitter and a constant
// reply, nothing else.
package main

import (
	"flag"
	"net"

	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"

	"trunkline/bench/peers/internal/peer"
)

type server struct {
	gnet.BuiltinEventEngine
	addr    string
	replies peer.Replies
}

// session is the part of a frame that a turn left behind.
type session struct{ carry []byte }

func (s *server) OnBoot(gnet.Engine) gnet.Action {
	peer.Announce(s.addr)
	return gnet.None
}

func (s *server) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	c.SetContext(&session{})
	return nil, gnet.None
}

// OnTraffic counts the whole frames of the turn where they lie and answers them with one write.
func (s *server) OnTraffic(c gnet.Conn) gnet.Action {
	ss := c.Context().(*session)
	in, err := c.Next(-1)
	if err != nil {
		return gnet.Close
	}
	if len(ss.carry) > 0 {
		ss.carry = append(ss.carry, in...)
		in = ss.carry
	}
	count, used, ok := peer.Frames(in)
	if !ok {
		return gnet.Close
	}
	ss.carry = append(ss.carry[:0], in[used:]...)
	for count > 0 {
		out, taken := s.replies.Take(count)
		if _, err := c.Write(out); err != nil {
			return gnet.Close
		}
		count -= taken
	}
	return gnet.None
}

func main() {
	loops := flag.Int("loops", 1, "event loops")
	reply := peer.Reply()
	ln, err := net.Listen("tcp", "127.0.0.1:0") // gnet cannot report which port it was given
	if err != nil {
		peer.Fatal(err)
	}
	s := &server{addr: ln.Addr().String(), replies: peer.NewReplies(reply)}
	ln.Close()
	peer.ExitOnSignal()
	err = gnet.Run(s, "tcp://"+s.addr, gnet.WithNumEventLoop(*loops), gnet.WithReuseAddr(true),
		gnet.WithTCPNoDelay(gnet.TCPNoDelay), gnet.WithLogLevel(logging.ErrorLevel))
	if err != nil {
		peer.Fatal(err)
	}
}
