package stream

import (
	"io"

	"trunkline/engine/internal/bufpool"
	"trunkline/engine/link"
)

// Adopted is a connection that changes its owner, with all its state. Its slot comes with it.
type Adopted struct {
	Port    *link.Port
	Session link.Session
	State   link.State
	// Unread was read and not yet taken by the session, Unsent appended by it and not yet taken by
	// the socket. Adopt copies Unsent and keeps Unread.
	Unread, Unsent []byte
	// Charge is what Unread has of Limits.Input.
	Charge link.Charge
	Why    Departure
}

// Adopt takes a connection over. The former owner must not touch the session afterwards. It does
// not wait.
func (h *Host) Adopt(rwc io.ReadWriteCloser, a Adopted) {
	c := h.bareConn(rwc, a.Port)
	c.sess, c.State = a.Session, a.State
	c.in.b, c.in.to, c.in.charge = a.Unread, len(a.Unread), a.Charge
	c.in.budget.Fit(&c.in.charge, len(a.Unread))
	c.More = true // the former owner may have owed a Pump; another one is harmless
	h.Stats.countLeft(a.Why)
	h.log.Debug("connection left its loop", "conn", a.Port.ID(), "remote", a.Port.Remote(), "why", a.Why.String())
	var unsent *bufpool.Buffer
	if len(a.Unsent) > 0 {
		unsent = h.bufs.Get()
		unsent.B = append(unsent.B, a.Unsent...)
		c.launch(unsent)
	}
	_ = h.start(c, unsent)
}
