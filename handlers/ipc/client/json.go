package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/wire"
)

// EncodeJSON returns the MessagePack of one JSON value. Key order is kept; numbers without fraction or exponent that fit 64
// bits become integers, all others float64; nesting is bounded by wire.MaxMsgpackDepth. AppendJSON gives the same text back
// up to white space and the spelling of floats.
func EncodeJSON(text []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	out, err := encodeNext(nil, dec, 1)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("cannot parse JSON: unexpected end")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot parse JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("cannot parse JSON: more than one value")
	}
	return out, nil
}

func encodeNext(dst []byte, dec *json.Decoder, depth int) ([]byte, error) {
	tok, err := dec.Token()
	if err != nil {
		return dst, err
	}
	switch v := tok.(type) {
	case json.Delim:
		if depth > wire.MaxMsgpackDepth {
			return dst, fmt.Errorf("nesting exceeds %d levels", wire.MaxMsgpackDepth)
		}
		return encodeContainer(dst, dec, v == '{', depth)
	case string:
		return msgp.AppendString(dst, v), nil
	case json.Number:
		return encodeNumber(dst, string(v))
	case bool:
		return msgp.AppendBool(dst, v), nil
	}
	return msgp.AppendNil(dst), nil
}

// encodeContainer puts the header in front of the elements once their number is known, so that it has the smallest class.
func encodeContainer(dst []byte, dec *json.Decoder, object bool, depth int) ([]byte, error) {
	start := len(dst)
	var n uint32
	var err error
	for ; dec.More(); n++ {
		if object {
			if dst, err = encodeNext(dst, dec, depth); err != nil {
				return dst, err
			}
		}
		if dst, err = encodeNext(dst, dec, depth+1); err != nil {
			return dst, err
		}
	}
	if _, err = dec.Token(); err != nil { // the closing bracket
		return dst, err
	}
	header := msgp.AppendArrayHeader(nil, n)
	if object {
		header = msgp.AppendMapHeader(nil, n)
	}
	return slices.Insert(dst, start, header...), nil
}

// encodeNumber uses the unsigned classes for non-negative values, as servers do (kernel-ipc §3.3).
func encodeNumber(dst []byte, s string) ([]byte, error) {
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		return msgp.AppendUint64(dst, u), nil
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return msgp.AppendInt64(dst, i), nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return dst, fmt.Errorf("number %s is out of range", s)
	}
	return msgp.AppendFloat64(dst, f), nil
}

// AppendJSON appends the JSON text of one MessagePack value, on one line, keys in their order. Floats keep a fraction or
// exponent, also whole ones (10.0), so that they stay floats through EncodeJSON; NaN and infinities become null. Values the
// protocol never sends (bin, ext, keys that are no strings) are errors.
func AppendJSON(dst, value []byte) ([]byte, error) {
	dst, rest, err := appendJSONValue(dst, value, 1)
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%d bytes after the value", len(rest))
	}
	if err != nil {
		return dst, fmt.Errorf("cannot show MessagePack as JSON: %w", err)
	}
	return dst, nil
}

func appendJSONValue(dst, b []byte, depth int) (out, rest []byte, err error) {
	switch t := msgp.NextType(b); t {
	case msgp.MapType, msgp.ArrayType:
		if depth > wire.MaxMsgpackDepth {
			return dst, b, fmt.Errorf("nesting exceeds %d levels", wire.MaxMsgpackDepth)
		}
		if t == msgp.MapType {
			return appendJSONObject(dst, b, depth)
		}
		return appendJSONArray(dst, b, depth)
	case msgp.StrType:
		s, rest, err := msgp.ReadStringZC(b)
		return appendJSONString(dst, s), rest, err
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
	case msgp.InvalidType:
		return dst, b, msgp.ErrShortBytes
	default:
		return dst, b, fmt.Errorf("%s has no JSON form", t)
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
		dst = append(appendJSONString(dst, key), ':')
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

func appendJSONString(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range string(s) { // bad UTF-8 comes out as U+FFFD
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r < 0x20 || r == 0x7f:
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[r>>4], hex[r&15])
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}
