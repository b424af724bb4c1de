package fuzz

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"
)

// The MessagePack of this file is the profile of kernel-ipc §3.3, read and written the plain way.
// Values are nil, bool, int64, uint64 (only above the int64 range), float64, string, []any and
// object.

// object is a map in the order it was written; keys may repeat.
type object []member

type member struct {
	key string
	val any
}

// get returns the last value of key.
func (o object) get(key string) (v any, ok bool) {
	for _, m := range o {
		if m.key == key {
			v, ok = m.val, true
		}
	}
	return v, ok
}

// encoded is MessagePack written elsewhere, to be sent as it is.
type encoded string

var errProfile = errors.New("not MessagePack of the profile")

const maxLevels = 512

// decode reads exactly one value.
func decode(b []byte) (any, error) {
	r := reader{b: b}
	v, err := r.value(0)
	if err == nil && r.i != len(b) {
		err = errProfile
	}
	return v, err
}

type reader struct {
	b []byte
	i int
}

func (r *reader) take(n int) ([]byte, error) {
	if n < 0 || n > len(r.b)-r.i {
		return nil, errProfile
	}
	r.i += n
	return r.b[r.i-n : r.i], nil
}

// uint reads a big-endian number of n bytes.
func (r *reader) uint(n int) (uint64, error) {
	b, err := r.take(n)
	if err != nil {
		return 0, err
	}
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, nil
}

// value reads a value inside of level open containers.
func (r *reader) value(level int) (any, error) {
	first, err := r.uint(1)
	if err != nil {
		return nil, err
	}
	switch c := byte(first); {
	case c <= 0x7f || c >= 0xe0:
		return int64(int8(c)), nil
	case c <= 0x8f:
		return r.mapping(uint64(c&15), level)
	case c <= 0x9f:
		return r.array(uint64(c&15), level)
	case c <= 0xbf:
		return r.text(uint64(c & 31))
	case c == 0xc0:
		return nil, nil
	case c == 0xc2 || c == 0xc3:
		return c == 0xc3, nil
	case c == 0xca || c == 0xcb:
		return r.float(4 << (c - 0xca))
	case c >= 0xcc && c <= 0xcf:
		n, err := r.uint(1 << (c - 0xcc))
		return wholeNumber(n), err
	case c >= 0xd0 && c <= 0xd3:
		size := 1 << (c - 0xd0)
		n, err := r.uint(size)
		shift := 64 - 8*size
		return int64(n<<shift) >> shift, err
	case c >= 0xd9 && c <= 0xdb:
		return r.sized(1<<(c-0xd9), func(n uint64) (any, error) { return r.text(n) })
	case c == 0xdc || c == 0xdd:
		return r.sized(2<<(c-0xdc), func(n uint64) (any, error) { return r.array(n, level) })
	case c == 0xde || c == 0xdf:
		return r.sized(2<<(c-0xde), func(n uint64) (any, error) { return r.mapping(n, level) })
	}
	return nil, errProfile
}

func wholeNumber(n uint64) any {
	if n > math.MaxInt64 {
		return n
	}
	return int64(n)
}

func (r *reader) sized(n int, then func(uint64) (any, error)) (any, error) {
	size, err := r.uint(n)
	if err != nil {
		return nil, err
	}
	return then(size)
}

func (r *reader) float(size int) (any, error) {
	bits, err := r.uint(size)
	f := math.Float64frombits(bits)
	if size == 4 {
		f = float64(math.Float32frombits(uint32(bits)))
	}
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, err
	}
	return f, nil
}

func (r *reader) text(n uint64) (any, error) {
	b, err := r.take(int(n))
	if err != nil || !utf8.Valid(b) {
		return nil, errProfile
	}
	return string(b), nil
}

