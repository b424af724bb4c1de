package ipcclient

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"trunkline/codec/frame"
)

const (
	readBuffer = 64 << 10
	// writeBuffer is the size from which a write takes no further requests.
	writeBuffer = 64 << 10
	// keepBuffer bounds the scratch memory a loop keeps after one large frame or burst.
	keepBuffer = 1 << 20
	// linger is how long the reader goes on after a failed write. A server that refuses a
	// connection sends the reason before it closes, and a request may meet the closed socket first.
	linger = time.Second
)

// writeLoop sends the queued requests, several in one write.
func (c *Conn) writeLoop() {
	var buf []byte
	for {
		select {
		case out := <-c.unsent:
			buf = append(buf[:0], out...)
		case <-c.done:
			return
		}
		for more := true; more && len(buf) < writeBuffer; {
			select {
			case out := <-c.unsent:
				buf = append(buf, out...)
			default:
				more = false
			}
		}
		if _, err := c.nc.Write(buf); err != nil {
			err = fmt.Errorf("cannot write: %w", err)
			c.writeErr.Store(&err)
			_ = c.nc.SetReadDeadline(time.Now().Add(linger))
			return
		}
		if cap(buf) > keepBuffer {
			buf = nil
		}
	}
}

// readLoop passes every frame to its call or stream, until the connection ends.
func (c *Conn) readLoop() {
	r := bufio.NewReaderSize(c.nc, readBuffer)
	buf := new(bytes.Buffer)
	for {
		kind, payload, err := readFrame(r, buf, c.opts.maxFrame)
		if err == nil {
			c.heard.Store(true)
			err = c.dispatch(kind, payload)
		}
		if err != nil {
			c.fail(c.reason(err))
			return
		}
		if buf.Cap() > keepBuffer {
			buf = new(bytes.Buffer)
		}
	}
}

// reason prefers the answer of the server to the end of the transport, and the first failure.
func (c *Conn) reason(err error) error {
	var answer *Error
	if errors.As(err, &answer) || errors.Is(err, ErrProtocol) {
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
	return nil // a reply without a waiting call is dropped
}

// readFrame reads one frame into buf and returns its payload there. It takes memory as bytes
// arrive, never for an announced length (kernel-ipc D9).
func readFrame(r io.Reader, buf *bytes.Buffer, maxFrame int) (kind frame.Type, payload []byte, err error) {
	var header [frame.HeaderSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(header[:])
	if uint64(n) > uint64(maxFrame) {
		if other := foreign(header[:]); other != "" {
			return 0, nil, fmt.Errorf("%w: %w", ErrProtocol, other)
		}
	}
	if n == 0 || uint64(n) > uint64(maxFrame) {
		return 0, nil, protocolErrorf("frame length %d outside 1..%d", n, maxFrame)
	}
	buf.Reset()
	if _, err = io.CopyN(buf, r, int64(n)-1); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return frame.Type(header[frame.PrefixSize]), buf.Bytes(), err
}

// incoming is one decoded server frame. It shares no memory with the frame.
type incoming struct {
	kind frame.Type
	id   string
	body []byte
	err  error
}

// decode reads one server frame's payload and skips unknown keys, so that servers may send more.
func decode(kind frame.Type, payload []byte) (incoming, error) {
	var f Frame
	rest, err := f.UnmarshalMsg(payload)
	m := incoming{kind: kind, id: f.ID, body: f.Body}
	if f.Error != nil {
		m.err = newError(f.Error)
	}
	switch {
	case kind != frame.Response && kind != frame.StreamChunk && kind != frame.StreamEnd && kind != frame.Error:
		return m, protocolErrorf("unexpected message type 0x%02X", byte(kind))
	case err != nil:
		return m, protocolErrorf("frame payload: %v", err)
	case len(rest) != 0:
		return m, protocolErrorf("%d bytes after the frame's value", len(rest))
	case kind == frame.Error && m.err == nil:
		return m, protocolErrorf("ERROR frame %q without error", m.id)
	case (kind == frame.Response || kind == frame.StreamChunk) && m.body == nil:
		return m, protocolErrorf("frame 0x%02X %q without body", byte(kind), m.id)
	}
	return m, nil
}
