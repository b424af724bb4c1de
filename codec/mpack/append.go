package mpack

import (
	"encoding/binary"
	"math"
)

// AppendStr appends s as a string of the smallest class. s must be valid UTF-8.
func AppendStr[T ~string | ~[]byte](dst []byte, s T) []byte {
	switch n := len(s); {
	case n <= 31:
		dst = append(dst, 0xa0|byte(n))
	case n <= math.MaxUint8:
		dst = append(dst, 0xd9, byte(n))
	case n <= math.MaxUint16:
		dst = append(dst, 0xda, byte(n>>8), byte(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, 0xdb), uint32(n))
	}
	return append(dst, s...)
}

// AppendInt appends v in the smallest class, unsigned when it is not negative.
func AppendInt(dst []byte, v int64) []byte {
	switch {
	case v >= 0:
		return AppendUint(dst, uint64(v))
	case v >= -32:
		return append(dst, byte(v))
	case v >= math.MinInt8:
		return append(dst, 0xd0, byte(v))
	case v >= math.MinInt16:
		return append(dst, 0xd1, byte(v>>8), byte(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, 0xd2), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(v))
}

// AppendUint appends v in the smallest unsigned class.
func AppendUint(dst []byte, v uint64) []byte {
	switch {
	case v <= 0x7f:
		return append(dst, byte(v))
	case v <= math.MaxUint8:
		return append(dst, 0xcc, byte(v))
	case v <= math.MaxUint16:
		return append(dst, 0xcd, byte(v>>8), byte(v))
	case v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xcf), v)
}

// AppendFloat appends v as float64; NaN and the infinities become nil, as the profile reads them.
func AppendFloat(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return AppendNil(dst)
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(v))
}

// AppendBool appends v.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 0xc3)
	}
	return append(dst, 0xc2)
}

// AppendNil appends nil.
func AppendNil(dst []byte) []byte { return append(dst, 0xc0) }

// AppendMap appends the header of a map of n pairs.
func AppendMap(dst []byte, n int) []byte { return appendContainer(dst, n, 0x80, 0xde) }

// AppendArray appends the header of an array of n elements.
func AppendArray(dst []byte, n int) []byte { return appendContainer(dst, n, 0x90, 0xdc) }

// appendContainer appends a header whose small form is fix|n and whose longer forms are wide and
// wide+1.
func appendContainer(dst []byte, n int, fix, wide byte) []byte {
	switch {
	case n <= 15:
		return append(dst, fix|byte(n))
	case n <= math.MaxUint16:
		return append(dst, wide, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, wide+1), uint32(n))
}

// Narrow rewrites the headers of all arrays and maps in b, MessagePack that the Scanner accepted,
// in their smallest class and returns the front of b. A writer that learns the number of members at
// the end puts a wide header first. It is one pass in place and does not allocate. For other bytes
// the result is of no use, but never longer than b.
func Narrow(b []byte) []byte {
	out, run := 0, 0 // b[:out] is done; b[run:i] comes next, as it is
	for i := 0; i < len(b); {
		l := leads[b[i]]
		if l.class != array && l.class != mapping {
			i = Next(b, i)
			continue
		}
		n, content, ok := count(b, i, l)
		if !ok {
			break
		}
		if l.size > 0 {
			out += copy(b[out:], b[run:i])
			if l.class == array {
				out = len(AppendArray(b[:out], n))
			} else {
				out = len(AppendMap(b[:out], n))
			}
			run = content
		}
		i = content
	}
	out += copy(b[out:], b[run:])
	return b[:out]
}

// AppendValue appends the value raw in the profile of server messages (kernel-ipc §3.3): smallest
// classes, float32 as float64, NaN and the infinities as nil. An empty raw is nil. raw must have
// passed the Scanner. It takes time linear in raw and does not allocate if dst has room.
func AppendValue(dst, raw []byte) []byte {
	if len(raw) == 0 {
		return AppendNil(dst)
	}
	for i := 0; i < len(raw); {
		l := leads[raw[i]]
		if l.class == array || l.class == mapping {
			n, content, ok := count(raw, i, l)
			if !ok {
				break
			}
			if l.class == array {
				dst = AppendArray(dst, n)
			} else {
				dst = AppendMap(dst, n)
			}
			i = content
			continue
		}
		end := Next(raw, i)
		dst = appendScalar(dst, raw[i:end])
		i = end
	}
	return dst
}

func appendScalar(dst, raw []byte) []byte {
	switch v := ReadValue(raw); v.Kind {
	case Bool:
		return AppendBool(dst, v.Int != 0)
	case Int:
		return AppendInt(dst, v.Int)
	case BigUint:
		return AppendUint(dst, uint64(v.Int))
	case Str:
		return AppendStr(dst, v.Data)
	case Float:
		if raw[0] == 0xca {
			return AppendFloat(dst, float64(math.Float32frombits(binary.BigEndian.Uint32(raw[1:]))))
		}
		return append(dst, raw...)
	}
	return AppendNil(dst)
}
