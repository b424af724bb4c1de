package tools

import (
	"bytes"

	"trunkline/codec/jsonx"
)

// args are those members of a tool's input that the tool knows. They point into the input and live as long as it does.
type args struct {
	names  []string
	values []jsonx.Value
}

// pick reads the members with the given names out of input, the checked text of an object, in one pass. The last of repeated
// members counts (toolhost §2.4). It allocates the result only.
func pick(input []byte, names ...string) args {
	a := args{names, make([]jsonx.Value, len(names))}
	members := jsonx.OpenObject(input)
	var scratch [128]byte // room for the longest name with every character spelled \uXXXX
	for {
		key, v, ok := members.Next()
		if !ok {
			return a
		}
		if len(key) > len(scratch) {
			continue
		}
		if bytes.IndexByte(key, '\\') >= 0 {
			key = jsonx.AppendUnescaped(scratch[:0], key)
		}
		if i := a.index(key); i >= 0 {
			a.values[i] = v
		}
	}
}

func (a args) index(name []byte) int {
	for i, n := range a.names {
		if n == string(name) {
			return i
		}
	}
	return -1
}

// value returns the member name; its Kind is jsonx.End if it is absent.
func (a args) value(name string) jsonx.Value {
	if i := a.index([]byte(name)); i >= 0 {
		return a.values[i]
	}
	return jsonx.Value{}
}

// text returns the string name, unescaped; ok is false if there is none.
func (a args) text(name string) (s string, ok bool) { return textOf(a.value(name)) }

// integer returns the integer name, or absent if there is none.
func (a args) integer(name string, absent int64) int64 { return integerOf(a.value(name), absent) }

// boolean returns the boolean name, or absent if there is none.
func (a args) boolean(name string, absent bool) bool {
	switch a.value(name).Kind {
	case jsonx.True:
		return true
	case jsonx.False:
		return false
	}
	return absent
}

// textOf returns the meaning of v if it is a string.
func textOf(v jsonx.Value) (s string, ok bool) {
	if v.Kind != jsonx.String || len(v.Raw) < 2 {
		return "", false
	}
	raw := v.Raw[1 : len(v.Raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), true
	}
	return string(jsonx.AppendUnescaped(make([]byte, 0, len(raw)), raw)), true
}

// integerOf returns the value of v if that is an integer that fits 64 bits, absent otherwise.
func integerOf(v jsonx.Value, absent int64) int64 {
	if v.Kind == jsonx.Number {
		if n, ok := jsonx.Integral(v.Raw); ok {
			return n
		}
	}
	return absent
}
