package mpack

import (
	"encoding/binary"
	"unicode/utf8"

	"trunkline/codec/wire"
)

// Scanner checks MessagePack and steps over values. It holds the stack of open containers, so that
// nesting needs no recursion and no allocation. One Scanner serves one session. The zero value is
// ready.
type Scanner struct {
	// left counts the values that each outer container still needs: a map of n pairs needs 2n.
	left [wire.MaxMsgpackDepth]uint32
	// isMap marks those that alternate keys and values.
	isMap [wire.MaxMsgpackDepth]bool
	// deepest is the greatest depth of a container that was stepped over since it was set.
	deepest int
}

// class is how a value's first byte is to be read.
type class uint8

const (
	scalar  class = iota // size is how many bytes follow the first
	str                  // size of the length field follows; 0: length in the first byte
	array                // as str
	mapping              // as str
	refused              // bin, ext
	never                // 0xc1
)

// lead is one entry per first byte: the kind of value, and how many bytes of size or content
// follow.
type lead struct {
	class class
	size  uint8
}

var leads = func() (t [256]lead) {
	for b := range t {
		t[b] = leadOf(byte(b))
	}
	return t
}()

func leadOf(b byte) lead {
	switch {
	case b <= 0x7f || b >= 0xe0:
		return lead{scalar, 0}
	case b <= 0x8f:
		return lead{mapping, 0}
	case b <= 0x9f:
		return lead{array, 0}
	case b <= 0xbf:
		return lead{str, 0}
	}
	switch b {
	case 0xc0, 0xc2, 0xc3:
		return lead{scalar, 0}
	case 0xc1:
		return lead{never, 0}
	case 0xca, 0xce, 0xd2:
		return lead{scalar, 4}
	case 0xcb, 0xcf, 0xd3:
		return lead{scalar, 8}
	case 0xcc, 0xd0:
		return lead{scalar, 1}
	case 0xcd, 0xd1:
		return lead{scalar, 2}
	case 0xd9:
		return lead{str, 1}
	case 0xda:
		return lead{str, 2}
	case 0xdb:
		return lead{str, 4}
	case 0xdc:
		return lead{array, 2}
	case 0xdd:
		return lead{array, 4}
	case 0xde:
		return lead{mapping, 2}
	case 0xdf:
		return lead{mapping, 4}
	}
	return lead{refused, 0}
}

// count reads the length of the string or container whose first byte is b[i]; next is where its
// content starts. ok is false when the length field is cut off.
func count(b []byte, i int, l lead) (n, next int, ok bool) {
	first := b[i]
	i++
	switch l.size {
	case 0:
		if l.class == str {
			return int(first & 0x1f), i, true
		}
		return int(first & 0x0f), i, true
	case 1:
		if i < len(b) {
			return int(b[i]), i + 1, true
		}
	case 2:
		if i+2 <= len(b) {
			return int(binary.BigEndian.Uint16(b[i:])), i + 2, true
		}
	default:
		if i+4 <= len(b) {
			return int(binary.BigEndian.Uint32(b[i:])), i + 4, true
		}
	}
	return 0, i, false
}

// consumeStr returns the string at b[i] without copying, checked for UTF-8.
func consumeStr(b []byte, i int) (s []byte, next int, p Problem) {
	l := leads[b[i]]
	if l.class != str {
		return nil, i, KeyNotString
	}
	n, i, ok := count(b, i, l)
	if !ok || n < 0 || n > len(b)-i {
		return nil, i, Truncated
	}
	s = b[i : i+n : i+n]
	if !validText(s) {
		return nil, i, BadUTF8
	}
	return s, i + n, NoProblem
}

// validText reports whether s is valid UTF-8. A few overlapping loads settle ASCII.
func validText(s []byte) bool {
	const high = 0x8080808080808080
	n := len(s)
	switch {
	case n >= 8:
		x := binary.LittleEndian.Uint64(s[n-8:])
		for i := 0; i+8 < n; i += 8 {
			x |= binary.LittleEndian.Uint64(s[i:])
		}
		if x&high == 0 {
			return true
		}
	case n >= 4:
		if (binary.LittleEndian.Uint32(s)|binary.LittleEndian.Uint32(s[n-4:]))&(high>>32) == 0 {
			return true
		}
	default:
		var x byte
		for _, c := range s {
			x |= c
		}
		if x < utf8.RuneSelf {
			return true
		}
	}
	return utf8.Valid(s)
}

