package mpack

import (
	"encoding/binary"
	"math"
)

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
