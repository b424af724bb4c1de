package reactor

import (
	"context"
	"slices"

	"trunkline/engine/link"
)

// removal is an order to close a connection, by its number.
type removal struct {
	id   uint64
	done chan bool // one slot: whether the loop had it
}

// Drop closes a connection at once, on a loop or off, whatever it has to send. found is false where
// none has the name. The error is that of ctx, if a loop does not come round before it ends.
func (s *Server) Drop(ctx context.Context, name string) (found bool, err error) {
	id, ok := s.host.Number(name)
	if !ok {
		return false, nil
	}
	s.dropping.Lock()
	defer s.dropping.Unlock()
	asked := make([]*removal, len(s.loops))
	for i, l := range s.loops {
		asked[i] = &removal{id, make(chan bool, 1)}
		l.removal.Store(asked[i])
		l.order(dueDrop)
	}
	for i, l := range s.loops {
		select {
		case had := <-asked[i].done:
			found = found || had
		case <-l.ended:
		case <-ctx.Done():
			l.removal.CompareAndSwap(asked[i], nil)
			err = ctx.Err()
		}
	}
	if found || s.host.Drop(name) { // behind the loops, for a connection that left one meanwhile
		return true, nil
	}
	return false, err
}

// dropAsked closes the connection that Drop named, if it is here.
func (l *loop) dropAsked() {
	r := l.removal.Swap(nil)
	if r == nil {
		return
	}
	i := slices.IndexFunc(l.conns, func(c *conn) bool { return c.port.ID() == r.id })
	if i >= 0 {
		c := l.conns[i]
		c.close(link.ReasonDropped)
		l.drop(c)
	}
	r.done <- i >= 0
}
