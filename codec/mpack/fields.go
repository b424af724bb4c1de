package mpack

import (
	"encoding/binary"
	"math"
)

// Kind is the type of a body field's value.
type Kind uint8

// The kinds a handler tells apart. NaN and the infinities read as Nil (kernel-ipc §3.3).
const (
	Absent Kind = iota
	Nil
	Bool
	Int
	// BigUint is an integer above the int64 range; Value.Int holds its bits.
	BigUint
	Float
	Str
	Array
	Map
)

// Value is one field of a body. Data points into the payload and dies with it: the text of a Str, the whole encoding of an
// Array or Map.
type Value struct {
	Data []byte
	Int  int64 // Int, BigUint (bits); Bool: 0 or 1
	Kind Kind
}

// ParseFields collects the values of the named keys of the encoded map body into dst[:len(names)], in the order of names;
// keys that are not named are stepped over, of a repeated key the last one counts. body must have passed ParseRequest. It does
// not allocate.
func (sc *Scanner) ParseFields(body []byte, names []string, dst []Value) {
	dst = dst[:len(names)]
	for i := range dst {
		dst[i].Kind = Absent
	}
	if len(body) == 0 {
		return
	}
	n, i, ok := count(body, 0, leads[body[0]])
	guess := 0 // keys mostly come in the order of names, so the search starts behind the last hit
	for ; ok && n > 0 && i < len(body); n-- {
		key, next, p := consumeKey(body, i)
		if p != NoProblem {
			return
		}
		at := indexOf(names, key, guess)
		if at < 0 {
			if next, p = sc.skip(body, next, 1); p != NoProblem {
				return
			}
			i = next
			continue
		}
		if i, p = sc.value(body, next, &dst[at]); p != NoProblem {
			return
		}
		guess = at + 1
	}
}

// consumeKey is consumeStr without the UTF-8 check that the key already passed.
func consumeKey(b []byte, i int) (s []byte, next int, p Problem) {
	l := leads[b[i]]
	n, i, ok := count(b, i, l)
	if !ok || l.class != str || n < 0 || n > len(b)-i {
		return nil, i, Truncated
	}
	return b[i : i+n], i + n, NoProblem
}

func indexOf(names []string, key []byte, guess int) int {
	for i := guess; i < len(names); i++ {
		if names[i] == string(key) {
			return i
		}
	}
	for i := 0; i < guess && i < len(names); i++ {
		if names[i] == string(key) {
			return i
		}
	}
	return -1
}

// value decodes the value at b[i] into v.
func (sc *Scanner) value(b []byte, i int, v *Value) (next int, p Problem) {
	if i >= len(b) {
		return i, Truncated
	}
	first := b[i]
	switch l := leads[first]; l.class {
	case str:
		v.Data, next, p = consumeKey(b, i)
		v.Kind = Str
		return next, p
	case scalar:
		next = i + 1 + int(l.size)
		if next > len(b) {
			return next, Truncated
		}
		v.scalar(first, b[i+1:next])
		return next, NoProblem
	case array:
		v.Kind = Array
	default:
		v.Kind = Map
	}
	next, p = sc.skip(b, i, 1)
	if p == NoProblem {
		v.Data = b[i:next:next]
	}
	return next, p
}

// scalar decodes a value whose content is the bytes after its first one.
func (v *Value) scalar(first byte, rest []byte) {
	v.Kind = Int
	switch first {
	case 0xc0:
		v.Kind = Nil
	case 0xc2, 0xc3:
		v.Kind, v.Int = Bool, int64(first&1)
	case 0xca:
		v.float(float64(math.Float32frombits(binary.BigEndian.Uint32(rest))))
	case 0xcb:
		v.float(math.Float64frombits(binary.BigEndian.Uint64(rest)))
	case 0xcc:
		v.Int = int64(rest[0])
	case 0xcd:
		v.Int = int64(binary.BigEndian.Uint16(rest))
	case 0xce:
		v.Int = int64(binary.BigEndian.Uint32(rest))
	case 0xcf:
		v.Int = int64(binary.BigEndian.Uint64(rest))
		if v.Int < 0 {
			v.Kind = BigUint
		}
	case 0xd0:
		v.Int = int64(int8(rest[0]))
	case 0xd1:
		v.Int = int64(int16(binary.BigEndian.Uint16(rest)))
	case 0xd2:
		v.Int = int64(int32(binary.BigEndian.Uint32(rest)))
	case 0xd3:
		v.Int = int64(binary.BigEndian.Uint64(rest))
	default:
		v.Int = int64(int8(first)) // positive and negative fixint
	}
}

func (v *Value) float(f float64) {
	v.Kind = Float
	if math.IsNaN(f) || math.IsInf(f, 0) {
		v.Kind = Nil
	}
}

// Elements walks the encoded array: it calls take with each element until that returns false. The elements' bytes are lent.
func (sc *Scanner) Elements(encoded []byte, take func(i int, v Value) bool) {
	if len(encoded) == 0 || leads[encoded[0]].class != array {
		return
	}
	n, i, ok := count(encoded, 0, leads[encoded[0]])
	for at := 0; ok && at < n; at++ {
		var v Value
		var p Problem
		if i, p = sc.value(encoded, i, &v); p != NoProblem || !take(at, v) {
			return
		}
	}
}

// Len returns the number of elements of an Array value's encoding, 0 for anything else.
func Len(encoded []byte) int {
	if len(encoded) == 0 || leads[encoded[0]].class != array {
		return 0
	}
	n, _, _ := count(encoded, 0, leads[encoded[0]])
	return n
}
