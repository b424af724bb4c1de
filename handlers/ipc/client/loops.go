package client

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"trunkline/codec/frame"
)

const (
	readBuffer = 64 << 10
	// keepBuffer bounds the scratch memory a loop keeps after one large frame or burst.
	keepBuffer = 1 << 20
	// lastWords is how long the reader goes on after a failed write: a server that refuses a connection says why and closes,
	// and our request may be what runs into the closed socket.
	lastWords = time.Second
)

// writeLoop sends everything queued since its last round in one write.
func (c *Conn) writeLoop() {
	var buf []byte
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
		buf = c.takeOutput(buf)
		if _, err := c.nc.Write(buf); err != nil {
			err = fmt.Errorf("cannot write: %w", err)
			c.writeErr.Store(&err)
			c.nc.SetReadDeadline(time.Now().Add(lastWords))
			return
		}
		if cap(buf) > keepBuffer {
			buf = nil
		}
	}
}

// takeOutput swaps the queued bytes for an empty buffer and lets waiting senders go on.
func (c *Conn) takeOutput(spare []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.out
	c.out = spare[:0]
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
	return out
}

// readLoop hands every frame to whom it is for, until the connection ends.
func (c *Conn) readLoop() {
	r := bufio.NewReaderSize(c.nc, readBuffer)
	var buf []byte
	for {
		kind, payload, err := readFrame(r, buf, c.opts.maxFrame)
		if err == nil {
			err = c.dispatch(kind, payload)
		}
		if err != nil {
			c.fail(c.reason(err))
			return
		}
		if buf = payload; cap(buf) > keepBuffer {
			buf = nil
		}
	}
}

// reason prefers what the server said to how the transport ended, and the first failure to its echo.
func (c *Conn) reason(err error) error {
	var said *Error
	if errors.As(err, &said) || errors.Is(err, ErrProtocol) {
		return err
	}
	if werr := c.writeErr.Load(); werr != nil {
		return *werr
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("server closed the connection: %w", err)
	}
	return fmt.Errorf("cannot read: %w", err)
}

// dispatch returns an error only when the connection cannot go on.
func (c *Conn) dispatch(kind frame.Type, payload []byte) error {
	switch kind {
	case frame.Response, frame.StreamChunk, frame.StreamEnd, frame.Error:
	default:
		return protocolErrorf("unexpected message type 0x%02X", byte(kind))
	}
	m, err := decode(kind, payload)
	if err != nil {
		return err
	}
	if m.kind == frame.Error && m.id == "" {
		return m.err // concerns the connection: it was one too many (kernel-ipc §2.6)
	}
	c.mu.Lock()
	reply, waiting := c.calls[m.id]
	s := c.streams[m.id]
	if waiting {
		delete(c.calls, m.id)
	} else if s != nil && m.kind != frame.StreamChunk {
		delete(c.streams, m.id)
	}
	c.mu.Unlock()
	switch {
	case waiting:
		reply <- m // one slot, one message: never blocks
	case s != nil:
		s.take(m)
	}
	return nil // nobody waits any more: dropped
}

// readFrame reads one frame into buf's memory. Memory is taken as bytes arrive, never for an announced length
// (kernel-ipc D9).
func readFrame(r io.Reader, buf []byte, maxFrame int) (kind frame.Type, payload []byte, err error) {
	var header [frame.HeaderSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(header[:])
	if n == 0 || uint64(n) > uint64(maxFrame) {
		return 0, nil, protocolErrorf("frame length %d outside 1..%d", n, maxFrame)
	}
	want := int(n) - 1
	payload = buf[:0]
	for len(payload) < want {
		have := len(payload)
		step := min(want-have, max(have, readBuffer))
		payload = slices.Grow(payload, step)[:have+step]
		if _, err := io.ReadFull(r, payload[have:]); err != nil {
			return 0, nil, noEOF(err)
		}
	}
	return frame.Type(header[frame.PrefixSize]), payload, nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
