package jsonx

import (
	"bytes"
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
	raw := v.Raw[1 : len(v.Raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, true
	}
	return AppendUnescaped(make([]byte, 0, len(raw)), raw), true
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
