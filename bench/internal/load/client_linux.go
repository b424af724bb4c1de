package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/handlers/ipc/message"
)

// Client is a connection with one request at a time, for what happens beside a load: settings,
// probes, attacks. It takes and gives frames as they are, which handlers/ipc/ipcclient does not.
type Client struct {
	net.Conn
	in  *bufio.Reader
	buf []byte // the frame that came last
}

// clientTimeout bounds one call of a Client.
const clientTimeout = 20 * time.Second

// Dial connects a Client.
func Dial(addr string) (*Client, error) {
	c, err := net.DialTimeout("tcp", addr, clientTimeout)
	if err != nil {
		return nil, fmt.Errorf("cannot dial %s: %w", addr, err)
	}
	return &Client{Conn: c, in: bufio.NewReader(c)}, nil
}

// Next returns the next frame. The payload is valid until the next call.
func (c *Client) Next() (typ byte, payload []byte, err error) {
	prefix, err := c.in.Peek(frame.PrefixSize)
	if err == nil {
		size := frame.Len(prefix)
		if size <= frame.PrefixSize || size > frame.PrefixSize+maxFrame {
			return 0, nil, fmt.Errorf("cannot read a frame: length %d is outside 1..%d", size-frame.PrefixSize, maxFrame)
		}
		c.buf = slices.Grow(c.buf[:0], size)[:size]
		_, err = io.ReadFull(c.in, c.buf)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("cannot read a frame: %w", err)
	}
	return c.buf[frame.PrefixSize], c.buf[frame.HeaderSize:], nil
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
func (c *Client) Call(service, method string, body ...any) (reply map[string]any, size int, err error) {
	typ, payload, err := c.Exchange(NewRequest(service, method, body...))
	if err != nil {
		return nil, 0, err
	}
	if typ == Error {
		return nil, 0, refused(payload)
	}
	var f message.Frame
	if _, err := f.UnmarshalMsg(payload); err != nil || typ != Response || f.ID != requestID || f.Ok == nil || !*f.Ok {
		return nil, 0, fmt.Errorf("cannot take frame 0x%02X %q as the reply to %s.%s", typ, payload, service, method)
	}
	reply, _, err = msgp.ReadMapStrIntfBytes(f.Body, nil)
	return reply, frame.HeaderSize + len(payload), err
}

// Ask makes one request over a connection of its own and returns the body of its reply. An ERROR
// frame is a *Failure.
func Ask(addr, service, method string, body ...any) (reply map[string]any, err error) {
	c, err := Dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	reply, _, err = c.Call(service, method, body...)
	return reply, err
}

// CreateEnvelope stores an envelope and returns its identifier.
func CreateEnvelope(addr string, more ...any) (string, error) {
	reply, err := Ask(addr, "engine", "CreateEnvelope", append(more, "raw_input", "x")...)
	if err != nil {
		return "", fmt.Errorf("cannot store an envelope: %w", err)
	}
	identity, _ := reply["identity"].(map[string]any)
	id, ok := identity["envelope_id"].(string)
	if !ok {
		return "", fmt.Errorf("cannot store an envelope: no envelope_id in %v", reply)
	}
	return id, nil
}

// The message types of kernel-ipc §2.1.
const (
	Request  = byte(frame.Request)
	Response = byte(frame.Response)
	Chunk    = byte(frame.StreamChunk)
	Error    = byte(frame.Error)
)

const maxFrame = 5 << 20

// Raw is a value that is MessagePack already, for requests that no encoder would make.
type Raw = msgp.Raw

// requestID is as long as that of a client with a counter.
const requestID = "r0000001"

// NewRequest encodes a REQUEST frame, with a body of these pairs (see Map).
func NewRequest(service, method string, body ...any) []byte {
	return frame.Append(nil, frame.Request, mpack.AppendRequest(nil, requestID, service, method, string(Map(body...))), nil)
}

// Map encodes pairs of a key and its value: a string, an int, a bool, a []string, Raw or a Map.
func Map(pairs ...any) Raw {
	b := mpack.AppendMap(nil, len(pairs)/2)
	for _, v := range pairs {
		var err error
		if b, err = msgp.AppendIntf(b, v); err != nil {
			panic(fmt.Sprintf("BUG: a request with a value of type %T", v))
		}
	}
	return b
}

// Failure is the error of an ERROR frame.
type Failure struct{ ID, Code, Message string }

// Error implements error.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// refused is an ERROR frame as an error, most often a *Failure (kernel-ipc §3.5).
func refused(payload []byte) error {
	var f message.Frame
	if _, err := f.UnmarshalMsg(payload); err != nil {
		return fmt.Errorf("cannot decode a payload of %d bytes: %w", len(payload), err)
	}
	if f.Error == nil || f.Error.Code == "" {
		return errors.New("cannot read an ERROR frame: no code")
	}
	return &Failure{f.ID, f.Error.Code, f.Error.Message}
}
