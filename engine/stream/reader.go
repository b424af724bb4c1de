package stream

import (
	"errors"
	"io"
	"os"
	"runtime"

	"trunkline/engine/connection"
	"trunkline/engine/internal/poison"
)

// The reader's buffer starts small, for idle connections are many, and doubles for large frames.
const (
	readMin  = 4 << 10
	readKeep = 64 << 10 // what is kept once it is empty
	// doubleMax is the size from which a buffer that is charged to a budget grows by quarters: a
	// long frame leaves at most a fifth of it unused.
	doubleMax = 1 << 20
)

// inbuf has the bytes that the session has not taken: b[from:to]. All of b is charged to budget.
type inbuf struct {
	b        []byte
	from, to int
	budget   *connection.Budget
	charge   connection.Charge
}

func (i *inbuf) unread() []byte { return i.b[i.from:i.to] }

// take drops n bytes from the front. An emptied buffer that the last read filled is doubled for the
// next; one that a large frame made large is let go. Where buffers are charged to a budget, what is
// left behind such a frame moves to a smaller one.
func (i *inbuf) take(n int) {
	i.from += n
	switch rest := i.to - i.from; {
	case rest > 0:
		if i.budget != nil && len(i.b) > 2*connection.OwnInput && rest <= connection.OwnInput {
			i.resize(max(2*rest, readMin))
		}
		return
	case len(i.b) > readKeep:
		i.drop()
	case i.to == len(i.b) && len(i.b) < readKeep:
		i.b = make([]byte, max(2*len(i.b), readMin))
	}
	i.from, i.to = 0, 0
}

// space returns where the next read goes: at most doubling what is held, so that memory follows the
// bytes that came (kernel-ipc §2.2). It is empty only if the budget has no room for more.
func (i *inbuf) space() []byte {
	if !i.makeRoom(1) {
		return nil
	}
	return i.b[i.to:]
}

// makeRoom has put find room for n bytes; false means that the budget has none.
func (i *inbuf) makeRoom(n int) bool {
	held := i.to - i.from
	switch {
	case len(i.b)-i.to >= n:
		return true
	case i.from > 0 && i.from >= len(i.b)/2 && len(i.b)-held >= n:
		i.to = copy(i.b, i.b[i.from:i.to])
		i.from = 0
		return true
	}
	grown := 2 * len(i.b)
	if i.budget != nil && len(i.b) >= doubleMax {
		grown = len(i.b) + len(i.b)/4
	}
	grown = max(grown, held+n, readMin)
	if !i.budget.Fit(&i.charge, grown) {
		return false
	}
	i.resize(grown)
	return true
}

// roomAhead reports whether one more read ahead finds room.
func (i *inbuf) roomAhead() bool {
	return i.budget == nil || i.to-i.from+readKeep <= connection.OwnInput || i.makeRoom(readKeep)
}

// put appends p, also where the budget has no room for it: what was read must be kept, and is no
// more than one read.
func (i *inbuf) put(p []byte) {
	if !i.makeRoom(len(p)) {
		i.resize(i.to - i.from + len(p))
	}
	i.to += copy(i.b[i.to:], p)
}

// resize moves what is held to a buffer of size bytes.
func (i *inbuf) resize(size int) {
	b := make([]byte, size)
	i.to = copy(b, i.b[i.from:i.to])
	i.b, i.from = b, 0
	i.budget.Fit(&i.charge, size)
}

// drop lets go of everything.
func (i *inbuf) drop() {
	i.b, i.from, i.to = nil, 0, 0
	i.budget.Fit(&i.charge, 0)
}

// read is the reader goroutine: it feeds what came, then reads on; once the connection is closed
// for writing it drops what still comes.
func (c *conn) read() {
	defer close(c.ended)
	if c.readAll() {
		c.discard()
	}
	c.dropInput()
}

// dropInput lets go of what the session will never see.
func (c *conn) dropInput() {
	c.mu.Lock()
	c.in.drop()
	c.spill = nil
	c.mu.Unlock()
}

// readAll reports whether the peer may still be sending.
func (c *conn) readAll() bool {
	for {
		switch c.feed() {
		case connection.DoClose:
			return c.Peer == connection.PeerOpen
		case connection.DoWait:
			n, err := c.readSpill()
			c.noteRead(n, err) // an error comes after what is kept
			continue
		}
		if len(c.spill) > readMin {
			c.spill = nil // nothing waits any more
		}
		if c.Peer != connection.PeerOpen {
			if c.endFrame() {
				continue
			}
			c.emitEOF()
			return false
		}
		if !c.frameFits() {
			c.abort(connection.ReasonProtocol)
			return false
		}
		if c.readErr == nil {
			space := c.in.space()
			if len(space) == 0 {
				c.refuseFrame()
				return true
			}
			n, err := c.rwc.Read(space)
			c.in.to += n
			c.unfed.Store(n > 0)
			c.noteRead(n, err)
		}
		if c.readErr != nil {
			c.abort(connection.ReasonError)
			return false
		}
	}
}

