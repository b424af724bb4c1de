package envelope

import (
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
)

// Form is how an envelope is written; it decides which boundary's rules apply.
type Form uint8

const (
	// JSON is the form of boundary A: commands and HTTP.
	JSON Form = iota
	// MsgPack is the form of boundary B: the services engine and orchestration.
	MsgPack
)

// Shape is one of the two projections of an envelope (envelope §3.1).
type Shape uint8

const (
	// Flat has all members at the top.
	Flat Shape = iota
	// Nested has them in groups.
	Nested
)

// Kind is the type of an encoded value.
type Kind uint8

// The kinds of values. A JSON number is an Int if its value is integral and fits 64 bits, however
// it is spelled; a MessagePack float is a Float.
const (
	Absent Kind = iota
	Null
	Bool
	Int
	Float
	String
	List
	Map
)

// Value is an encoded value: Raw is its whole encoding in the envelope's form, nil for Absent. It
// is lent like the envelope it comes from.
type Value struct {
	Kind Kind
	Raw  []byte
}

// true reports whether v is the boolean true.
func (v Value) true() bool { return v.Kind == Bool && (v.Raw[0] == 't' || v.Raw[0] == 0xc3) }

// members walks an encoded map in either form.
type members struct {
	// spelled is the name as it is written: what stands between the quotes in JSON, the whole
	// encoding in MessagePack. name is the text, which in JSON is the same slice, escapes included.
	spelled, name []byte
	v             Value

	form Form
	j    jsonx.Object
	m    mpack.Pairs
}

// openMap is inlined, so that the iterator is on the caller's stack and not copied.
func openMap(form Form, raw []byte) *members { return new(members).open(form, raw) }

func (it *members) open(form Form, raw []byte) *members {
	if it.form = form; form == JSON {
		it.j = jsonx.OpenObject(raw)
	} else {
		it.m = mpack.OpenMap(raw)
	}
	return it
}

// next moves to the next member.
func (it *members) next() (ok bool) {
	if it.form == JSON {
		var v jsonx.Value
		it.name, v, ok = it.j.Next()
		it.spelled, it.v = it.name, fromJSON(v)
		return ok
	}
	var raw []byte
	it.spelled, it.name, raw, ok = it.m.Next()
	it.v = fromMsgPack(raw)
	return ok
}

// elements walks an encoded list in either form.
type elements struct {
	v    Value
	form Form
	j    jsonx.Array
	m    mpack.List
}

func openList(form Form, raw []byte) *elements { return new(elements).open(form, raw) }

func (it *elements) open(form Form, raw []byte) *elements {
	if it.form = form; form == JSON {
		it.j = jsonx.OpenArray(raw)
	} else {
		it.m = mpack.OpenList(raw)
	}
	return it
}

// next moves to the next element.
func (it *elements) next() (ok bool) {
	if it.form == JSON {
		var v jsonx.Value
		v, ok = it.j.Next()
		it.v = fromJSON(v)
		return ok
	}
	raw, ok := it.m.Next()
	it.v = fromMsgPack(raw)
	return ok
}

func valueOf(form Form, raw []byte) Value {
	if form == JSON {
		return fromJSON(jsonx.ValueOf(raw))
	}
	return fromMsgPack(raw)
}

var jsonKinds = [...]Kind{jsonx.End: Absent, jsonx.ObjectStart: Map, jsonx.ArrayStart: List, jsonx.String: String, jsonx.Number: Float,
	jsonx.True: Bool, jsonx.False: Bool, jsonx.Null: Null}

// fromJSON leaves numbers as Float: integer marks the integral ones, on request.
func fromJSON(v jsonx.Value) Value {
	if v.Raw == nil {
		return Value{}
	}
	return Value{jsonKinds[v.Kind], v.Raw}
}

var msgPackKinds = [...]Kind{mpack.Absent: Absent, mpack.Nil: Null, mpack.Bool: Bool, mpack.Int: Int, mpack.BigUint: Float, mpack.Float: Float,
	mpack.Str: String, mpack.Array: List, mpack.Map: Map}

func fromMsgPack(raw []byte) Value {
	if len(raw) == 0 {
		return Value{}
	}
	switch c := raw[0]; {
	case c < 0xc0:
		return Value{fixKinds[c>>4], raw}
	case c >= 0xe0:
		return Value{Int, raw}
	}
	return Value{msgPackKinds[mpack.KindOf(raw)], raw}
}

// fixKinds holds the kinds of the leads below 0xc0 by their upper half.
var fixKinds = [12]Kind{Int, Int, Int, Int, Int, Int, Int, Int, Map, List, String, String}

// integer returns the value of an integral number that fits 64 bits.
func integer(form Form, v Value) (n int64, ok bool) {
	if form == MsgPack {
		if v.Kind == Int && len(v.Raw) == 1 {
			return int64(int8(v.Raw[0])), true
		}
		return mpack.ReadValue(v.Raw).Int, v.Kind == Int
	}
	if v.Kind != Float {
		return 0, false
	}
	return jsonx.Integral(v.Raw)
}

// The appenders write one value in a form.

func encodeText[T ~string | ~[]byte](dst []byte, form Form, s T) []byte {
	if form == JSON {
		return jsonx.AppendString(dst, s)
	}
	return mpack.AppendStr(dst, s)
}

func appendInt(dst []byte, form Form, n int64) []byte {
	if form == JSON {
		return strconv.AppendInt(dst, n, 10)
	}
	return mpack.AppendInt(dst, n)
}

func appendBool(dst []byte, form Form, v bool) []byte {
	switch {
	case form == MsgPack:
		return mpack.AppendBool(dst, v)
	case v:
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}

func appendNull(dst []byte, form Form) []byte {
	if form == JSON {
		return append(dst, "null"...)
	}
	return mpack.AppendNil(dst)
}
