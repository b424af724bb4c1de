package fuzz

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tinylib/msgp/msgp"
)

// received is one frame that came from the server, decoded.
type received struct {
	typ     byte
	payload object
	size    int // with its prefix
}

func (f received) String() string { return fmt.Sprintf("%02X %v", f.typ, f.payload) }

func (f received) id() string {
	id, _ := f.payload.get("id")
	s, _ := id.(string)
	return s
}

// cut returns the frame at the front of b and its whole size: 0 when it is not complete, -1 when
// its length is out of bounds (kernel-ipc §2.1, §2.2).
func cut(b []byte, limit int) (typ byte, payload []byte, size int) {
	if len(b) < 4 {
		return 0, nil, 0
	}
	n := int(binary.BigEndian.Uint32(b))
	switch {
	case n < 1 || n > limit:
		return 0, nil, -1
	case len(b) < 4+n:
		return 0, nil, 0
	}
	return b[4], b[5 : 4+n], 4 + n
}

func appendFrame(dst []byte, typ byte, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(1+len(payload)))
	return append(append(dst, typ), payload...)
}

// readFrames decodes what the server sent; limit bounds each frame (kernel-ipc §2.1).
func readFrames(b []byte, limit int) (frames []received, err error) {
	for len(b) > 0 {
		typ, payload, size := cut(b, limit)
		if size <= 0 {
			return nil, fmt.Errorf("no frame of at most %d bytes: %x", limit, b[:min(len(b), 64)])
		}
		f, err := readFrame(typ, payload)
		if err != nil {
			return nil, fmt.Errorf("frame %02X %x: %w", typ, payload, err)
		}
		frames, b = append(frames, f), b[size:]
	}
	return frames, nil
}

func readFrame(typ byte, payload []byte) (received, error) {
	f := received{typ: typ, size: 5 + len(payload)}
	if _, rest, err := msgp.ReadIntfBytes(payload); err != nil || len(rest) > 0 {
		return f, fmt.Errorf("not MessagePack: %v, %d bytes left", err, len(rest))
	}
	v, err := decode(payload)
	if err != nil {
		return f, err
	}
	f.payload, _ = v.(object)
	// The smallest classes, float64 and nothing refused (kernel-ipc §3.3): writing it again gives
	// the same bytes. Envelopes keep the spelling they came in (envelope §3.1).
	if again := appendValue(nil, v, nil); !bytes.Equal(again, payload) && !f.hasEnvelope() {
		return f, fmt.Errorf("not in the smallest classes: %x", again)
	}
	return f, f.checkShape()
}

// hasEnvelope reports whether the frame's body is an envelope, or holds one.
func (f received) hasEnvelope() bool {
	v, _ := f.payload.get("body")
	body, _ := v.(object)
	return f.typ == response && (body.has("envelope") || body.has("identity") || body.has("agent_hop_count"))
}

var codes = []string{"NOT_FOUND", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "CANCELLED",
	"TIMEOUT", "INTERNAL"}

// checkShape holds a frame against the shapes of kernel-ipc §3.5.
func (f received) checkShape() error {
	str, obj := anyOf{""}, anyOf{object{}}
	want := map[byte]object{
		response:    {{"id", str}, {"ok", true}, {"body", obj}},
		errorFrame:  {{"id", str}, {"ok", false}, {"error", obj}},
		streamChunk: {{"id", str}, {"body", obj}},
		streamEnd:   {{"id", str}},
	}[f.typ]
	if want == nil {
		return fmt.Errorf("no frame type of a server")
	}
	if err := match(want, f.payload); err != nil || f.typ != errorFrame {
		return err
	}
	e, _ := f.payload.get("error")
	return checkError(e.(object))
}

func checkError(e object) error {
	shapes := map[string]any{"code": anyOf{""}, "message": anyOf{""}, "retryable": true, "kernel_queue_capacity": anyOf{int64(0)},
		"max_connections": anyOf{int64(0)}, "retry_after_seconds": anyOf{0.0}}
	for _, m := range e {
		want, known := shapes[m.key]
		if !known {
			return fmt.Errorf("an error with the key %s", m.key)
		}
		if err := match(want, m.val); err != nil {
			return fmt.Errorf("%s: %w", m.key, err)
		}
	}
	code, _ := e.get("code")
	if c, _ := code.(string); !slices.Contains(codes, c) {
		return fmt.Errorf("an error with the code %v", code)
	}
	if _, ok := e.get("message"); !ok {
		return fmt.Errorf("an error without a message")
	}
	return nil
}
