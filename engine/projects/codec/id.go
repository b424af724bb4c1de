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

// hexValues are the values of hexadecimal digits, noHex for any other byte.
var hexValues = func() (values [256]byte) {
	for i := range values {
		values[i] = noHex
	}
	for n := range byte(10) {
		values['0'+n] = n
	}
	for n := range byte(6) {
		values['a'+n], values['A'+n] = 10+n, 10+n
	}
	return values
}()

const noHex = 0xff

// ParseID reads an identifier in its 8-4-4-4-12 form, in any case. It does not allocate.
func ParseID(text []byte) (id ID, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return ID{}, false
	}
	wrong := byte(0)
	for i, at := range pairs {
		high, low := hexValues[text[at]], hexValues[text[at+1]]
		wrong |= high | low
		id[i] = high<<4 | low
	}
	if wrong&0xf0 != 0 {
		return ID{}, false
	}
	return id, true
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
