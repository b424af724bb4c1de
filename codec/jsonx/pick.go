package jsonx

import (
	"bytes"
	"encoding/binary"
	"math/bits"
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

// maxPickedDigits is how many digits a number has at most that Pick takes.
const maxPickedDigits = 16

// Pick picks the members of the object whose bracket is at i in text, as Scan does, if the object
// is written as most programs write it: only names that n knows, each at most once and without
// escapes, at most one space behind each colon and comma, numbers that are a few digits. It returns
// the offset behind the object. What it takes keeps the rules of Strict and is nested in at most
// maxDepth open containers. Where ok is false the object may be valid or not: a Scan has to read
// it. It costs about a third of a Scan.
func (s *Strict) Pick(n *Names, text []byte, i, maxDepth int, out []Member) (next int, ok bool) {
	return s.pick(n, text, i, maxDepth, out, nil)
}

// Inside is a member whose own members are picked too, if it is an object that Pick takes.
type Inside struct {
	At    int // of the names of the object around it
	Names *Names
	Out   []Member // Names.Len() of them
	OK    bool     // they were picked
}

// PickInside is Pick, and picks the members of in in the same pass. Without them, OK is not set.
func (s *Strict) PickInside(n *Names, text []byte, i, maxDepth int, out []Member, in *Inside) (next int, ok bool) {
	in.OK = false
	return s.pick(n, text, i, maxDepth, out, in)
}

func (s *Strict) pick(n *Names, text []byte, i, maxDepth int, out []Member, in *Inside) (next int, ok bool) {
	out = clearMembers(out[:n.Len()])
	if i >= len(text) || text[i] != '{' || maxDepth < 1 {
		return i, false
	}
	name := -1
	for i++; ; {
		if i >= len(text) || text[i] != '"' {
			return i, false
		}
		// Most clients write the names in their order.
		end := 0
		if name++; name < len(n.names) && hasName(text[i+1:], n.names[name]) {
			end = i + 1 + len(n.names[name])
		} else {
			end = plainRun(text, i+1)
			name = n.find(text, i+1, end)
		}
		if end+2 >= len(text) || text[end] != '"' || text[end+1] != ':' {
			return i, false
		}
		if i = end + 2; text[i] == ' ' {
			i++
		}
		if name < 0 || out[name].Kind != Absent {
			return i, false
		}
		if in != nil && name == in.At {
			i, ok = s.pickInside(text, i, maxDepth-1, &out[name], in)
		} else {
			i, ok = s.pickValue(text, i, maxDepth-1, &out[name])
		}
		if !ok || i >= len(text) {
			return i, false
		}
		switch text[i] {
		case '}':
			return i + 1, true
		case ',':
		default:
			return i, false
		}
		if i++; i < len(text) && text[i] == ' ' {
			i++
		}
	}
}

// pickInside takes the value at i, and its members if it is an object that Pick takes.
func (s *Strict) pickInside(text []byte, i, maxDepth int, m *Member, in *Inside) (next int, ok bool) {
	if next, in.OK = s.pick(in.Names, text, i, maxDepth, in.Out, nil); in.OK {
		m.set(text, i, next, false)
		return next, true
	}
	return s.pickValue(text, i, maxDepth, m)
}

// hasName reports whether a text begins with a name and a quote.
func hasName(text []byte, name string) bool {
	return len(text) > len(name) && text[len(name)] == '"' && string(text[:len(name)]) == name
}

// pickValue takes the value at i.
func (s *Strict) pickValue(b []byte, i, maxDepth int, m *Member) (next int, ok bool) {
	if i >= len(b) {
		return i, false
	}
	switch c := b[i]; c {
	case '"':
		next = printableRun(b, i+1)
		if next < len(b) && b[next] == '"' {
			m.Kind, m.Plain, m.Raw = String, true, b[i+1:next:next]
			return next + 1, true
		}
		next, esc, kind := scanString(b, i+1)
		if kind != Fine || esc&unicodeEscape != 0 {
			return i, false
		}
		m.Kind, m.Escaped, m.Raw = String, esc != 0, b[i+1:next-1:next-1]
		return next, true
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		next = i + 1
		for next < len(b) && b[next]-'0' <= 9 {
			next++
		}
		if next-i > maxPickedDigits || c == '0' && next-i > 1 {
			return i, false
		}
		m.Kind, m.Raw = Number, b[i:next:next]
		return next, true
	case 't', 'f', 'n':
		if next, kind := checkScalar(b, i); kind == Fine {
			m.set(b, i, next, false)
			return next, true
		}
	case '{', '[':
		s.start(b)
		s.problem, s.nest.depth, s.limit = Problem{}, 0, min(max(maxDepth, 0), MaxDepth)
		s.keys, s.base, s.names, s.known = s.keys[:0], 0, nil, -1
		next, kind := s.run(b, i)
		s.release()
		if kind == Fine && s.problem.Kind == Fine {
			m.set(b, i, next, false)
			return next, true
		}
	}
	return i, false
}

// printableRun returns the offset of the first byte at or after i that is no printable ASCII
// character, or a quote or a backslash; or len(b).
func printableRun(b []byte, i int) int {
	for len(b)-i >= 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		if m := markSpecial(w) | (w^ones*0x7f-ones)&highs; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(b) && !special(b[i]) && b[i] != 0x7f {
		i++
	}
	return i
}
