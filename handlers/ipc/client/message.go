package client

import (
	"context"
	"fmt"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/frame"
)

// The kinds of an Instruction.
const (
	RunAgent      = "RUN_AGENT"
	WaitInterrupt = "WAIT_INTERRUPT"
	Terminate     = "TERMINATE"
)

// invoke is Call with typed maps; in may be nil for an empty one.
func (c *Conn) invoke(ctx context.Context, service, method string, in msgp.Marshaler, out msgp.Unmarshaler) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = in.MarshalMsg(nil); err != nil {
			return fmt.Errorf("cannot encode the body of %s.%s: %w", service, method, err)
		}
	}
	reply, err := c.Call(ctx, service, method, body)
	if err != nil {
		return err
	}
	if _, err := out.UnmarshalMsg(reply); err != nil {
		return protocolErrorf("reply of %s.%s: %v", service, method, err)
	}
	return nil
}

// checkBody makes sure that body is exactly one MessagePack map: anything else damages its frame.
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

// incoming is one decoded server frame. It shares no memory with the frame.
type incoming struct {
	kind frame.Type
	id   string
	body []byte
	err  *Error
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
