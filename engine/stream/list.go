package stream

import (
	"time"

	"trunkline/engine/internal/sock"
	"trunkline/engine/link"
	"trunkline/engine/obs"
)

// The states of a connection, for lists.
const (
	stateOpen      = "open"
	stateDraining  = "draining"
	stateLingering = "lingering"
)

// Row describes a connection for a list. Its owner calls it, and adds what it has in buffers.
func Row(p *link.Port, s *link.State, sess link.Session, now link.Instant) obs.Connection {
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
	if r, ok := sess.(link.Reporter); ok {
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
func (c *conn) row(now link.Instant) (row obs.Connection, ok bool) {
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
