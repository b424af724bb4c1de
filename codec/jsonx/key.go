package jsonx

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// key is the name of a member. Its head decides nearly every comparison.
type key struct {
	head  uint64 // the first eight bytes of its meaning, little-endian, zeros behind the end
	at    int    // where its contents begin in the text
	plain int    // where its meaning begins in keyring.plain; -1 if the contents are the meaning
	size  int    // of its meaning
}

// keyring knows the meaning of the keys of one text.
type keyring struct {
	text  []byte
	plain []byte // the meanings of the keys that have escapes; never longer than text
}

// start begins a text.
func (r *keyring) start(text []byte) { r.text, r.plain = text, r.plain[:0] }

// set makes k the key whose contents are text[from:to].
func (r *keyring) set(k *key, from, to int, escaped bool) {
	if escaped {
		r.setEscaped(k, from, to)
		return
	}
	k.head, k.at, k.plain, k.size = headOf(r.text, from, to), from, -1, to-from
}

func (r *keyring) setEscaped(k *key, from, to int) {
	plain := len(r.plain)
	r.plain = AppendUnescaped(r.plain, r.text[from:to])
	size := len(r.plain) - plain
	k.head, k.at, k.plain, k.size = headOf(r.plain, plain, plain+size), from, plain, size
}

// meaning returns the bytes of a key without escapes.
func (r *keyring) meaning(k *key) []byte {
	if k.plain >= 0 {
		return r.plain[k.plain : k.plain+k.size]
	}
	return r.text[k.at : k.at+k.size]
}

// same reports whether two keys have one meaning.
func (r *keyring) same(a, b *key) bool {
	return a.head == b.head && a.size == b.size && (a.size <= 8 || bytes.Equal(r.meaning(a), r.meaning(b)))
}

// compare orders keys by the bytes of their meaning, and repeated ones by their place.
func (r *keyring) compare(a, b *key) int {
	if a.head != b.head {
		return cmp.Compare(bits.ReverseBytes64(a.head), bits.ReverseBytes64(b.head))
	}
	if c := bytes.Compare(r.meaning(a), r.meaning(b)); c != 0 {
		return c
	}
	return cmp.Compare(a.at, b.at)
}

// fewKeys is up to how many keys comparing each with each other is faster than a table.
const fewKeys = 16

// distinct finds repeated keys. Its table is scratch memory.
type distinct struct {
	seed   maphash.Seed // random, so that no text can be made whose keys collide
	seeded bool
	places []int32 // open addressing: an index into the keys plus one, 0 for an unused place
}

// repeated returns the index of a key that has the meaning of an earlier one, -1 if there is none.
// It costs time linear in the keys and their bytes.
func (d *distinct) repeated(r *keyring, keys []key) int {
	if len(keys) > fewKeys {
		return d.lookUp(r, keys)
	}
	for i := 1; i < len(keys); i++ {
		for j := range keys[:i] {
			if keys[j].head == keys[i].head && r.same(&keys[j], &keys[i]) {
				return i
			}
		}
	}
	return -1
}

// lookUp is repeated through the table, of which at most half the places are used.
func (d *distinct) lookUp(r *keyring, keys []key) int {
	if !d.seeded {
		d.seed, d.seeded = maphash.MakeSeed(), true
	}
	size := 2 << bits.Len(uint(len(keys)-1))
	if cap(d.places) < size {
		d.places = make([]int32, size)
	}
	places := d.places[:size]
	clear(places)
	for i := range keys {
		k := int(maphash.Bytes(d.seed, r.meaning(&keys[i]))) & (size - 1)
		for ; places[k] != 0; k = (k + 1) & (size - 1) {
			if r.same(&keys[places[k]-1], &keys[i]) {
				return i
			}
		}
		places[k] = int32(i + 1)
	}
	return -1
}

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
