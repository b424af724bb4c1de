package stream

import (
	"sync/atomic"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/internal/sock"
	"trunkline/engine/obs"
)

// The states of a connection, for lists.
const (
	stateOpen      = "open"
	stateDraining  = "draining"
	stateLingering = "lingering"
)

// Row describes a connection for a list. Its owner calls it, and adds what it has in buffers.
func Row(p *connection.Port, s *connection.State, sess connection.Session, now connection.Instant) obs.Connection {
	l, age := p.Listener(), max(now.Mono-s.Opened, 0)
	c := obs.Connection{
		ID: p.Name(), Protocol: l.Protocol, Listener: l.Addr, Peer: p.Remote(), State: stateOpen,
		Opened:     time.UnixMilli(now.Wall - age/int64(time.Millisecond)).UTC(),
		AgeSeconds: seconds(age), IdleSeconds: seconds(max(now.Mono-s.Quiet, 0)),
		BytesIn: s.In, BytesOut: s.Out,
	}
	if s.Draining() {
		c.State = stateDraining
	}
	if r, ok := sess.(connection.Reporter); ok {
		c.InFlight, c.Streams = r.Report()
	}
	return c
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }

// Connections appends a row for each connection that is served or lingers here.
func (h *Host) Connections(dst []obs.Connection) []obs.Connection {
	now := h.cfg.Now()
	for _, c := range h.list(nil) {
		if row, ok := c.row(now); ok {
			dst = append(dst, row)
		}
	}
	for _, c := range h.listLingering() {
		c.mu.Lock()
		row := Row(c.port, &c.State, nil, now)
		c.mu.Unlock()
		row.State = stateLingering
		dst = append(dst, c.counted(row))
	}
	return dst
}

// row describes c; ok is false if it was released.
func (c *conn) row(now connection.Instant) (row obs.Connection, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recoverPanic()
	if c.released {
		return row, false
	}
	row = c.counted(Row(c.port, &c.State, c.sess, now))
	row.UnsentBytes += int64(c.unsent())
	return row, true
}

// counted adds what is not counted in State.
func (c *conn) counted(row obs.Connection) obs.Connection {
	row.BytesIn += c.received.Load()
	if n, known := c.sock.ask(sock.Unsent); known {
		row.UnsentBytes += int64(n)
	}
	return row
}

// lingering notes that c begins to linger, or ends.
func (h *Host) lingering(c *conn, begins bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if begins {
		h.lingers[c] = struct{}{}
	} else {
		delete(h.lingers, c)
	}
}

func (h *Host) listLingering() (conns []*conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.lingers {
		conns = append(conns, c)
	}
	return conns
}

// Departure is why a connection left its event loop for a pair of goroutines.
type Departure uint8

// The departures, in the order of Snapshot.Left.
const (
	LeftWrite   Departure = iota // the socket did not take a write whole
	LeftEOF                      // the peer half-closed with answers outstanding
	LeftBlocked                  // bytes piled up behind a blocked session
	LeftBehind                   // bytes piled up behind the session's share of turns
	departures
)

// String returns the departure's name as used in logs and metric labels.
func (d Departure) String() string { return [...]string{"write", "eof", "blocked", "behind"}[d] }

// Stats counts what happens to connections. Any goroutine may call its methods; none allocates.
type Stats struct {
	Accepted, Refused atomic.Int64
	BytesIn, BytesOut atomic.Int64
	left              [departures]atomic.Int64
	closed            [connection.Reasons]atomic.Int64
}

// countLeft counts a connection that left its loop.
func (s *Stats) countLeft(d Departure) { s.left[d].Add(1) }

// CountClosed counts a closed connection.
func (s *Stats) CountClosed(r connection.Reason) { s.closed[r].Add(1) }

// Snapshot is one reading of Stats and the gate, of one counter after the other.
type Snapshot struct {
	Accepted, Refused, Open int64
	// BytesIn and BytesOut lag by up to half a second for connections on an event loop.
	BytesIn, BytesOut int64
	Left              [departures]int64
	Closed            [connection.Reasons]int64
}

// Snapshot reads the counters; open is the caller's count of open connections.
func (s *Stats) Snapshot(open int) Snapshot {
	r := Snapshot{
		Accepted: s.Accepted.Load(), Refused: s.Refused.Load(), Open: int64(open),
		BytesIn: s.BytesIn.Load(), BytesOut: s.BytesOut.Load(),
	}
	for i := range s.left {
		r.Left[i] = s.left[i].Load()
	}
	for i := range s.closed {
		r.Closed[i] = s.closed[i].Load()
	}
	return r
}
