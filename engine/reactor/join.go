package reactor

import (
	"context"
	"errors"
	"net"

	"github.com/panjf2000/gnet/v2"

	"trunkline/engine/link"
	"trunkline/engine/stream"
)

// joinsInFlight bounds the connections on their way from an accept loop to their event loop, each
// of which has two descriptors. It is less where the limit of open files is low.
const joinsInFlight = 64

var (
	errNotOpened = errors.New("the event loop could not register it")
	errLoopEnded = errors.New("the event loop ended")
)

// join brings an accepted connection to the loop with the fewest.
func (s *Server) join(nc net.Conn, from *link.Listener) {
	if zoned(nc) {
		s.host.ServeAdmitted(nc, from)
		return
	}
	l := s.pick()
	s.lent <- struct{}{}
	s.joining.Go(func() {
		defer func() { <-s.lent }()
		s.enroll(l, nc, from)
	})
}

func (s *Server) pick() *loop {
	best := s.loops[0]
	for _, l := range s.loops[1:] {
		if l.count.Load() < best.count.Load() {
			best = l
		}
	}
	best.count.Add(1)
	return best
}

// enroll opens the session and registers the socket; the loop owns both once its OnOpen ran.
func (s *Server) enroll(l *loop, nc net.Conn, from *link.Listener) {
	c := &conn{loop: l, port: s.host.NewPort(stream.RemoteName(nc)).From(from)}
	var err error
	if c.sess, err = s.host.OpenSession(c.port); err == nil {
		if err = c.register(nc); err == nil {
			return
		}
		s.host.CloseSession(c.port, c.sess)
	}
	l.count.Add(-1)
	s.host.Abandon(nc, err)
}

// register returns once the connection is on its loop, or cannot be. gnet closes nc.
func (c *conn) register(nc net.Conn) error {
	res, err := c.loop.el.Enroll(gnet.NewContext(context.Background(), c), nc)
	if err != nil {
		return err
	}
	select {
	case r := <-res:
		if r.Err != nil {
			return r.Err
		}
		if !c.opened { // gnet keeps this failure to itself
			return errNotOpened
		}
		return nil
	case <-c.loop.ended:
		return errLoopEnded
	}
}

// zoned reports whether a peer is a link-local IPv6 one. gnet puts the zone of an address into a
// pool of writable buffers when it is done with it, although the bytes are a string that package
// net goes on using; so these connections do not go there.
func zoned(nc net.Conn) bool {
	for _, a := range []net.Addr{nc.LocalAddr(), nc.RemoteAddr()} {
		if t, ok := a.(*net.TCPAddr); ok && t.Zone != "" {
			return true
		}
	}
	return false
}
