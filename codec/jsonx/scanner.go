// Package jsonx reads and writes JSON text by scanning it in place: no tree, no reflection, no
// allocation, the standard library only.
//
//	Check            is this exactly one JSON value? (RFC 8259, valid UTF-8, bounded nesting)
//	Names.Scan       the same, and picks known members in one pass; reports repeated ones
//	Strict           both for documents whose every reader must understand the same
//	Strict.Pick      the same for objects as most programs write them, in a third of the time
//	Canonical        writes JSON in the one form of its meaning into a hash
//	Object, Array    iterate over the members of one container in checked text
//	Pick             the members with some names, in one pass over checked text
//	ValueOf          returns the kind of value of a checked text
//	Walker           pulls tokens out of checked text, with member counts if wanted
//	ParseNumber      reads a number as int64, uint64 or float64; ParseInt is the fast path
//	Integral         reads a number whose value is an integer, however it is spelled
//	AppendUnescaped  undoes the escapes of a string
//	AppendString     writes a string
//	Builder          writes an object, member by member
//
// Text from a peer goes through Check, Scan or Strict first; all the others that read rely on that.
// Given text that was not checked they still neither panic nor loop nor write invalid UTF-8 that
// was not in the text, but what they return is undefined.
//
// Everything is iterative: nesting is a bit stack of MaxDepth bits, so a hostile text costs time
// proportional to its length and no stack. Only Strict and Canonical have scratch memory, which
// grows with the keys of a text.
//
// Out of scope: comments, trailing commas, NaN and Infinity, a leading byte order
// mark, decoding into Go types, which package document does, and but for Strict duplicate-key
// detection beyond the names of a Scan (kernel-ipc forwards payloads byte for byte, so which key
// wins is the reader's business).
package jsonx

// ScanResult is what Scan found out about a text.
type ScanResult uint8

// The results of Scan, in the order in which they are judged: a fault anywhere in the text outranks
// what the root is, and that outranks a repeated name (toolhost §4.3, steps 1 and 2).
const (
	ScanOK        ScanResult = iota
	ScanInvalid              // not one JSON value in UTF-8, or nested too deep (toolhost §2.4)
	ScanNotObject            // valid, and neither an object nor null
	ScanNull                 // the text is null
	ScanDuplicate            // a valid object in which a known name occurs twice, however it is spelled
)

// Absent is the Kind of a Member whose name does not occur.
const Absent = End

// Member is the value of one known name. Its bytes are part of the scanned text.
type Member struct {
	// Kind is ObjectStart, ArrayStart, String, Number, True, False or Null; Absent for a missing
	// name.
	Kind TokenKind
	// Escaped is set for a String with a backslash: its meaning is AppendUnescaped of Raw.
	Escaped bool
	// Plain is set for a String of a Pick that has only printable ASCII characters and no escape.
	Plain bool
	// Raw is what is between the quotes of a String, and the value's bytes for other kinds; nil if
	// Absent.
	Raw []byte
}

// Scan checks the whole of line as Check does and picks the members whose names n knows: out[i] is
// the value of name i. Other members are checked and ignored; nothing nested is picked. It is one
// pass, costs time linear in len(line), and does not allocate or keep line.
//
// out must hold n.Len() members, each zero or from an earlier scan; all are overwritten. With
// ScanDuplicate which is the name that repeats first, and out has the first value of each name, so
// that an answer can still repeat what the request gave (toolhost §3.1). With other failures all
// members are Absent. Except with ScanDuplicate which is -1.
func (n *Names) Scan(line []byte, maxDepth int, out []Member) (r ScanResult, which int) {
	out = clearMembers(out[:len(n.names)])
	i := skipSpace(line, 0)
	if i >= len(line) || line[i] != '{' || maxDepth < 1 {
		return scanRoot(line, maxDepth), -1
	}
	if i = skipSpace(line, i+1); i < len(line) && line[i] == '}' {
		if _, kind := textEnd(line, i+1); kind != Fine {
			return ScanInvalid, -1
		}
		return ScanOK, -1
	}
	return n.scanRest(line, i, maxDepth, out)
}

// ScanBehind is Scan for a line of which the first member was read: its name is first, value is the
// string between its quotes, without escapes, and line[i] is the comma behind it.
func (n *Names) ScanBehind(line []byte, i, first int, value []byte, maxDepth int, out []Member) (r ScanResult, which int) {
	out = clearMembers(out[:len(n.names)])
	out[first] = Member{Kind: String, Raw: value}
	return n.scanRest(line, skipSpace(line, i+1), maxDepth, out)
}

