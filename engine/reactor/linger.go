package reactor

import (
	"math"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/engine/internal/sock"
	"trunkline/engine/link"
	"trunkline/engine/stream"
)

const (
	// lingerBytes is how much of what a peer had still sent is dropped before its socket is closed.
	lingerBytes = 256 << 10
	// lingerCheckEvery is how often at most a loop checks its lingering connections.
	lingerCheckEvery = 5 * time.Millisecond
)

// closeWrite closes a connection whose output the socket has taken, once its peer has it (stream.Linger):
// until then the loop drops what comes. Where too many linger it is closed at once.
func (c *conn) closeWrite(r link.Reason) (keep bool) {
	s := c.loop.srv
	may := s.gate.BeginLinger()
	c.close(r)
	if unix.Shutdown(c.fd, unix.SHUT_WR) != nil || !may {
		c.dropInput()
		if may {
			s.gate.EndLinger()
		}
		return false
	}
	now := s.now()
	c.linger = new(stream.Linger)
	c.linger.Begin(&s.limits, now.Mono)
	if c.dropInput() {
		c.linger.Heard()
	}
	c.Close() // what comes is not fed
	c.index = len(c.loop.lingering)
	c.loop.lingering = append(c.loop.lingering, c)
	c.loop.checkIn(0)
	return !c.delivered(now)
}

// delivered reports whether a lingering connection may be closed.
func (c *conn) delivered(now link.Instant) bool {
	n, known := sock.Undelivered(c.fd)
	return c.linger.Over(n, known, now.Mono)
}

// dropInput drops what the peer has sent, up to lingerBytes, and reports whether there was anything.
func (c *conn) dropInput() bool {
	in, dropped := c.loop.scratch(), 0
	for dropped < lingerBytes {
		n, err := unix.Read(c.fd, in)
		if n <= 0 && err != unix.EINTR {
			break
		}
		dropped += max(n, 0)
	}
	return dropped > 0
}

// scratch is where a loop reads what comes to connections that are about to end.
func (l *loop) scratch() []byte {
	if l.sink == nil {
		l.sink = make([]byte, 16<<10)
	}
	return l.sink
}

// lingered is called when gnet is about to close the descriptor of a connection that is done with.
func (c *conn) lingered() {
	if c.linger == nil {
		return
	}
	c.linger = nil
	c.loop.lingering = removeAt(c.loop.lingering, c.index)
	c.loop.srv.gate.EndLinger()
}

// checkIn has the loop check its lingering connections after d, in nanoseconds, but not sooner than
// lingerCheckEvery.
func (l *loop) checkIn(d int64) {
	wait := max(time.Duration(d), lingerCheckEvery)
	if l.check == nil {
		l.check = time.AfterFunc(wait, func() { l.order(dueLinger) })
	} else {
		l.check.Reset(wait)
	}
}

// checkLingering closes the lingering connections that may be. It walks backwards because removal fills
// the gap with the last one.
func (l *loop) checkLingering(now link.Instant) {
	soonest := int64(math.MaxInt64)
	for i := len(l.lingering) - 1; i >= 0; i-- {
		c := l.lingering[i]
		if l.forced || c.linger.Due(now.Mono) && c.delivered(now) {
			l.drop(c)
		} else {
			soonest = min(soonest, c.linger.Next())
		}
	}
	if len(l.lingering) > 0 {
		l.checkIn(soonest - now.Mono)
	}
}