// noteRead notes the outcome of a Read: the peer's end, or what else it failed with.
func (c *conn) noteRead(n int, err error) {
	c.host.Stats.BytesIn.Add(int64(n))
	c.received.Add(int64(n))
	c.readErr = nil
	switch {
	case err == nil:
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.setPeer(connection.PeerEnded)
	case errors.Is(err, os.ErrDeadlineExceeded) && c.calledOut():
	default:
		c.readErr = err
	}
}

func (c *conn) setPeer(p connection.PeerPhase) {
	c.mu.Lock()
	c.Peer = max(c.Peer, p)
	c.mu.Unlock()
}

// endFrame makes a whole frame of what is left at the end of the input, once, if the protocol asks
// for that; it reports whether there is something more to feed.
func (c *conn) endFrame() bool {
	end := c.host.cfg.Limits.EndOfInput
	if end == "" || c.Peer >= connection.PeerFrameEnded || len(c.in.unread()) == 0 {
		return false
	}
	c.setPeer(connection.PeerFrameEnded)
	c.in.put([]byte(end))
	return true
}

// frameFits is the last net below a session that waits for more of a frame than any frame may have.
func (c *conn) frameFits() bool {
	l := c.host.cfg.Limits.FrameBytes
	return l <= 0 || c.in.to-c.in.from <= l+readKeep
}

// refuseFrame closes the connection because the budget has no room for the rest of its frame.
func (c *conn) refuseFrame() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.released || c.Verdict == connection.Close {
		return
	}
	l := &c.host.cfg.Limits
	l.Input.CountRefused()
	c.sendLast(l.NoRoom)
}

// emitEOF calls Session.EOF, once, and drops a partial frame (kernel-ipc §2.3).
func (c *conn) emitEOF() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recoverPanic()
	if c.released {
		return
	}
	c.in.drop()
	if c.EOF() {
		c.sess.EOF(c.host.cfg.Now())
	}
	if c.DrainDue() {
		c.emitDrain(0)
	}
	c.Wake(c.port)
}

// feed gives the session what the reader has, and returns how the reader goes on: DoRead, DoWait
// where it is to read ahead because the session may not be fed, or DoClose.
func (c *conn) feed() connection.Action {
	for {
		if act := c.feedOnce(); act != connection.DoFeed {
			return act
		}
		runtime.Gosched() // the writer may need the lock
	}
}

// feedOnce waits until the session may be fed, then feeds it until it asks for more or yields. It
// returns DoClose also when the session is gone.
func (c *conn) feedOnce() (act connection.Action) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recoverPanic()
	if c.reads == ahead {
		c.reads = direct
	}
	act = connection.DoClose // what a panic leaves behind
	for {
		for !c.released && !c.feedable() {
			if c.readAhead() {
				return connection.DoWait
			}
			c.room.Wait()
		}
		if c.released || c.Verdict == connection.Close {
			return connection.DoClose
		}
		if next := c.give(); next != connection.DoWait {
			if next == connection.DoRead {
				c.frames, c.reads = -1, direct
			}
			return next
		}
	}
}

// feedable reports whether the session may be fed, or is closed. The caller holds mu.
func (c *conn) feedable() bool {
	return c.Verdict == connection.Close || c.Verdict != connection.Blocked && c.roomy()
}

// give feeds the session once, and drains it when that is due. The caller holds mu.
func (c *conn) give() connection.Action {
	now := c.host.cfg.Now()
	all := len(c.in.unread())
	src := c.in.unread()[:c.Lend(all)]
	c.unfed.Store(false)
	if len(src) == 0 {
		return c.fed(0, 0, connection.More, now)
	}
	if c.out == nil {
		c.out = c.host.bufs.Get()
	}
	used, out, v := c.sess.Feed(src, c.out.B, now)
	if c.frames >= 0 {
		c.frames -= c.host.cfg.Limits.Count(src[:used])
	}
	poison.Fill(src[:used])
	c.in.take(used)
	c.out.B = out
	if len(out) == 0 {
		c.host.bufs.Put(c.out)
		c.out = nil
	}
	return c.fed(used, all-used, v, now)
}

// fed notes a Feed's outcome. The caller holds mu.
func (c *conn) fed(used, rest int, v connection.Verdict, now connection.Instant) connection.Action {
	act := c.Fed(used, rest, v, now.Mono)
	if c.out != nil || act == connection.DoClose || c.Draining() {
		c.ring()
	}
	if act == connection.DoDrain {
		c.emitDrain(len(c.in.unread()))
	}
	return c.Next()
}
