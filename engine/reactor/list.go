package reactor

import (
	"cmp"
	"context"
	"slices"

	"trunkline/engine/connection"
	"trunkline/engine/internal/sock"
	"trunkline/engine/obs"
	"trunkline/engine/stream"
)

// listPerRound bounds the connections that a loop describes in one round: some 100 µs.
const listPerRound = 256

// survey is the list that one loop makes of its connections. It is the loop's until done is closed.
type survey struct {
	rows  []obs.Connection
	begun bool
	left  int // connections before this index are still to be described
	done  chan struct{}
}

// Connections returns a row for each open connection, on loops and off, in the order of their
// numbers. A loop describes its connections a few at a time between the rounds that it makes
// anyway. When ctx ends before, those of the loops that did not answer are missing.
func (s *Server) Connections(ctx context.Context) []obs.Connection {
	s.listing.Lock()
	defer s.listing.Unlock()
	asked := make([]*survey, len(s.loops))
	for i, l := range s.loops {
		asked[i] = &survey{done: make(chan struct{})}
		l.asked.Store(asked[i])
		l.order(dueList)
	}
	var rows []obs.Connection
	for i, l := range s.loops {
		select {
		case <-asked[i].done:
			rows = append(rows, asked[i].rows...)
		case <-l.ended:
		case <-ctx.Done():
		}
	}
	// One that left its loop meanwhile is in both lists, one that moved in its loop in one twice.
	rows = s.host.Connections(rows)
	slices.SortStableFunc(rows, func(a, b obs.Connection) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return slices.CompactFunc(rows, func(a, b obs.Connection) bool { return a.ID == b.ID })
}

// list describes some more connections. It walks backwards, for removal moves the last one.
func (l *loop) list(now connection.Instant) {
	v := l.asked.Load()
	if v == nil {
		return
	}
	if !v.begun {
		v.begun, v.left = true, len(l.conns)
	}
	v.left = min(v.left, len(l.conns))
	for range min(v.left, listPerRound) {
		v.left--
		c := l.conns[v.left]
		row := stream.Row(c.port, &c.State, c.sess, now)
		if n, known := sock.Unsent(c.fd); known {
			row.UnsentBytes = int64(n)
		}
		v.rows = append(v.rows, row)
	}
	if v.left > 0 {
		l.order(dueList)
		return
	}
	if l.asked.CompareAndSwap(v, nil) {
		close(v.done)
	}
}

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
		c.close(connection.ReasonDropped)
		l.drop(c)
	}
	r.done <- i >= 0
}
