package reactor

import "github.com/panjf2000/gnet/v2"

// handler is what gnet calls. The context of each gnet connection is its conn, or a bell's loop.
type handler struct{ gnet.BuiltinEventEngine }

func (*handler) OnOpen(g gnet.Conn) ([]byte, gnet.Action) {
	if c, ok := g.Context().(*conn); ok && !c.open(g) {
		return nil, gnet.Close
	}
	return nil, gnet.None
}

func (*handler) OnTraffic(g gnet.Conn) gnet.Action {
	in, _ := g.Next(-1)
	switch x := g.Context().(type) {
	case *conn:
		if !x.received(in) {
			return gnet.Close
		}
	case *loop:
		x.round()
	}
	return gnet.None
}

func (*handler) OnClose(g gnet.Conn, err error) gnet.Action {
	switch x := g.Context().(type) {
	case *conn:
		x.hungUp(err)
	case *loop:
		close(x.ended)
		x.srv.loopEnded(err)
	}
	return gnet.None
}