func (r *reader) array(n uint64, level int) (any, error) {
	if level++; level > maxLevels {
		return nil, errProfile
	}
	items := []any{}
	for ; n > 0; n-- {
		v, err := r.value(level)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
	return items, nil
}

func (r *reader) mapping(n uint64, level int) (any, error) {
	if level++; level > maxLevels {
		return nil, errProfile
	}
	o := object{}
	err := r.members(n, level, func(k string, v any) { o = append(o, member{k, v}) })
	return o, err
}

// members reads n pairs and hands over each as soon as it is complete.
func (r *reader) members(n uint64, level int, each func(key string, v any)) error {
	for ; n > 0; n-- {
		k, err := r.value(level)
		if err != nil {
			return err
		}
		key, ok := k.(string)
		if !ok {
			return errProfile
		}
		v, err := r.value(level)
		if err != nil {
			return err
		}
		each(key, v)
	}
	return nil
}

// appendValue appends v. Where an encoding has several size classes, wide chooses among n of them,
// smallest first; nil means the smallest.
func appendValue(dst []byte, v any, wide func(n int) int) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, 0xc0)
	case bool:
		if v {
			return append(dst, 0xc3)
		}
		return append(dst, 0xc2)
	case encoded:
		return append(dst, v...)
	case string:
		return append(appendHead(dst, len(v), []head{{31, 0xa0, 0}, {255, 0xd9, 1}, {65535, 0xda, 2}, {math.MaxUint32, 0xdb, 4}}, wide), v...)
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(v))
	case float32:
		return binary.BigEndian.AppendUint32(append(dst, 0xca), math.Float32bits(v))
	case int:
		return appendInt(dst, int64(v), wide)
	case int64:
		return appendInt(dst, v, wide)
	case uint64:
		return binary.BigEndian.AppendUint64(append(dst, 0xcf), v)
	case []any:
		dst = appendHead(dst, len(v), []head{{15, 0x90, 0}, {65535, 0xdc, 2}, {math.MaxUint32, 0xdd, 4}}, wide)
		for _, e := range v {
			dst = appendValue(dst, e, wide)
		}
		return dst
	case object:
		dst = appendHead(dst, len(v), []head{{15, 0x80, 0}, {65535, 0xde, 2}, {math.MaxUint32, 0xdf, 4}}, wide)
		for _, m := range v {
			dst = appendValue(appendValue(dst, m.key, wide), m.val, wide)
		}
		return dst
	}
	panic("no encoding for this type")
}

// head is one size class of a length: up to max, written as first (plus the length when size is 0)
// and size bytes.
type head struct {
	max   uint64
	first byte
	size  int
}

func appendHead(dst []byte, n int, classes []head, wide func(int) int) []byte {
	for uint64(n) > classes[0].max {
		classes = classes[1:]
	}
	c := classes[0]
	if wide != nil {
		c = classes[wide(len(classes))]
	}
	if c.size == 0 {
		return append(dst, c.first|byte(n))
	}
	return appendBig(append(dst, c.first), uint64(n), c.size)
}

func appendBig(dst []byte, n uint64, size int) []byte {
	for shift := 8 * (size - 1); shift >= 0; shift -= 8 {
		dst = append(dst, byte(n>>shift))
	}
	return dst
}

// appendInt appends n in a class that holds it; the smallest one is unsigned when n is not
// negative.
func appendInt(dst []byte, n int64, wide func(int) int) []byte {
	type class struct {
		lo, hi int64
		first  byte
		size   int
	}
	all := []class{
		{0, 127, 0, 0}, {-32, -1, 0, 0}, {0, math.MaxUint8, 0xcc, 1}, {math.MinInt8, math.MaxInt8, 0xd0, 1},
		{0, math.MaxUint16, 0xcd, 2}, {math.MinInt16, math.MaxInt16, 0xd1, 2}, {0, math.MaxUint32, 0xce, 4},
		{math.MinInt32, math.MaxInt32, 0xd2, 4}, {0, math.MaxInt64, 0xcf, 8}, {math.MinInt64, math.MaxInt64, 0xd3, 8},
	}
	var fit []class
	for _, c := range all {
		if n >= c.lo && n <= c.hi {
			fit = append(fit, c)
		}
	}
	c := fit[0]
	if wide != nil {
		c = fit[wide(len(fit))]
	}
	if c.size == 0 {
		return append(dst, byte(n))
	}
	return appendBig(append(dst, c.first), uint64(n), c.size)
}
