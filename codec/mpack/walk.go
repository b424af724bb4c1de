package mpack

// Next returns the offset behind the value at b[i], in MessagePack that the Scanner accepted;
// nothing is checked again. It is len(b) when the value is cut short or i is not in b. However deep
// the value nests, Next needs no stack and does not allocate: it only counts the values that are
// missing.
func Next(b []byte, i int) (next int) {
	for owed := uint64(1); owed > 0; owed-- {
		if uint(i) >= uint(len(b)) {
			return len(b)
		}
		first := b[i]
		switch l := leads[first]; l.class {
		case scalar:
			i += 1 + int(l.size)
		case str:
			if l.size == 0 { // the commonest by far
				i += 1 + int(first&0x1f)
				continue
			}
			_, behind, ok := textAt(b, i)
			if !ok {
				return len(b)
			}
			i = behind
		case array, mapping:
			n, content, ok := count(b, i, l)
			if !ok {
				return len(b)
			}
			if owed += uint64(uint32(n)); l.class == mapping {
				owed += uint64(uint32(n))
			}
			i = content
		default:
			return len(b)
		}
	}
	return min(i, len(b))
}

// textAt returns the text of the string at b[i], without looking into it, and the offset behind it;
// ok is false if no whole string stands there.
func textAt(b []byte, i int) (text []byte, next int, ok bool) {
	if i >= len(b) || leads[b[i]].class != str {
		return nil, i, false
	}
	n, i, ok := count(b, i, leads[b[i]])
	if !ok || n < 0 || n > len(b)-i {
		return nil, i, false
	}
	return b[i : i+n : i+n], i + n, true
}

// ReadValue returns the value at the front of raw as Scanner.ParseFields does: Data is the text of
// a Str, the whole encoding of an Array or Map, and points into raw. raw must have passed the
// Scanner. The Kind is Absent if raw is empty, a scalar or string is cut short, or it is bin or
// ext. It does not allocate.
func ReadValue(raw []byte) (v Value) {
	if len(raw) == 0 {
		return v
	}
	switch l := leads[raw[0]]; l.class {
	case scalar:
		if len(raw) > int(l.size) {
			v.scalar(raw[0], raw[1:1+int(l.size)])
		}
	case str:
		if text, _, ok := textAt(raw, 0); ok {
			v.Kind, v.Data = Str, text
		}
	case array, mapping:
		v.Kind = Map
		if l.class == array {
			v.Kind = Array
		}
		end := Next(raw, 0)
		v.Data = raw[:end:end]
	}
	return v
}

// KindOf returns the Kind that ReadValue(raw) has, without looking for the end of a container.
func KindOf(raw []byte) Kind {
	if len(raw) > 0 {
		switch leads[raw[0]].class {
		case array:
			return Array
		case mapping:
			return Map
		}
	}
	return ReadValue(raw).Kind
}

// members is what is left to iterate over in a container.
type members struct {
	b       []byte
	i       int
	n, left int // members announced and still to come
}

// openMembers starts at the first member of the container of that class at the front of raw.
// Anything else has no members, and neither has a container with fewer bytes than its members need.
func openMembers(raw []byte, want class, least int) members {
	if len(raw) == 0 || leads[raw[0]].class != want {
		return members{}
	}
	n, i, ok := count(raw, 0, leads[raw[0]])
	if !ok || n < 0 || n > (len(raw)-i)/least {
		return members{}
	}
	return members{b: raw, i: i, n: n, left: n}
}

// value returns the encoding of the value that is next, and moves behind it.
func (m *members) value() []byte {
	start := m.i
	m.i = Next(m.b, start)
	return m.b[start:m.i:m.i]
}

// Pairs iterates over the pairs of one encoded map in their order, repeated keys included. It is a
// value: copying it forks the iteration. The zero Pairs is empty.
type Pairs struct{ members members }

// OpenMap returns an iterator over the map whose encoding raw begins with; raw must have passed the
// Scanner. Anything but a map has no pairs. It does not allocate.
func OpenMap(raw []byte) Pairs { return Pairs{openMembers(raw, mapping, 2)} }

// Len returns the number of pairs of the whole map, wherever the iteration is.
func (m *Pairs) Len() int { return m.members.n }

// Next returns the next pair: the key's encoding, the key's text and the value's encoding, all
// pointing into the text of OpenMap. After the last pair ok stays false. It does not allocate.
func (m *Pairs) Next() (rawKey, key, raw []byte, ok bool) {
	s := &m.members
	if s.left == 0 {
		return nil, nil, nil, false
	}
	key, behind, ok := textAt(s.b, s.i)
	if !ok || behind >= len(s.b) {
		s.left = 0
		return nil, nil, nil, false
	}
	rawKey = s.b[s.i:behind:behind]
	s.left--
	s.i = behind
	return rawKey, key, s.value(), true
}

// List iterates over the elements of one encoded array in their order. It is a value: copying it
// forks the iteration. The zero List has no elements.
type List struct{ members members }

// OpenList returns an iterator over the array whose encoding raw begins with; raw must have passed
// the Scanner. Anything but an array has no elements. It does not allocate.
func OpenList(raw []byte) List { return List{openMembers(raw, array, 1)} }

// Len returns the number of elements of the whole array, wherever the iteration is.
func (l *List) Len() int { return l.members.n }

// Next returns the whole encoding of the next element, pointing into what OpenList was given. After
// the last one ok is false, for ever. It does not allocate.
func (l *List) Next() (raw []byte, ok bool) {
	s := &l.members
	if s.left == 0 || s.i >= len(s.b) {
		return nil, false
	}
	s.left--
	return s.value(), true
}

// Problem is what is wrong with a payload's MessagePack; NoProblem is the zero value. It is a plain
// value so that reporting it costs nothing.
type Problem uint8

// The refusals of kernel-ipc §3.3.
const (
	NoProblem Problem = iota
	Truncated
	NeverUsed
	BinOrExt
	KeyNotString
	BadUTF8
	TooDeep
	TrailingBytes
)

var problemTexts = [...]string{
	NoProblem:     "",
	Truncated:     "Invalid msgpack: unexpected end of input",
	NeverUsed:     "Invalid msgpack: byte 0xc1 is never used",
	BinOrExt:      "Invalid msgpack: bin and ext types are not accepted",
	KeyNotString:  "Invalid msgpack: map key is not a string",
	BadUTF8:       "Invalid msgpack: string is not valid UTF-8",
	TooDeep:       "Invalid msgpack: nesting deeper than 512 levels",
	TrailingBytes: "Invalid msgpack: bytes after the top-level value",
}

// Text returns the message a peer gets for the problem. It does not allocate.
func (p Problem) Text() string { return problemTexts[p] }
