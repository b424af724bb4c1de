package load

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// Client is a plain kernel IPC client with one request at a time, for what happens beside a load:
// settings, probes, attacks.
type Client struct {
	net.Conn
	in  *bufio.Reader
	buf []byte
}

// clientTimeout bounds one call of a Client.
const clientTimeout = 20 * time.Second

// Dial connects a Client.
func Dial(addr string) (*Client, error) {
	c, err := net.DialTimeout("tcp", addr, clientTimeout)
	if err != nil {
		return nil, fmt.Errorf("cannot dial %s: %w", addr, err)
	}
	return &Client{Conn: c, in: bufio.NewReaderSize(c, 64<<10)}, nil
}

// Next returns the next frame. The payload is valid until the next call.
func (c *Client) Next() (typ byte, payload []byte, err error) {
	var prefix [4]byte
	if _, err := io.ReadFull(c.in, prefix[:]); err != nil {
		return 0, nil, fmt.Errorf("cannot read a frame: %w", err)
	}
	n := binary.BigEndian.Uint32(prefix[:])
	if n == 0 || n > maxFrame {
		return 0, nil, fmt.Errorf("cannot read a frame: length %d is outside 1..%d", n, maxFrame)
	}
	if uint32(cap(c.buf)) < n {
		c.buf = make([]byte, n)
	}
	c.buf = c.buf[:n]
	if _, err := io.ReadFull(c.in, c.buf); err != nil {
		return 0, nil, fmt.Errorf("cannot read a frame: %w", err)
	}
	return c.buf[0], c.buf[1:], nil
}

// Exchange writes request, one frame, and returns the type and payload of the next frame, valid
// until the next call.
func (c *Client) Exchange(request []byte) (typ byte, payload []byte, err error) {
	if err := c.SetDeadline(time.Now().Add(clientTimeout)); err != nil {
		return 0, nil, err
	}
	if _, err := c.Write(request); err != nil {
		return 0, nil, fmt.Errorf("cannot write a request: %w", err)
	}
	return c.Next()
}

// Call makes one request and returns the body of its reply and the size of the reply's frame. An
// ERROR frame is a *Failure.
func (c *Client) Call(id, service, method string, body ...Field) (reply map[string]any, size int, err error) {
	typ, payload, err := c.Exchange(AppendRequest(nil, id, service, method, body...))
	if err != nil {
		return nil, 0, err
	}
	if typ == Error {
		f, err := ParseFailure(payload)
		if err != nil {
			return nil, 0, err
		}
		return nil, 0, f
	}
	m, err := decodeMap(payload)
	if err != nil {
		return nil, 0, err
	}
	body2, isMap := m["body"].(map[string]any)
	if typ != Response || m["id"] != id || m["ok"] != true || !isMap {
		return nil, 0, fmt.Errorf("cannot take frame 0x%02X %v as the reply to %s.%s %q", typ, m, service, method, id)
	}
	return body2, 5 + len(payload), nil
}

// Ask makes one request over a connection of its own and returns the body of its reply. An ERROR
// frame is a *Failure.
func Ask(addr, service, method string, body ...Field) (reply map[string]any, err error) {
	c, err := Dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	reply, _, err = c.Call("ask", service, method, body...)
	return reply, err
}
