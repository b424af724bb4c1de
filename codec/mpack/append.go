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
