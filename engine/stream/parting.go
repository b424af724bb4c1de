package stream

import (
	"sync/atomic"

	"trunkline/engine/link"
)

const (
	// lookMin is how soon a parting connection is looked at again, at first: the next time takes twice as long, up to TickEvery.
	lookMin = int64(5e6)
	// quietWithin is how long a parting connection whose peer has everything still takes and drops what that peer sends: some systems
	// drop what a program has not read yet when a reset comes.
	quietWithin = int64(lingerWithin)
)

// Parting is the end of a connection whose last bytes the socket has taken and whose session is gone. "The socket took it" is not "the
// peer has it": closing a socket with unread bytes resets it, and so does what comes later, and a reset destroys what is under way to
// the peer. So the sending side is shut down, what comes is dropped, and the socket is closed when its peer has ended too, or has
// everything, or took too long. The first of these is the owner's to see, the others are Over's. All times are link.Instant.Mono.
type Parting struct {
	within int64 // Limits.PartWithin
	until  int64
	next   int64 // when to look again
	wait   int64
	left   int   // bytes the peer did not have at the last look
	has    int64 // when the peer was first seen to have everything, 0 before
	heard  atomic.Bool
}

// Begin starts the time.
func (p *Parting) Begin(l *link.Limits, now int64) {
	p.within = l.PartWithin()
	p.until, p.wait, p.next = now+p.within, lookMin, now+lookMin
	p.left, p.has = 0, 0
}

// Heard notes that the peer still sends.
func (p *Parting) Heard() { p.heard.Store(true) }

// Due reports whether to look at the connection. It does not allocate.
func (p *Parting) Due(now int64) bool { return now >= p.next }

// Next returns when to look at the connection next.
func (p *Parting) Next() int64 { return p.next }

// Over reports whether the connection may be closed, undelivered being what sock.Undelivered says of its socket. It does not allocate.
func (p *Parting) Over(undelivered int, told bool, now int64) bool {
	p.wait = min(2*p.wait, int64(TickEvery))
	if told && undelivered > 0 {
		if undelivered < p.left {
			p.until = now + p.within
		}
		p.left = undelivered
	}
	p.next = min(now+p.wait, p.until)
	switch {
	case now >= p.until:
		return true
	case !told || undelivered > 0:
		return false
	case p.has == 0:
		p.has = now
	}
	return !p.heard.Swap(false) || now-p.has >= quietWithin
}
