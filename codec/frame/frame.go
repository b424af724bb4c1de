// Package frame splits and builds the length-prefixed frames of the kernel protocol (kernel-ipc
// §2.1) without copying.
//
//	┌──────────────────┬──────────┬──────────────────────────┐
//	│ len (4 bytes)    │ type (1) │ payload (len-1 bytes)    │
//	│ u32 big-endian   │ u8       │ MessagePack              │
//	└──────────────────┴──────────┴──────────────────────────┘
//
// len counts the type byte and the payload, not itself. 1 <= len <= the frame bound; the bound
// holds in both directions. "Not enough bytes yet" and "malformed" are different answers: a frame
// may arrive in any number of pieces.
package frame

import (
	"encoding/binary"
)

// Type is the message kind in a frame's fifth byte.
type Type byte

// The message types of kernel-ipc §2.1.
const (
	Request     Type = 0x01
	Response    Type = 0x02
	StreamChunk Type = 0x03
	StreamEnd   Type = 0x04
	Error       Type = 0xFF
)

const (
	// PrefixSize is the length of the length field, in bytes.
	PrefixSize = 4
	// HeaderSize is the length of everything before the payload, in bytes.
	HeaderSize = PrefixSize + 1
)

// Malformed is the count Split returns for a length field outside its bounds: the connection must
// be closed, nothing after the length may be interpreted (kernel-ipc §2.3).
const Malformed = -1

// Split returns the frame at the front of in. n is the number of bytes it takes, prefix included; n
// is 0 when in does not hold a whole frame yet, and Malformed when the length field is 0 or above
// limit, which needs only four bytes. payload is a part of in, never a copy. Split does not
// allocate.
func Split(in []byte, limit int) (t Type, payload []byte, n int) {
	if len(in) < PrefixSize {
		return 0, nil, 0
	}
	size := int(binary.BigEndian.Uint32(in))
	if uint(size-1) >= uint(limit) {
		return 0, nil, Malformed
	}
	n = PrefixSize + size
	if len(in) < n {
		return 0, nil, 0
	}
	return Type(in[PrefixSize]), in[HeaderSize:n:n], n
}

// Len returns the length of the frame at the front of b by its length field, in bytes with its
// prefix; 0 for less than four bytes. The frame need not be whole, and Len does not check its
// length. It does not allocate.
func Len(b []byte) int {
	if len(b) < PrefixSize {
		return 0
	}
	return PrefixSize + int(binary.BigEndian.Uint32(b))
}

// Begin appends the header of a frame of unknown length; Finish, with the former length of dst,
// completes it.
func Begin(dst []byte, t Type) []byte {
	return append(dst, 0, 0, 0, 0, byte(t))
}

// BeginSized appends the header of a frame whose payload of size bytes follows.
func BeginSized(dst []byte, t Type, size int) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(1+size)), byte(t))
}

// Finish writes the length of the frame that began at dst[start] and ends with dst. It returns the
// value of the length field: a frame over its bound must not be sent (kernel-ipc §2.1).
func Finish(dst []byte, start int) (size int) {
	size = len(dst) - start - PrefixSize
	binary.BigEndian.PutUint32(dst[start:], uint32(size))
	return size
}

// Append appends a whole frame, its payload given in two parts (a prefix of the receiver's own and
// a body that many receivers share).
func Append(dst []byte, t Type, prefix, body []byte) []byte {
	dst = append(BeginSized(dst, t, len(prefix)+len(body)), prefix...)
	return append(dst, body...)
}
