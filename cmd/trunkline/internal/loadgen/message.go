package loadgen

import (
	"encoding/binary"
	"slices"
)

// message is one method's request: bytes in which some places are written anew for each request.
// All requests of a method have the same length, so that making one is a copy and a few stores.
type message struct {
	bytes   []byte
	patches []patch
	id      int  // where the request's id of idWidth digits stands; 0 if the protocol has none
	pid     bool // it asks for a process of the run
}

// idWidth is the length of an id: hexadecimal digits of a 48-bit number, whose low idPlaceBits are
// the place in flight.
const (
	idWidth     = 12
	idPlaceBits = 12
	idBits      = 48
)

type patchKind uint8

const (
	patchText   patchKind = iota // decimal digits with zeros in front
	patchSpaced                  // decimal digits with blanks in front: a JSON number
	patchBinary                  // 64 bits, big-endian: a MessagePack integer
	patchUUID
)

// patch is a place in a message.
type patch struct {
	at, width int
	kind      patchKind
	field     field
}

// request is what the fields of a message are made of.
type request struct {
	id     uint64
	seq    int64
	conn   int64
	secret uint64 // of the run: uuids come from it
}

// append appends the message for a request. It does not allocate if dst has room.
func (m *message) append(dst []byte, r *request) []byte {
	start := len(dst)
	dst = append(dst, m.bytes...)
	out := dst[start:]
	if m.id > 0 {
		putHex(out[m.id:m.id+idWidth], r.id)
	}
	for i := range m.patches {
		p := &m.patches[i]
		to := out[p.at : p.at+p.width]
		n := uint64(r.seq)
		if p.field == fieldConn {
			n = uint64(r.conn)
		}
		switch p.kind {
		case patchText:
			putDecimal(to, n, '0')
		case patchSpaced:
			putDecimal(to, n, ' ')
		case patchBinary:
			binary.BigEndian.PutUint64(to, n)
		case patchUUID:
			putUUID(to, r.secret, uint64(r.seq))
		}
	}
	return dst
}

const hexDigits = "0123456789abcdef"

func putHex(to []byte, n uint64) {
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = hexDigits[n&15]
		n >>= 4
	}
}

// hexID reads an id; ok is false for anything else than idWidth lower-case digits.
func hexID(text []byte) (id uint64, ok bool) {
	if len(text) != idWidth {
		return 0, false
	}
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			id = id<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			id = id<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return id, true
}

func putDecimal(to []byte, n uint64, pad byte) {
	i := len(to) - 1
	for ; i >= 0; i-- {
		to[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			break
		}
	}
	for i--; i >= 0; i-- {
		to[i] = pad
	}
}

// putUUID writes a UUID of version 4 that only this request of this run has.
func putUUID(to []byte, secret, seq uint64) {
	high, low := scramble(secret^seq), scramble(^secret+seq)
	high = high&^0xf000 | 0x4000
	low = low&^(3<<62) | 1<<63
	putHex(to[0:8], high>>32)
	putHex(to[9:13], high>>16)
	putHex(to[14:18], high)
	putHex(to[19:23], low>>48)
	putHex(to[24:36], low)
	to[8], to[13], to[18], to[23] = '-', '-', '-', '-'
}

// findPatches compares a message made twice, each hole filled differently: what differs is where
// the holes are. It returns the places, or false if they are not where they should be.
func findPatches(low, high []byte, holes []hole, binaryNumbers bool) (patches []patch, ok bool) {
	if len(low) != len(high) {
		return nil, false
	}
	at := 0
	for _, h := range holes {
		p := patch{width: h.width, field: h.field}
		switch {
		case h.number && binaryNumbers:
			p.kind, p.width = patchBinary, 8
		case h.number:
			p.kind, p.width = patchSpaced, numberWidth
		case h.field == fieldUUID:
			p.kind = patchUUID
		}
		for at < len(low) && low[at] == high[at] {
			at++
		}
		p.at = at
		for range p.width {
			if at == len(low) || low[at] == high[at] {
				return nil, false
			}
			at++
		}
		patches = append(patches, p)
	}
	return patches, slices.Equal(low[at:], high[at:])
}