// Check reports what is wrong with b as exactly one value. It does not allocate.
func (sc *Scanner) Check(b []byte) Problem {
	next, p := sc.skip(b, 0, 0)
	if p == NoProblem && next != len(b) {
		p = TrailingBytes
	}
	return p
}

// Fits reports whether b, one value that has been checked, may stand inside of so many open
// containers. It is looked at only if it has the bytes for more levels than that.
func (sc *Scanner) Fits(b []byte, around int) bool {
	if len(b) <= wire.MaxMsgpackDepth-around {
		return true
	}
	_, p := sc.skip(b, 0, around)
	return p == NoProblem
}

// skip steps over the value at b[i], checking all of it; depth is how many containers are open
// around it. It returns where the next value starts.
func (sc *Scanner) skip(b []byte, i, depth int) (next int, p Problem) {
	if i >= len(b) {
		return i, Truncated
	}
	switch l := leads[b[i]]; l.class {
	case scalar:
		if i += 1 + int(l.size); i > len(b) {
			return i, Truncated
		}
		return i, NoProblem
	case str:
		_, i, p = consumeStr(b, i)
		return i, p
	case array, mapping:
		return sc.skipContainer(b, i, depth, l)
	default:
		return i, refusal(l)
	}
}

// skipContainer is skip for the array or map at b[i]. The innermost container's count stays in
// registers: a frame full of small values must not hold its event loop for long.
func (sc *Scanner) skipContainer(b []byte, i, depth int, l lead) (next int, p Problem) {
	base := depth
	left, isMap, i, p := open(b, i, depth, l)
	for p == NoProblem {
		if left == 0 {
			if depth == base {
				return i, NoProblem
			}
			depth--
			left, isMap = sc.left[depth], sc.isMap[depth]
			continue
		}
		left--
		if i >= len(b) {
			return i, Truncated
		}
		l := leads[b[i]]
		if isMap && left&1 == 1 && l.class != str {
			return i, keyProblem(l)
		}
		// Branches decide where the next value begins, not arithmetic on what was read: the
		// processor then runs ahead instead of waiting for each byte.
		switch l.class {
		case scalar:
			if l.size == 0 {
				i++
			} else if i += 1 + int(l.size); i > len(b) {
				return i, Truncated
			}
		case str:
			_, i, p = consumeStr(b, i)
		case array, mapping:
			if b[i]&0x0f == 0 && l.size == 0 && depth+1 < wire.MaxMsgpackDepth {
				i++ // an empty one
				sc.deepest = max(sc.deepest, depth+1)
				continue
			}
			sc.left[depth], sc.isMap[depth] = left, isMap
			depth++
			sc.deepest = max(sc.deepest, depth)
			left, isMap, i, p = open(b, i, depth, l)
		default:
			return i, refusal(l)
		}
	}
	return i, p
}

// open reads the header of the container at b[i], around which depth others are open. Its count is
// held against the bytes that are left, so that a small payload cannot announce a large one.
func open(b []byte, i, depth int, l lead) (left uint32, isMap bool, next int, p Problem) {
	n, next, ok := count(b, i, l)
	if !ok {
		return 0, false, next, Truncated
	}
	if depth >= wire.MaxMsgpackDepth {
		return 0, false, next, TooDeep
	}
	if isMap = l.class == mapping; isMap {
		n *= 2
	}
	if n < 0 || n > len(b)-next {
		return 0, false, next, Truncated
	}
	return uint32(n), isMap, next, NoProblem
}

// keyProblem names what is wrong with a map key that is no string.
func keyProblem(l lead) Problem {
	if l.class == refused || l.class == never {
		return refusal(l)
	}
	return KeyNotString
}

func refusal(l lead) Problem {
	if l.class == never {
		return NeverUsed
	}
	return BinOrExt
}
