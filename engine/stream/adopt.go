package stream

import (
	"io"

	"trunkline/engine/link"
)

// Adopted is a connection that changes its owner: everything its former owner knew of it. Its slot comes with it.
type Adopted struct {
	Port    *link.Port
	Session link.Session
	// Unread was read and not yet taken by the session, Unsent appended by it and not yet taken by the socket. Adopt
	// copies Unsent and keeps Unread.
	Unread, Unsent []byte
	// Blocked: the session waits for what a Pump will bring before it is fed again.
	Blocked bool
	// Behind: Unread begins with a whole frame, for the session had its share of a turn.
	Behind bool
	// AtEOF: the peer has ended; EOFTold: the session knows.
	AtEOF, EOFTold bool
	// Draining: the session was told to drain; DrainDue: it is to be told after the frames already read, which are within the first
	// DrainAfter bytes of Unread.
	Draining, DrainDue bool
	DrainAfter         int
	// Closing: close as soon as Unsent is sent.
	Closing bool
	Timers  Timers
	// Charge is what Unread has of Limits.Input.
	Charge link.Charge
	Why    Departure
}

// Adopt takes a connection over. The former owner must not touch the session afterwards. It does not wait.
func (h *Host) Adopt(rwc io.ReadWriteCloser, a Adopted) {
	c := h.bareConn(rwc, a.Port)
	c.sess = a.Session
	c.in.b, c.in.to, c.in.charge = a.Unread, len(a.Unread), a.Charge
	c.in.budget.Fit(&c.in.charge, len(a.Unread))
	if len(a.Unsent) > 0 {
		c.out = h.bufs.Get()
		c.out.B = append(c.out.B, a.Unsent...)
		c.handed = true
	}
	c.blocked, c.behind, c.closing = a.Blocked, a.Behind || a.Blocked, a.Closing
	c.atEOF, c.eofTold = a.AtEOF, a.EOFTold
	if c.draining, c.drainDue = a.Draining, a.DrainDue; c.drainDue {
		c.drainAt = a.DrainAfter
	}
	c.timers = a.Timers
	c.more = true // the former owner may have been told of more; asking is harmless
	h.cfg.Stats.CountLeft(a.Why)
	h.log.Debug("connection left its loop", "conn", a.Port.ID(), "remote", a.Port.Remote(), "why", a.Why.String())
	_ = h.start(c)
}
