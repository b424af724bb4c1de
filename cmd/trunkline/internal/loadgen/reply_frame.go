package loadgen

import (
	"trunkline/codec/frame"
	"trunkline/codec/mpack"
)

// frames reads the frames of kernel-ipc §2.
type frames struct {
	scan  mpack.Scanner
	reply []mpack.Field
	fault []mpack.Field
	vals  [2]mpack.Value
}

func newFrames() *frames {
	return &frames{reply: mpack.Fields("id", "error"), fault: mpack.Fields("code")}
}

// head is how servers begin nearly all replies: a map of three whose first member is an id of ours.
const head = "\x83\xa2id\xac"

func (f *frames) next(in []byte, r *reply) (n, need int, err error) {
	kind, payload, n := frame.Split(in, maxReply)
	switch {
	case n == frame.Malformed:
		return 0, 0, errMalformed
	case n == 0:
		return 0, max(frame.Len(in), frame.HeaderSize), nil
	}
	*r = reply{}
	switch kind {
	case frame.Response:
		r.ok = true
		if len(payload) > len(head)+idWidth && string(payload[:len(head)]) == head {
			if r.id, r.hasID = hexID(payload[len(head) : len(head)+idWidth]); r.hasID {
				return n, 0, nil
			}
		}
	case frame.Error:
	case frame.StreamChunk, frame.StreamEnd:
		r.none = true
		return n, 0, nil
	default:
		return 0, 0, errMalformed
	}
	return n, 0, f.read(payload, r)
}

// read takes a payload apart in whatever order its members are.
func (f *frames) read(payload []byte, r *reply) error {
	if len(payload) == 0 || mpack.KindOf(payload) != mpack.Map {
		return errMalformed
	}
	if _, p := f.scan.ParseFields(payload, 0, f.reply, f.vals[:]); p != mpack.NoProblem {
		return errMalformed
	}
	if id := f.vals[0]; id.Kind == mpack.Str {
		r.id, r.hasID = hexID(id.Data)
	}
	r.stray = !r.hasID
	if r.ok {
		return nil
	}
	r.code = unknownCode
	fault := f.vals[1]
	if fault.Kind != mpack.Map {
		return nil
	}
	if _, p := f.scan.ParseFields(fault.Data, 0, f.fault, f.vals[:1]); p == mpack.NoProblem && f.vals[0].Kind == mpack.Str && len(f.vals[0].Data) > 0 {
		r.code = clip(f.vals[0].Data)
	}
	return nil
}

var unknownCode = []byte("error without code")

func (*frames) end([]byte, *reply) bool { return false }
