// Package transcode turns JSON text into MessagePack and back, without a tree in between.
package transcode

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/jsonx"
	"trunkline/codec/wire"
)

var (
	errDepth = errors.New("nesting exceeds " + strconv.Itoa(wire.MaxMsgpackDepth) + " levels")
	errRest  = errors.New("bytes after the value")
)

// AppendJSON appends the JSON text of one MessagePack value, on one line, keys in their order.
// Floats keep a fraction or exponent, also whole ones (10.0), so that they stay floats through
// EncodeJSON; NaN and infinities become null. Values that the protocol never sends (bin, ext, other
// keys) are errors. The text before an error is that of the values before it.
func AppendJSON(dst, value []byte) ([]byte, error) {
	dst, rest, err := appendJSONValue(dst, value, 1)
	if err == nil && len(rest) != 0 {
		err = errRest
	}
	if err != nil {
		return dst, errors.New("cannot show MessagePack as JSON: " + err.Error())
	}
	return dst, nil
}

func appendJSONValue(dst, b []byte, depth int) (out, rest []byte, err error) {
	switch t := msgp.NextType(b); t {
	case msgp.MapType, msgp.ArrayType:
		if depth > wire.MaxMsgpackDepth {
			return dst, b, errDepth
		}
		if t == msgp.MapType {
			return appendJSONObject(dst, b, depth)
		}
		return appendJSONArray(dst, b, depth)
	case msgp.InvalidType:
		return dst, b, msgp.ErrShortBytes
	default:
		if out, rest, err = appendJSONScalar(dst, b, t); err != nil {
			return dst, b, err
		}
		return out, rest, nil
	}
}

func appendJSONScalar(dst, b []byte, t msgp.Type) (out, rest []byte, err error) {
	switch t {
	case msgp.StrType:
		s, rest, err := msgp.ReadStringZC(b)
		return jsonx.AppendString(dst, s), rest, err
	case msgp.IntType:
		i, rest, err := msgp.ReadInt64Bytes(b)
		return strconv.AppendInt(dst, i, 10), rest, err
	case msgp.UintType:
		u, rest, err := msgp.ReadUint64Bytes(b)
		return strconv.AppendUint(dst, u, 10), rest, err
	case msgp.Float64Type, msgp.Float32Type:
		f, rest, err := msgp.ReadFloat64Bytes(b)
		return appendJSONFloat(dst, f), rest, err
	case msgp.BoolType:
		v, rest, err := msgp.ReadBoolBytes(b)
		return strconv.AppendBool(dst, v), rest, err
	case msgp.NilType:
		rest, err := msgp.ReadNilBytes(b)
		return append(dst, "null"...), rest, err
	default:
		return dst, b, errors.New(t.String() + " has no JSON form")
	}
}

func appendJSONObject(dst, b []byte, depth int) (out, rest []byte, err error) {
	n, rest, err := msgp.ReadMapHeaderBytes(b)
	if err != nil {
		return dst, b, err
	}
	dst = append(dst, '{')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		var key []byte
		if key, rest, err = msgp.ReadStringZC(rest); err != nil {
			return dst, b, err
		}
		dst = append(jsonx.AppendString(dst, key), ':')
		if dst, rest, err = appendJSONValue(dst, rest, depth+1); err != nil {
			return dst, b, err
		}
	}
	return append(dst, '}'), rest, nil
}

func appendJSONArray(dst, b []byte, depth int) (out, rest []byte, err error) {
	n, rest, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return dst, b, err
	}
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, rest, err = appendJSONValue(dst, rest, depth+1); err != nil {
			return dst, b, err
		}
	}
	return append(dst, ']'), rest, nil
}

func appendJSONFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	start := len(dst)
	form := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		form = 'e'
	}
	dst = strconv.AppendFloat(dst, f, form, -1, 64)
	if form == 'f' && !bytes.ContainsRune(dst[start:], '.') {
		dst = append(dst, ".0"...)
	}
	return dst
}
