// Command baregnet is the bound of the wire benchmark: gnet with a frame splitter and a constant
// reply, nothing else.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"

	"trunkline/bench/peers/internal/peer"
)

type server struct {
	gnet.BuiltinEventEngine
	engine  gnet.Engine
	addr    string
	replies peer.Replies
}

// session is the part of a frame that a turn left behind.
type session struct{ carry []byte }

func (s *server) OnBoot(engine gnet.Engine) gnet.Action {
	s.engine = engine
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
	addr := flag.String("addr", "127.0.0.1:0", "address to listen on")
	reply := flag.Int("reply", 174, "bytes of the constant reply, prefix included")
	loops := flag.Int("loops", 1, "event loops")
	reuse := flag.Bool("reuseport", false, "one listener per loop (SO_REUSEPORT)")
	flag.Parse()

	free, err := peer.FreeAddr(*addr)
	if err != nil {
		peer.Fatal(err)
	}
	s := &server{addr: free, replies: peer.NewReplies(*reply)}
	go stopOnSignal(s)
	err = gnet.Run(s, "tcp://"+free, gnet.WithNumEventLoop(*loops), gnet.WithReusePort(*reuse), gnet.WithReuseAddr(true),
		gnet.WithTCPNoDelay(gnet.TCPNoDelay), gnet.WithLogLevel(logging.ErrorLevel))
	if err != nil {
		peer.Fatal(err)
	}
}

func stopOnSignal(s *server) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM, os.Interrupt)
	<-c
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if s.engine.Stop(ctx) != nil {
		os.Exit(1)
	}
}