// scanRest is Scan from the name at i on.
func (n *Names) scanRest(line []byte, i, maxDepth int, out []Member) (r ScanResult, which int) {
	i, which, kind := n.scanMembers(line, i, min(maxDepth, MaxDepth)-1, out)
	if kind == Fine {
		_, kind = textEnd(line, i)
	}
	switch {
	case kind != Fine:
		clear(out)
		return ScanInvalid, -1
	case which >= 0:
		return ScanDuplicate, which
	}
	return ScanOK, -1
}

// clearMembers makes all members absent. Most are already: clearing all of them costs more.
func clearMembers(out []Member) []Member {
	for i := range out {
		if out[i].Kind != Absent {
			out[i] = Member{}
		}
	}
	return out
}

// scanRoot judges a text that does not begin as an object.
func scanRoot(line []byte, maxDepth int) ScanResult {
	if !Check(line, maxDepth).OK() {
		return ScanInvalid
	}
	if ValueOf(line).Kind == Null {
		return ScanNull
	}
	return ScanNotObject
}

// scanMembers checks the members of an object from the name at i on and returns the offset behind
// the object. which is the known name that was repeated first, or -1. maxDepth is what the values
// may use.
func (n *Names) scanMembers(b []byte, i, maxDepth int, out []Member) (next, which int, kind Kind) {
	c := checker{b: b, maxDepth: maxDepth}
	which = -1
	for {
		var name int
		if name, i, kind = n.scanName(b, i); kind != Fine {
			return i, which, kind
		}
		value, esc := i, escapes(0)
		if i < len(b) && b[i] == '"' {
			i, esc, kind = scanString(b, i+1)
		} else {
			i, kind = c.run(i)
		}
		if kind != Fine {
			return i, which, kind
		}
		if name >= 0 && !out[name].set(b, value, i, esc != 0) && which < 0 {
			which = name
		}
		if i < len(b) && b[i] <= ' ' {
			i = skipSpace(b, i)
		}
		if i >= len(b) || b[i] != ',' {
			break
		}
		if i++; i < len(b) && b[i] <= ' ' {
			i = skipSpace(b, i)
		}
	}
	if i < len(b) && b[i] == '}' {
		return i + 1, which, Fine
	}
	i, kind = fault(b, i)
	return i, which, kind
}

// set makes m the checked value b[from:to]; false if m has a value already, which stays.
func (m *Member) set(b []byte, from, to int, escaped bool) bool {
	if m.Kind != Absent {
		return false
	}
	m.Kind, m.Escaped = kindAt(b[from]), escaped
	if m.Kind == String {
		from, to = from+1, to-1
	}
	m.Raw = b[from:to:to]
	return true
}

// scanName checks the name at i and its colon. It returns which of the known names it is, -1 for
// another, and the offset of the value.
func (n *Names) scanName(b []byte, i int) (name, next int, kind Kind) {
	if i >= len(b) || b[i] != '"' {
		next, kind = fault(b, i)
		return -1, next, kind
	}
	next, esc, kind := scanString(b, i+1)
	if kind != Fine {
		return -1, next, kind
	}
	if esc != 0 {
		name = n.findEscaped(b[i+1 : next-1])
	} else {
		name = n.find(b, i+1, next-1)
	}
	if next+1 < len(b) && b[next] == ':' && b[next+1] > ' ' { // nearly always: no call
		return name, next + 1, Fine
	}
	next, kind = valueBehind(b, next)
	return name, next, kind
}

// MaxDepth is the deepest nesting that any function of this package follows; a larger limit acts as
// MaxDepth. It is the largest bound of any protocol (512 for envelopes; kernel-ipc D7 uses 128).
const MaxDepth = 512

// nest remembers for each open container whether it is an object: one bit per level, so that the
// state of a scan is a small value on the caller's stack.
type nest struct {
	depth   int
	objects [MaxDepth / 64]uint64
}

// push opens a container; it must not be called at MaxDepth.
func (n *nest) push(object bool) {
	word, bit := &n.objects[uint(n.depth)/64%uint(len(n.objects))], uint64(1)<<(uint(n.depth)%64)
	if object {
		*word |= bit
	} else {
		*word &^= bit
	}
	n.depth++
}

// inObject reports whether the innermost open container is an object; false when none is open.
func (n *nest) inObject() bool {
	if n.depth == 0 {
		return false
	}
	top := uint(n.depth - 1)
	return n.objects[top/64%uint(len(n.objects))]>>(top%64)&1 != 0
}
