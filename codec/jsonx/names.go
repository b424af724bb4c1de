package jsonx

import (
	"encoding/binary"
	"math/bits"
)

// Names is a fixed set of member names that Scan recognizes. It is immutable.
type Names struct {
	names []string
	slots []nameSlot // open addressing; a power of two, at most a quarter of them used
	shift uint       // 64 - log2(len(slots))
}

// nameSlot is one place of the table. The eight bytes of head decide nearly every comparison.
type nameSlot struct {
	head  uint64 // the first eight bytes of the name, zeros behind its end
	name  string
	index int // into names; -1 for an unused place
}

// NewNames returns the set of the given names; their positions are the indexes that Scan uses. A
// name given twice counts under its first position. It allocates: it is for start-up.
func NewNames(names ...string) *Names {
	size := 4 << bits.Len(uint(len(names)))
	n := &Names{
		names: append([]string(nil), names...),
		slots: make([]nameSlot, size),
		shift: uint(64 - bits.TrailingZeros(uint(size))),
	}
	for i := range n.slots {
		n.slots[i].index = -1
	}
	for i, name := range n.names {
		b := []byte(name)
		if n.find(b, 0, len(b)) < 0 {
			n.add(i, name)
		}
	}
	return n
}

// Len returns how many members Scan fills.
func (n *Names) Len() int { return len(n.names) }

// Name returns name i as it was given to NewNames.
func (n *Names) Name(i int) string { return n.names[i] }

func (n *Names) add(index int, name string) {
	b := []byte(name)
	head := headOf(b, 0, len(b))
	k := n.hash(head, len(b))
	for n.slots[k].index >= 0 {
		k = (k + 1) & (len(n.slots) - 1)
	}
	n.slots[k] = nameSlot{head: head, name: name, index: index}
}

// hash returns the place where the search for a name of that head and length begins. The multiplier
// is 2^64 divided by the golden ratio: neighbouring numbers end far apart.
func (n *Names) hash(head uint64, length int) int {
	return int((head + uint64(length)) * 0x9e3779b97f4a7c15 >> (n.shift & 63))
}

// find returns the index of the name b[from:to], -1 if it is not in the set.
func (n *Names) find(b []byte, from, to int) int {
	return n.findHead(headOf(b, from, to), b, from, to)
}

// findHead is find for a name whose head is known.
func (n *Names) findHead(head uint64, b []byte, from, to int) int {
	for k := n.hash(head, to-from); ; k++ {
		s := &n.slots[k&(len(n.slots)-1)]
		if s.index < 0 {
			return -1
		}
		if s.head == head && len(s.name) == to-from && (to-from <= 8 || string(b[from:to]) == s.name) {
			return s.index
		}
	}
}

// headOf returns the first eight bytes of b[from:to] as a word, zeros behind the end. What follows
// the name in b is read with it and masked away: nearly every name has as much behind it.
func headOf(b []byte, from, to int) uint64 {
	length := to - from
	if len(b)-from >= 8 {
		head := binary.LittleEndian.Uint64(b[from:])
		if length < 8 {
			head &= 1<<(uint(length)*8) - 1
		}
		return head
	}
	head := uint64(0)
	for i := to - 1; i >= from; i-- {
		head = head<<8 | uint64(b[i])
	}
	return head
}

// findEscaped is find for the contents of a checked string that has escapes. Hardly any client
// writes a name so: it may take longer, but no longer than len(raw) plus the lengths of all names.
func (n *Names) findEscaped(raw []byte) int {
	for i, name := range n.names {
		if means(raw, name) {
			return i
		}
	}
	return -1
}

// means reports whether raw, the contents of a checked string, unescapes to name.
func means(raw []byte, name string) bool {
	var buf [8]byte
	for len(raw) > 0 {
		c := buf[:1]
		if raw[0] == '\\' {
			c, raw = appendEscape(buf[:0], raw)
		} else {
			c[0], raw = raw[0], raw[1:]
		}
		if len(name) < len(c) || name[:len(c)] != string(c) {
			return false
		}
		name = name[len(c):]
	}
	return name == ""
}
