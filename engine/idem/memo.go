package idem

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// memoSlots is twice as many places as a table has entries by default: few names share one.
	memoSlots = 2 * DefaultMaxEntries
	// maxRemembered bounds the bytes of one Identity: longer texts are hashed every time.
	maxRemembered = 512
)

// Identity is what the texts of a request are hashed to.
type Identity struct {
	// Key is the Key of the name (KeyOf).
	Key Key
	// Input is the effective input as the caller spelled it, InputHash the hash that Begin gets.
	Input     string
	InputHash [32]byte

	name string
}

// Memo remembers identities, so that a repetition costs a comparison instead of hashes. A later
// name may take the place of an earlier one. The zero Memo is not ready: NewMemo makes one. It is
// safe for concurrent use.
type Memo struct {
	seed  maphash.Seed // random: which names share a place cannot be chosen
	slots [memoSlots]atomic.Pointer[Identity]
}

// NewMemo returns an empty memo.
func NewMemo() *Memo { return &Memo{seed: maphash.MakeSeed()} }

// Find returns the identity that was kept under name, nil if there is none any more. It does not
// allocate.
func (m *Memo) Find(name []byte) *Identity {
	if id := m.slot(name).Load(); id != nil && id.name == string(name) {
		return id
	}
	return nil
}

// Keep remembers what name and input are hashed to, unless they are long. It copies both.
func (m *Memo) Keep(name []byte, k *Key, input []byte, hash *[32]byte) {
	if len(name)+len(input) <= maxRemembered {
		m.slot(name).Store(&Identity{Key: *k, Input: string(input), InputHash: *hash, name: string(name)})
	}
}

func (m *Memo) slot(name []byte) *atomic.Pointer[Identity] {
	return &m.slots[maphash.Bytes(m.seed, name)%memoSlots]
}
