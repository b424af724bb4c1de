package wire

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
)

// ID is an identifier in binary form.
type ID [16]byte

// ParseID reads an identifier in its 8-4-4-4-12 form, in any case. It does not allocate.
func ParseID(text []byte) (id ID, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return ID{}, false
	}
	at := 0
	for i := 0; i < 36; i++ {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			continue
		}
		high, ok1 := hexDigit(text[i])
		low, ok2 := hexDigit(text[i+1])
		if !ok1 || !ok2 {
			return ID{}, false
		}
		id[at] = high<<4 | low
		at++
		i++
	}
	return id, true
}

func hexDigit(c byte) (n byte, ok bool) {
	switch {
	case c-'0' <= 9:
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// Append appends the identifier in lower case.
func (id ID) Append(dst []byte) []byte {
	dst = hex.AppendEncode(dst, id[:4])
	dst = hex.AppendEncode(append(dst, '-'), id[4:6])
	dst = hex.AppendEncode(append(dst, '-'), id[6:8])
	dst = hex.AppendEncode(append(dst, '-'), id[8:10])
	return hex.AppendEncode(append(dst, '-'), id[10:])
}

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
