package idem

import (
	"crypto/sha256"
	"encoding/binary"
)

// Key names one request: the SHA-256 over scope, tool and the caller's idempotency key (D10).
type Key struct{ Hash [sha256.Size]byte }

// keyRoom is what KeyOf hashes without an allocation: scope, aid and key of 256 bytes each
// (toolhost §6).
const keyRoom = 1024

// KeyOf returns the Key of a principal's scope, a tool's aid and an idempotency key: that of their
// name. It keeps nothing and does not allocate for up to 1,012 bytes in all.
func KeyOf(scope, aid, key []byte) Key {
	var room [keyRoom]byte
	return Key{sha256.Sum256(AppendName(room[:0], scope, aid, key))}
}

// AppendName appends a scope, an aid and a key, each behind its length, so that no two triples have
// one name. It allocates only if dst has no room.
func AppendName(dst, scope, aid, key []byte) []byte {
	return appendSized(appendSized(appendSized(dst, scope), aid), key)
}

func appendSized(dst, part []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(part))), part...)
}

// shard returns the number of the shard of k: its own first bytes are as good as any hash of them.
func (k *Key) shard() uint64 { return binary.LittleEndian.Uint64(k.Hash[:]) }
