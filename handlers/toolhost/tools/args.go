package tools

import (
	"slices"
	"strconv"

	"trunkline/codec/jsonx"
)

// args are those members of a tool's input that the tool knows. They point into the input and live
// as long as it does.
type args struct {
	names  []string
	values []jsonx.Value
}

// pick reads the members with the given names out of input, the checked text of an object. The last
// of repeated members counts (toolhost §2.4). It allocates the result only.
func pick(input []byte, names ...string) args {
	a := args{names, make([]jsonx.Value, len(names))}
	jsonx.Pick(input, names, a.values)
	return a
}

// value returns the member name, one of those picked; its Kind is jsonx.End if it is absent.
func (a args) value(name string) jsonx.Value { return a.values[slices.Index(a.names, name)] }

// text returns the string name, unescaped; ok is false if there is none.
func (a args) text(name string) (s string, ok bool) {
	text, ok := a.value(name).Text()
	return string(text), ok
}

// integer returns the integer name, or absent if there is none that fits 64 bits.
func (a args) integer(name string, absent int64) int64 {
	if v := a.value(name); v.Kind == jsonx.Number {
		if n, ok := jsonx.Integral(v.Raw); ok {
			return n
		}
	}
	return absent
}

// clamped returns the integer name brought between low and high, or absent if there is none.
func (a args) clamped(name string, low, high, absent int64) int64 {
	return min(max(a.integer(name, absent), low), high)
}

// positive returns the integer name, at most high; absent stands for none and for those below 1.
func (a args) positive(name string, high, absent int64) int64 {
	if n := a.integer(name, absent); n > 0 {
		return min(n, high)
	}
	return absent
}

// number returns the number name, or absent if there is none in the range of float64.
func (a args) number(name string, absent float64) float64 {
	v := a.value(name)
	if x, err := strconv.ParseFloat(string(v.Raw), 64); err == nil && v.Kind == jsonx.Number {
		return x
	}
	return absent
}

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
