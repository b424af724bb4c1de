package route

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
)

// call is a request under an identifier of the session's own. frame gets each frame that a leg
// sends under it; rest is the payload behind the identifier. The results are those of
// session.arrived.
type call interface {
	frame(l *leg, t frame.Type, rest []byte) (wait, ok bool)
}

// add makes c known under a new number.
func (s *session) add(c call) (number uint32) {
	if s.calls == nil {
		s.calls = make(map[uint32]call)
	}
	for {
		if s.last++; s.calls[s.last] == nil {
			s.calls[s.last] = c
			return s.last
		}
	}
}

const (
	nonceSize  = 8
	numberSize = 8
)

// appendID appends the identifier of a call, of at least size bytes.
func (s *session) appendID(dst []byte, number uint32, size int) []byte {
	start := len(dst)
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], number)
	dst = hex.AppendEncode(append(dst, s.nonce[:]...), b[:])
	for len(dst)-start < size {
		dst = append(dst, '.')
	}
	return dst
}

// idStart is what the payload of every frame of a service has behind its first byte.
const idStart = "\xa2id"

// cutID takes the number of a call from a payload; ours is false for the identifier of a client. It
// does not allocate.
func (s *session) cutID(payload []byte) (number uint32, rest []byte, ours bool) {
	const at = 1 + len(idStart)
	if len(payload) < at+nonceSize+numberSize {
		return 0, nil, false
	}
	id := mpack.ReadValue(payload[at:])
	if id.Kind != mpack.Str || len(id.Data) < nonceSize+numberSize || string(id.Data[:nonceSize]) != string(s.nonce[:]) {
		return 0, nil, false
	}
	var b [4]byte
	if _, err := hex.Decode(b[:], id.Data[nonceSize:nonceSize+numberSize]); err != nil {
		return 0, nil, false
	}
	return binary.BigEndian.Uint32(b[:]), payload[mpack.Next(payload, at):], true
}

// ask sends a request of a call to a partition. size is the length of the client's identifier. It
// reports false, and sends nothing, if the frame would be too large.
func (s *session) ask(partition int, number uint32, size int, service, method string, body []byte) bool {
	var buf [wire.MaxIdentifier]byte
	id := s.appendID(buf[:0], number, size)
	f := frame.Begin(make([]byte, 0, frame.HeaderSize+len(id)+len(service)+len(method)+len(body)+64), frame.Request)
	f = mpack.AppendRequest(f, id, []byte(service), []byte(method), body)
	if frame.Finish(f, 0) > s.r.cfg.MaxFrameBytes {
		return false
	}
	s.legs[partition].put(f)
	return true
}

// appendFrame appends a frame that came under an identifier of the session's with the client's.
func (s *session) appendFrame(dst []byte, t frame.Type, id, rest []byte) []byte {
	return s.appendSized(dst, t, id, rest, 0)
}

// appendSized is appendFrame for a frame that would be larger by missing bytes. One that is too
// large for the client becomes an error (kernel-ipc §3.5).
func (s *session) appendSized(dst []byte, t frame.Type, id, rest []byte, missing int) []byte {
	members := 3
	switch t {
	case frame.StreamChunk:
		members = 2
	case frame.StreamEnd:
		members = 1
	}
	start, limit := len(dst), s.r.cfg.MaxFrameBytes
	dst = append(mpack.AppendMap(frame.Begin(dst, t), members), idStart...)
	dst = append(mpack.AppendStr(dst, id), rest...)
	size := frame.Finish(dst, start) + missing
	if size <= limit {
		return dst
	}
	text := "Response too large: " + strconv.Itoa(size) + " bytes (max " + strconv.Itoa(limit) + ")"
	return appendError(dst[:start], id, wire.ResourceExhausted, text)
}

func appendError(dst, id []byte, code wire.Code, text string) []byte {
	start := len(dst)
	dst = mpack.AppendError(frame.Begin(dst, frame.Error), id, code.String(), text, mpack.Extras{})
	frame.Finish(dst, start)
	return dst
}

// refuse answers the request at hand.
func (s *session) refuse(id []byte, code wire.Code, text string) {
	s.reply(appendError(nil, id, code, text))
}

// reply answers the request at hand with a frame.
func (s *session) reply(text []byte) {
	s.fill(s.window.push(own, true), text)
	s.port.Wake()
}

const tooLargeToForward = "Request too large to be forwarded to its partition"

// The payloads of replies behind the identifier, up to what they carry.
const (
	okRest    = "\xa2ok\xc3\xa4body"
	errorRest = "\xa2ok\xc2\xa5error"
	chunkRest = "\xa4body"
)

// content returns what rest carries behind a prefix, checked to be one map; ok is false for
// anything else.
func (s *session) content(rest []byte, prefix string) (value []byte, ok bool) {
	if len(rest) <= len(prefix) || string(rest[:len(prefix)]) != prefix {
		return nil, false
	}
	value = rest[len(prefix):]
	return value, mpack.KindOf(value) == mpack.Map && s.scan.Check(value) == mpack.NoProblem
}

// rawMember returns the encoded value of a key of a checked map, nil without one.
func rawMember(value []byte, key string) (raw []byte) {
	pairs := mpack.OpenMap(value)
	for _, k, v, ok := pairs.Next(); ok; _, k, v, ok = pairs.Next() {
		if string(k) == key {
			raw = v
		}
	}
	return raw
}

// member is rawMember, decoded: Absent without the key.
func member(value []byte, key string) mpack.Value { return mpack.ReadValue(rawMember(value, key)) }
