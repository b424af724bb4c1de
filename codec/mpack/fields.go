package mpack

import (
	"encoding/binary"
	"math"
)

// Kind is the type of a body field's value.
type Kind uint8

// The kinds of values. NaN and the infinities read as Nil (kernel-ipc §3.3).
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

// Value is one field of a body. Data points into the payload and dies with it: the text of a Str,
// the whole encoding of an Array or Map.
type Value struct {
	Data []byte
	Int  int64 // Int, BigUint (bits); Bool: 0 or 1; Array, Map: its levels, itself included, or 0 where they are not counted
	Kind Kind
}

// Field is the name of a body field, prepared for look-ups in an encoded map. Fields makes them.
type Field struct {
	Name string
	// The key as clients encode it, length byte first, in two overlapping words: its first eight
	// bytes and its last eight. A shorter one is in first alone, zero-filled, and mask covers it.
	first, last, mask uint64
	size              int // of the encoded key; 0 for names that have no short form or are not settled by the two words
}

// wordKey bounds the encoded keys that two overlapping words cover.
const wordKey = 16

// Fields prepares names for ParseFields.
func Fields(names ...string) []Field {
	fields := make([]Field, len(names))
	for i, name := range names {
		fields[i] = makeField(name)
	}
	return fields
}

func makeField(name string) Field {
	f := Field{Name: name}
	var key [8 + wordKey]byte
	n := 1 + len(name)
	if n > wordKey {
		return f
	}
	copy(key[1:], name)
	key[0] = 0xa0 | byte(len(name))
	f.size, f.mask = n, ^uint64(0)
	f.first = binary.LittleEndian.Uint64(key[:])
	if n < 8 {
		f.mask = 1<<(8*n) - 1
		n = 8
	}
	f.last = binary.LittleEndian.Uint64(key[n-8:])
	return f
}

// at reports whether the encoded key is at the front of b; at the very end of b it may return
// false.
func (f *Field) at(b []byte) bool {
	if len(b) < 8 || f.size == 0 || (binary.LittleEndian.Uint64(b)^f.first)&f.mask != 0 {
		return false
	}
	return f.size <= 8 || len(b) >= f.size && binary.LittleEndian.Uint64(b[f.size-8:]) == f.last
}

// bodyDepth is how many containers are open around a field of a body: the request and the body.
const bodyDepth = 2

// ParseFields collects the values of the wanted keys of the encoded map at b[i] into
// dst[:len(want)], in the order of want. Other keys are stepped over; the last one of a repeated
// key counts. All of the map is checked; next is where it ends. dst is valid only without a
// problem. It does not allocate.
func (sc *Scanner) ParseFields(b []byte, i int, want []Field, dst []Value) (next int, p Problem) {
	dst = dst[:len(want)]
	for k := range dst {
		dst[k].Kind = Absent
	}
	n, i, ok := count(b, i, leads[b[i]])
	if !ok || n < 0 || 2*n > len(b)-i {
		return i, Truncated
	}
	guess := 0 // keys mostly come in the order of want, so the search starts behind the last hit
	for ; n > 0; n-- {
		if i >= len(b) {
			return i, Truncated
		}
		var at int
		if at, i, p = consumeKey(b, i, want, guess); p != NoProblem {
			return i, p
		}
		if at < 0 {
			i, p = sc.skip(b, i, bodyDepth)
		} else {
			i, p = sc.value(b, i, &dst[at])
			guess = at + 1
		}
		if p != NoProblem {
			return i, p
		}
	}
	return i, NoProblem
}

// consumeKey steps over the key at b[i] and returns which of want it is, or -1.
func consumeKey(b []byte, i int, want []Field, guess int) (at, next int, p Problem) {
	rest := b[i:]
	for range want {
		if guess >= len(want) {
			guess = 0
		}
		if f := &want[guess]; f.at(rest) {
			return guess, i + f.size, NoProblem
		}
		guess++
	}
	key, next, p := consumeStr(b, i)
	if p != NoProblem {
		if p == KeyNotString {
			p = keyProblem(leads[b[i]])
		}
		return -1, next, p
	}
	for k := range want {
		if want[k].Name == string(key) {
			return k, next, NoProblem
		}
	}
	return -1, next, NoProblem
}

// value decodes the value at b[i] into v.
func (sc *Scanner) value(b []byte, i int, v *Value) (next int, p Problem) {
	if i >= len(b) {
		return i, Truncated
	}
	first := b[i]
	if first <= 0x7f {
		v.Kind, v.Int = Int, int64(first)
		return i + 1, NoProblem
	}
	switch l := leads[first]; l.class {
	case str:
		v.Data, next, p = consumeStr(b, i)
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
	case mapping:
		v.Kind = Map
	default:
		return i, refusal(l)
	}
	sc.deepest = bodyDepth
	next, p = sc.skip(b, i, bodyDepth)
	if p == NoProblem {
		v.Data, v.Int = b[i:next:next], int64(sc.deepest-bodyDepth+1)
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

// Elements calls take with each element of the encoded array until it returns false. The bytes are
// lent.
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
