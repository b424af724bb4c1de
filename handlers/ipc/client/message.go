package client

import (
	"fmt"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/frame"
)

// appendRequest appends one whole REQUEST frame and returns the value of its length field. The id goes first, so that a
// server that finds a fault behind it can still say whose request it was (kernel-ipc D2).
func appendRequest(dst []byte, id, service, method string, body []byte) (out []byte, size int) {
	start := len(dst)
	dst = frame.Begin(dst, frame.Request)
	dst = msgp.AppendMapHeader(dst, 4)
	dst = msgp.AppendString(dst, "id")
	dst = msgp.AppendString(dst, id)
	dst = msgp.AppendString(dst, "service")
	dst = msgp.AppendString(dst, service)
	dst = msgp.AppendString(dst, "method")
	dst = msgp.AppendString(dst, method)
	dst = msgp.AppendString(dst, "body")
	dst = append(dst, body...)
	return dst, frame.Finish(dst, start)
}

// checkBody makes sure that body is exactly one MessagePack map, because anything else would damage the frame around it.
func checkBody(body []byte) ([]byte, error) {
	if len(body) == 0 {
		return emptyBody, nil
	}
	if msgp.NextType(body) != msgp.MapType {
		return nil, fmt.Errorf("cannot send body: it is no MessagePack map")
	}
	rest, err := msgp.Skip(body)
	if err != nil {
		return nil, fmt.Errorf("cannot send body: %w", err)
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("cannot send body: %d bytes after its end", len(rest))
	}
	return body, nil
}

var emptyBody = []byte{0x80}

// message is one decoded server frame. body aliases the frame.
type message struct {
	kind frame.Type
	id   string
	body []byte
	err  *Error
}

// decode reads one server frame's payload; keys it does not know are skipped, so that servers may say more.
func decode(kind frame.Type, payload []byte) (message, error) {
	m := message{kind: kind}
	n, rest, err := msgp.ReadMapHeaderBytes(payload)
	if err != nil {
		return m, protocolErrorf("frame payload: %v", err)
	}
	for range n {
		var key []byte
		if key, rest, err = msgp.ReadMapKeyZC(rest); err != nil {
			return m, protocolErrorf("frame key: %v", err)
		}
		if rest, err = m.field(string(key), rest); err != nil {
			return m, err
		}
	}
	return m, m.check(len(rest))
}

func (m *message) field(key string, b []byte) (rest []byte, err error) {
	switch key {
	case "id":
		m.id, rest, err = msgp.ReadStringBytes(b)
	case "body":
		if rest, err = msgp.Skip(b); err == nil {
			m.body = b[:len(b)-len(rest)]
		}
	case "error":
		m.err = new(Error)
		rest, err = m.err.decode(b)
	default:
		rest, err = msgp.Skip(b)
	}
	if err != nil {
		return b, protocolErrorf("field %q: %v", key, err)
	}
	return rest, nil
}

func (m *message) check(extra int) error {
	switch {
	case extra != 0:
		return protocolErrorf("%d bytes after the frame's value", extra)
	case m.kind == frame.Error && m.err == nil:
		return protocolErrorf("ERROR frame %q without error", m.id)
	case (m.kind == frame.Response || m.kind == frame.StreamChunk) && m.body == nil:
		return protocolErrorf("frame 0x%02X %q without body", byte(m.kind), m.id)
	}
	return nil
}

func (e *Error) decode(b []byte) (rest []byte, err error) {
	n, rest, err := msgp.ReadMapHeaderBytes(b)
	if err != nil {
		return b, err
	}
	var spelling string
	for range n {
		var key []byte
		if key, rest, err = msgp.ReadMapKeyZC(rest); err != nil {
			return b, err
		}
		switch string(key) {
		case "code":
			spelling, rest, err = msgp.ReadStringBytes(rest)
		case "message":
			e.Message, rest, err = msgp.ReadStringBytes(rest)
		case "retryable":
			e.Retryable, rest, err = msgp.ReadBoolBytes(rest)
		case "kernel_queue_capacity":
			e.KernelQueueCapacity, rest, err = msgp.ReadInt64Bytes(rest)
		case "max_connections":
			e.MaxConnections, rest, err = msgp.ReadInt64Bytes(rest)
		case "retry_after_seconds":
			e.RetryAfterSeconds, rest, err = msgp.ReadFloat64Bytes(rest)
		default:
			rest, err = msgp.Skip(rest)
		}
		if err != nil {
			return b, err
		}
	}
	e.setCode(spelling)
	return rest, nil
}
