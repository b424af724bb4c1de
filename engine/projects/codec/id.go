package codec

import (
	"crypto/sha1"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
)

// ID is an identifier in binary form.
type ID [16]byte

// pairs are where the bytes of an identifier stand in its text.
var pairs = [len(ID{})]uint8{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34}

// ParseID reads an identifier in its 8-4-4-4-12 form, in any case. It does not allocate.
func ParseID(text []byte) (id ID, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return ID{}, false
	}
	a, wrong1 := unhex(binary.BigEndian.Uint64(text))
	b, wrong2 := unhex(uint64(binary.BigEndian.Uint32(text[9:]))<<32 | uint64(binary.BigEndian.Uint32(text[14:])))
	c, wrong3 := unhex(uint64(binary.BigEndian.Uint32(text[19:]))<<32 | uint64(binary.BigEndian.Uint32(text[24:])))
	d, wrong4 := unhex(binary.BigEndian.Uint64(text[28:]))
	if wrong1|wrong2|wrong3|wrong4 != 0 {
		return ID{}, false
	}
	binary.BigEndian.PutUint64(id[:], a<<32|b)
	binary.BigEndian.PutUint64(id[8:], c<<32|d)
	return id, true
}

// unhex returns the four bytes of eight hexadecimal digits, which are tested in one word; wrong is
// not 0 if one is none.
func unhex(w uint64) (value, wrong uint64) {
	const ones = 0x0101010101010101
	letters := w >> 6 & ones
	n := w&(ones*0x0f) + letters*9
	tens := (n + ones*6) >> 4 & ones
	// What n is written as, in lower case, is not w if w has another character; n is over 15 if
	// that is behind the letters.
	wrong = n&(ones*0xf0) | ((n + ones*'0' + tens*('a'-'0'-10)) ^ (w | letters<<5))
	n = (n | n>>4) & 0x00ff00ff00ff00ff
	n = (n | n>>8) & 0x0000ffff0000ffff
	return (n | n>>16) & 0xffffffff, wrong
}

// Append appends the identifier in lower case.
func (id ID) Append(dst []byte) []byte {
	text := [36]byte{8: '-', 13: '-', 18: '-', 23: '-'}
	for i, at := range pairs {
		text[at], text[at+1] = hexDigits[id[i]>>4], hexDigits[id[i]&15]
	}
	return append(dst, text[:]...)
}

const hexDigits = "0123456789abcdef"

// String returns the identifier in lower case.
func (id ID) String() string { return string(id.Append(nil)) }

// Kind is what an identifier is of (exacta §6.2).
type Kind uint8

// The kinds.
const (
	Session Kind = iota
	Project
	Correlation
	EventID
	Intent
	Plan
	Step
	Execution
	Rollback
	kinds
)

// name returns the kind as it stands in the name of an identifier.
func (k Kind) name() string {
	switch k {
	case Session:
		return "session"
	case Project:
		return "project"
	case Correlation:
		return "correlation"
	case EventID:
		return "event"
	case Intent:
		return "intent"
	case Plan:
		return "plan"
	case Step:
		return "step"
	case Execution:
		return "execution"
	}
	return "rollback"
}

// namespace is that of version 5 (exacta §4.1).
var namespace = ID{0x33, 0xdb, 0x6d, 0x34, 0xe3, 0x06, 0x58, 0xc4, 0x80, 0xa2, 0x97, 0x4d, 0xba, 0xe4, 0xa4, 0xc2}

// version5 returns the identifier of a name.
func version5(name []byte) (id ID) {
	var buf [128]byte
	sum := sha1.Sum(append(append(buf[:0], namespace[:]...), name...))
	copy(id[:], sum[:])
	id[6] = id[6]&0x0f | 0x50
	id[8] = id[8]&0x3f | 0x80
	return id
}

// Scope makes identifiers (exacta §6.2): random ones, or with a seed the same ones in every run.
// Its methods may be called from any goroutine, and do not allocate.
type Scope struct {
	prefix string // seed|scope|; empty: random
	counts [kinds]atomic.Uint64
}

// MaxSeed bounds a seed, in bytes: an identifier is made without an allocation.
const MaxSeed = 32

// NewScope returns a scope; with an empty seed its identifiers are random.
func NewScope(seed, name string) *Scope {
	if seed == "" {
		return new(Scope)
	}
	return &Scope{prefix: seed + "|" + name + "|"}
}

// Next returns a new identifier.
func (s *Scope) Next(k Kind) (id ID) {
	if s.prefix == "" {
		binary.LittleEndian.PutUint64(id[:], rand.Uint64())
		binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		return id
	}
	var buf [112]byte
	name := append(append(append(buf[:0], s.prefix...), k.name()...), '|')
	return version5(strconv.AppendUint(name, s.counts[k].Add(1), 10))
}

// ProjectID returns the identifier of a project. Without a seed it depends on the root alone
// (exacta §4.1).
func (s *Scope) ProjectID(root string) ID {
	if s.prefix == "" {
		return version5([]byte("project|" + root))
	}
	return s.Next(Project)
}
