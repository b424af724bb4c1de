package reactor

import (
	"cmp"
	"context"
	"slices"

	"trunkline/engine/internal/sock"
	"trunkline/engine/link"
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
func (l *loop) list(now link.Instant) {
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
