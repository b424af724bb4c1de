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
	// farewellBytes is how much of what a peer had still sent is dropped at once before its socket is closed.
	farewellBytes = 256 << 10
	// lookEvery is how often a loop looks at its parting connections at most.
	lookEvery = 5 * time.Millisecond
)

// farewell closes a connection whose output the socket has taken, once its peer has it (stream.Parting): until then the loop drops
// what comes. Where there are too many that part it is closed at once.
func (c *conn) farewell(r stream.Reason) (keep bool) {
	s := c.loop.srv
	may := s.gate.Part()
	c.close(r)
	if unix.Shutdown(c.fd, unix.SHUT_WR) != nil || !may {
		c.dropInput()
		if may {
			s.gate.Parted()
		}
		return false
	}
	now := s.now()
	c.parting = new(stream.Parting)
	c.parting.Begin(&s.limits, now.Mono)
	if c.dropInput() {
		c.parting.Heard()
	}
	c.behind = true // what comes takes the way of what cannot be fed
	c.loop.addParting(c)
	return !c.over(now)
}

// over reports whether a parting connection may be closed.
func (c *conn) over(now link.Instant) bool {
	n, told := sock.Undelivered(c.fd)
	return c.parting.Over(n, told, now.Mono)
}

// dropInput drops what the peer has sent, up to farewellBytes, and reports whether there was anything.
func (c *conn) dropInput() bool {
	in, dropped := c.loop.bin(), 0
	for dropped < farewellBytes {
		n, err := unix.Read(c.fd, in)
		if n <= 0 && err != unix.EINTR {
			break
		}
		dropped += max(n, 0)
	}
	return dropped > 0
}

// bin is where a loop reads what comes to connections that are about to end.
func (l *loop) bin() []byte {
	if l.sink == nil {
		l.sink = make([]byte, 16<<10)
	}
	return l.sink
}

// parted is called when gnet is about to close the descriptor of a connection that is done with.
func (c *conn) parted() {
	if c.parting == nil {
		return
	}
	c.parting = nil
	c.loop.removeParting(c)
	c.loop.srv.gate.Parted()
}

func (l *loop) addParting(c *conn) {
	c.index = len(l.parting)
	l.parting = append(l.parting, c)
	l.lookIn(0)
}

func (l *loop) removeParting(c *conn) {
	last := len(l.parting) - 1
	l.parting[c.index] = l.parting[last]
	l.parting[c.index].index = c.index
	l.parting[last] = nil
	l.parting = l.parting[:last]
}

// lookIn has the loop look at its parting connections after d, in nanoseconds, but not sooner than lookEvery.
func (l *loop) lookIn(d int64) {
	wait := max(time.Duration(d), lookEvery)
	if l.look == nil {
		l.look = time.AfterFunc(wait, func() { l.order(dueLook) })
	} else {
		l.look.Reset(wait)
	}
}

// lookParting closes the parting connections that may be. It walks backwards because removal fills the gap with the last one.
func (l *loop) lookParting(now link.Instant) {
	soonest := int64(math.MaxInt64)
	for i := len(l.parting) - 1; i >= 0; i-- {
		c := l.parting[i]
		if l.forced || c.parting.Due(now.Mono) && c.over(now) {
			l.drop(c)
		} else {
			soonest = min(soonest, c.parting.Next())
		}
	}
	if len(l.parting) > 0 {
		l.lookIn(soonest - now.Mono)
	}
}
