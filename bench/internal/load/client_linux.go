package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/tinylib/msgp/msgp"

	"trunkline/cmd/trunkline/loadgen"
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
	return frame.Append(nil, frame.Request, mpack.AppendRequest(nil, requestID, service, method,
		string(Map(body...))), nil)
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

// Protocol counts the replies of a closed loop that in begins with, and events beside them, and
// returns how many bytes they take.
type Protocol func(cfg *Config, in []byte) (used, replies, events int, err error)

// Kernel is the Protocol of kernel-ipc §2.1, the default. Frames of streams count as events;
// Config.Refused decides whether an ERROR frame is an error.
func Kernel(cfg *Config, in []byte) (used, replies, events int, err error) {
	for {
		kind, payload, n := frame.Split(in[used:], maxReply)
		if n <= 0 {
			if n == frame.Malformed {
				err = errors.New("malformed frame")
			}
			return used, replies, events, err
		}
		used += n
		switch kind {
		case frame.Response:
			replies++
		case frame.Error:
			replies++
			err := refused(payload)
			if f, ok := err.(*Failure); ok && cfg.Refused != nil {
				err = cfg.Refused(f)
			}
			if err != nil {
				return used, replies, events, err
			}
		case frame.StreamChunk, frame.StreamEnd:
			events++
		default:
			return used, replies, events, fmt.Errorf("cannot take a frame of type 0x%02X", byte(kind))
		}
	}
}

// HTTP is the Protocol of HTTP/1.1 on connections that are kept. Any status but 2xx is an error.
func HTTP(_ *Config, in []byte) (used, replies, _ int, err error) {
	used, replies, err = loadgen.HTTPReplies(in)
	return used, replies, 0, err
}

// AppendPost appends a POST of a JSON body on a connection that is kept, with more fields of its
// header.
func AppendPost(dst []byte, path string, body []byte, fields ...string) []byte {
	dst = fmt.Appendf(dst,
		"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, len(body))
	for _, f := range fields {
		dst = append(append(dst, f...), "\r\n"...)
	}
	return append(append(dst, "\r\n"...), body...)
}

// Lines are lines, one to each request, that begin with Config.Good and, unless that is 0, have
// Config.Reply bytes: where replies are known to be all of one length, one with another result is
// mostly of another. Lines that begin with Config.Event, unless it is empty, are events; those that
// begin with Config.Greeted, the same, answer a Tape's Hello; any other line is an error. It does
// not allocate.
func Lines(cfg *Config, in []byte) (used, replies, events int, err error) {
	if cfg.Good == "" && cfg.Reply < 1 {
		return 0, 0, 0, errors.New("cannot take replies of which nothing is known")
	}
	for {
		end := bytes.IndexByte(in[used:], '\n')
		if end < 0 {
			return used, replies, events, nil
		}
		line := in[used : used+end]
		switch {
		case bytes.HasPrefix(line, []byte(cfg.Good)) && (cfg.Reply == 0 || cfg.Reply == end+1):
			replies++
		case cfg.Event != "" && bytes.HasPrefix(line, []byte(cfg.Event)):
			events++
		case cfg.Greeted == "" || !bytes.HasPrefix(line, []byte(cfg.Greeted)):
			return used, replies, events, fmt.Errorf("cannot take %q: a reply of %d bytes begins with %s", line,
				cfg.Reply, cfg.Good)
		}
		used += end + 1
	}
}

// AppendCommand appends a redis command to dst.
func AppendCommand(dst []byte, args ...string) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", len(args))
	for _, a := range args {
		dst = fmt.Appendf(dst, "$%d\r\n%s\r\n", len(a), a)
	}
	return dst
}

const crlf = "\r\n"

// RESP is the Protocol of redis: simple and bulk replies. An error reply, a nil bulk and any other
// type are errors: none of them answers a command that a part sends.
func RESP(_ *Config, b []byte) (used, replies, _ int, err error) {
	for {
		rest := b[used:]
		line := bytes.Index(rest, []byte(crlf))
		if line < 0 {
			return used, replies, 0, nil
		}
		size := line + len(crlf)
		if rest[0] != '+' {
			n, err := length(bytes.TrimPrefix(rest[:line], []byte("$")), rest[:line])
			if err != nil {
				return used, replies, 0, err
			}
			size += n + len(crlf)
		}
		if len(rest) < size {
			return used, replies, 0, nil
		}
		used += size
		replies++
	}
}

// length is a length in a line.
func length(digits, line []byte) (n int, err error) {
	if n, err = strconv.Atoi(string(digits)); err != nil || n < 0 || n > maxFrame {
		return 0, fmt.Errorf("cannot take the length in the reply %q", line)
	}
	return n, nil
}

// NATS is the Protocol of NATS: each message on the connection's inbox is a reply. A PING is not
// answered: a server lets two pass, minutes apart.
func NATS(_ *Config, b []byte) (used, replies, _ int, err error) {
	for {
		rest := b[used:]
		end := bytes.Index(rest, []byte(crlf))
		if end < 0 {
			return used, replies, 0, nil
		}
		line := rest[:end]
		end += len(crlf)
		switch {
		case bytes.HasPrefix(line, []byte("MSG ")):
			n, err := length(line[bytes.LastIndexByte(line, ' ')+1:], line)
			if err != nil {
				return used, replies, 0, err
			}
			if end += n + len(crlf); len(rest) < end {
				return used, replies, 0, nil
			}
			replies++
		case string(line) != "PING" && !bytes.HasPrefix(line, []byte("INFO ")):
			return used, replies, 0, fmt.Errorf("cannot take %q", line)
		}
		used += end
	}
}
