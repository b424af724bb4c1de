package jsonx

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// maxPicked is the longest spelling of a name that Pick compares, every character as \uXXXX.
const maxPicked = 192

// Pick sets out[i] to the value of member names[i] of object, a checked text; its Kind is End where
// there is none. The last of repeated members counts. It does not allocate.
func Pick(object []byte, names []string, out []Value) {
	clear(out)
	var room [maxPicked]byte
	o := OpenObject(object)
	for key, v, ok := o.Next(); ok; key, v, ok = o.Next() {
		if len(key) > maxPicked {
			continue
		}
		if bytes.IndexByte(key, '\\') >= 0 {
			key = AppendUnescaped(room[:0], key)
		}
		for i, name := range names {
			if name == string(key) {
				out[i] = v
				break
			}
		}
	}
}

// Text returns the meaning of a string: where it has no escapes, the bytes that v points to, else a
// copy. ok is false for any other value.
func (v Value) Text() (text []byte, ok bool) {
	if v.Kind != String || len(v.Raw) < 2 {
		return nil, false
	}
	return Unescape(v.Raw[1 : len(v.Raw)-1]), true
}

// Text returns the meaning of a string as Value.Text does, nil for any other value.
func (m *Member) Text() []byte {
	if m.Kind == String && m.Escaped {
		return Unescape(m.Raw)
	}
	if m.Kind == String {
		return m.Raw
	}
	return nil
}

// Unescape returns the meaning of raw, the contents of a checked string: raw itself where it has no
// escapes, else a copy.
func Unescape(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return AppendUnescaped(make([]byte, 0, len(raw)), raw)
}

// AppendWithout appends object, a checked text, without the members that have one of some names. It
// allocates for keys with escapes, and if dst has no room.
func AppendWithout(dst, object []byte, names ...string) []byte {
	dst = append(dst, '{')
	o := OpenObject(object)
	for key, v, ok := o.Next(); ok; key, v, ok = o.Next() {
		meaning := Unescape(key)
		if slices.ContainsFunc(names, func(name string) bool { return name == string(meaning) }) {
			continue
		}
		dst = append(append(append(AppendComma(dst), '"'), key...), '"', ':')
		dst = append(dst, v.Raw...)
	}
	return append(dst, '}')
}

// Texts returns the strings of an array; ok is false for any other value.
func (v Value) Texts() (list []string, ok bool) {
	if v.Kind != ArrayStart {
		return nil, false
	}
	a := OpenArray(v.Raw)
	for e, more := a.Next(); more; e, more = a.Next() {
		text, ok := e.Text()
		if !ok {
			return nil, false
		}
		list = append(list, string(text))
	}
	return list, true
}

// Clip returns the beginning of text, at most that many bytes and whole characters: what an error
// shows of what a peer sent.
func Clip[T ~string | ~[]byte](text T, most int) T {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
