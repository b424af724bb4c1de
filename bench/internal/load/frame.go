//go:build linux

package load

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// The message types of kernel-ipc §2.1.
const (
	Request   = 0x01
	Response  = 0x02
	Chunk     = 0x03
	streamEnd = 0x04
	Error     = 0xff
)

const maxFrame = 5 << 20

// Field is one entry of a request body.
type Field struct {
	Key   string
	Value any // string, int, bool, []string, []Field or Raw
}

// Raw is a value that is MessagePack already, for requests that no encoder would make.
type Raw []byte

// AppendRequest appends one REQUEST frame to dst. It is set-up code: the tapes are encoded before a
// run.
func AppendRequest(dst []byte, id, service, method string, body ...Field) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, Request)
	dst = msgp.AppendMapHeader(dst, 4)
	dst = msgp.AppendString(msgp.AppendString(dst, "id"), id)
	dst = msgp.AppendString(msgp.AppendString(dst, "service"), service)
	dst = msgp.AppendString(msgp.AppendString(dst, "method"), method)
	dst = appendValue(msgp.AppendString(dst, "body"), body)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return msgp.AppendString(dst, v)
	case int:
		return msgp.AppendInt64(dst, int64(v))
	case bool:
		return msgp.AppendBool(dst, v)
	case Raw:
		return append(dst, v...)
	case []string:
		dst = msgp.AppendArrayHeader(dst, uint32(len(v)))
		for _, s := range v {
			dst = msgp.AppendString(dst, s)
		}
		return dst
	case []Field:
		dst = msgp.AppendMapHeader(dst, uint32(len(v)))
		for _, f := range v {
			dst = appendValue(msgp.AppendString(dst, f.Key), f.Value)
		}
		return dst
	}
	panic(fmt.Sprintf("BUG: a body field of type %T", v))
}

// ParseFrame returns the type and payload of the frame b begins with and its whole size. ok is
// false with a nil error when more bytes are needed. The payload is a sub-slice of b.
func ParseFrame(b []byte) (typ byte, payload []byte, size int, ok bool, err error) {
	if len(b) < 4 {
		return 0, nil, 0, false, nil
	}
	n := binary.BigEndian.Uint32(b)
	if n == 0 || n > maxFrame {
		return 0, nil, 0, false, fmt.Errorf("cannot read a frame: length %d is outside 1..%d", n, maxFrame)
	}
	size = 4 + int(n)
	if len(b) < size {
		return 0, nil, size, false, nil
	}
	return b[4], b[5:size], size, true, nil
}

// Failure is the error of an ERROR frame.
type Failure struct{ ID, Code, Message string }

// Error implements error.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// ParseFailure decodes the payload of an ERROR frame (kernel-ipc §3.5).
func ParseFailure(payload []byte) (*Failure, error) {
	m, err := decodeMap(payload)
	if err != nil {
		return nil, err
	}
	detail, _ := m["error"].(map[string]any)
	f := &Failure{}
	f.ID, _ = m["id"].(string)
	f.Code, _ = detail["code"].(string)
	f.Message, _ = detail["message"].(string)
	if f.Code == "" {
		return nil, errors.New("cannot read an ERROR frame: no code")
	}
	return f, nil
}

func decodeMap(payload []byte) (map[string]any, error) {
	m, rest, err := msgp.ReadMapStrIntfBytes(payload, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot decode a payload of %d bytes: %w", len(payload), err)
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("cannot decode a payload: %d bytes after the value", len(rest))
	}
	return m, nil
}
