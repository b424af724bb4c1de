package stream

import (
	"errors"
	"io"
	"os"
)

// The reader's buffer starts small, for idle connections are many, and doubles while frames need it.
const (
	readMin  = 4 << 10
	readKeep = 64 << 10 // what is kept once it is empty
)

// inbuf holds bytes read and not yet taken by the session: b[from:to].
type inbuf struct {
	b        []byte
	from, to int
}

func (i *inbuf) unread() []byte { return i.b[i.from:i.to] }

// take drops n bytes from the front. An emptied buffer that the last read filled is doubled for the next; one that a large
// frame made large is let go.
func (i *inbuf) take(n int) {
	i.from += n
	if i.from < i.to {
		return
	}
	if full := i.to == len(i.b); full && len(i.b) < readKeep {
		i.b = make([]byte, max(2*len(i.b), readMin))
	} else if len(i.b) > readKeep {
		i.b = nil
	}
	i.from, i.to = 0, 0
}

// space returns where the next read goes: never empty, at most doubling what is held, so that memory follows the bytes that
// came (kernel-ipc §2.2).
func (i *inbuf) space() []byte {
	switch {
	case i.b == nil:
		i.b = make([]byte, readMin)
	case i.to < len(i.b):
	case i.from > 0 && i.from >= len(i.b)/2:
		i.to = copy(i.b, i.b[i.from:i.to])
		i.from = 0
	default:
		grown := make([]byte, max(2*len(i.b), readMin))
		i.to = copy(grown, i.b[i.from:i.to])
		i.b, i.from = grown, 0
	}
	return i.b[i.to:]
}

// put appends p.
func (i *inbuf) put(p []byte) {
	for len(p) > 0 {
		n := copy(i.space(), p)
		i.to += n
		p = p[n:]
	}
}

// read is the reader goroutine: it feeds what came, then reads on; after the session's last word it drops what still comes.
func (c *conn) read() {
	defer close(c.ended)
	if c.readAll() {
		c.discard()
	}
}

// readAll reports whether the peer may still be sending.
func (c *conn) readAll() bool {
	for {
		switch c.feed() {
		case readNoMore:
			return !c.atEOF
		case readAhead:
			n, err := c.readSpill()
			c.host.cfg.Stats.BytesIn.Add(int64(n))
			c.readErr = c.endOf(err) // it comes after what is held
			continue
		}
		if len(c.spill) > readMin {
			c.spill = nil // nothing waits any more
		}
		if c.atEOF {
			if c.endFrame() {
				continue
			}
			c.tellEOF()
			return false
		}
		if !c.frameFits() {
			c.abort(ReasonProtocol)
			return false
		}
		if c.readErr == nil {
			n, err := c.rwc.Read(c.in.space())
			c.in.to += n
			c.unfed.Store(n > 0)
			c.host.cfg.Stats.BytesIn.Add(int64(n))
			c.readErr = c.endOf(err)
		}
		if c.readErr != nil {
			c.abort(ReasonError)
			return false
		}
	}
}

// endOf notes the peer's end, and returns what else a Read failed with.
func (c *conn) endOf(err error) error {
	switch {
	case err == nil:
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.atEOF = true
	case errors.Is(err, os.ErrDeadlineExceeded) && c.calledOut():
	default:
		return err
	}
	return nil
}

// endFrame makes a whole frame of what is left at the end of the input, once, if the protocol wants that; it reports whether there is
// something more to feed.
func (c *conn) endFrame() bool {
	end := c.host.cfg.Limits.EndOfInput
	if end == "" || c.frameEnded || len(c.in.unread()) == 0 {
		return false
	}
	c.frameEnded = true
	for len(end) > 0 {
		n := copy(c.in.space(), end)
		c.in.to += n
		end = end[n:]
	}
	return true
}

// frameFits is the last net below a session that waits for more of a frame than any frame may have.
func (c *conn) frameFits() bool {
	l := c.host.cfg.Limits.FrameBytes
	return l <= 0 || c.in.to-c.in.from <= l+readKeep
}

// tellEOF ends the conversation once everything read was taken; a partial frame is dropped (kernel-ipc §2.3).
func (c *conn) tellEOF() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.rescue()
	if c.released {
		return
	}
	c.in = inbuf{}
	c.timers.Frame = 0
	if !c.eofTold {
		c.eofTold = true
		c.sess.EOF(c.host.cfg.Now())
	}
	if c.drainDue {
		c.tellDrain()
	}
	c.Wake(c.port)
}
