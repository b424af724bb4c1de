package dsstate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// FNV-1a of 64 bits with its usual prime and an offset basis of its own: equal digests with other
// implementations need it (toolhost §3.6).
const (
	fnvBasis uint64 = 1469598103934665603
	fnvPrime uint64 = 1099511628211
)

// Digest returns two digests of the state in lower-case hexadecimal (toolhost §3.6): SHA-256 and the fast FNV-1a-64, both over
// "<n>:<type>:<provenance>:<size_bytes>:<sha256hex(content_json)>|" for each slot that is set, ascending. Equal states have
// equal digests. It allocates in proportion to the state and is not for hot paths.
func (s *State) Digest() (sha [64]byte, fast [16]byte) {
	var text []byte
	for n, a := range s.all() {
		if a != nil {
			text = appendDigestLine(text, n, a)
		}
	}
	sum := sha256.Sum256(text)
	hex.Encode(sha[:], sum[:])
	h := fnvBasis
	for _, c := range text {
		h = (h ^ uint64(c)) * fnvPrime
	}
	var word [8]byte
	binary.BigEndian.PutUint64(word[:], h)
	hex.Encode(fast[:], word[:])
	return sha, fast
}

// appendDigestLine appends what one slot contributes.
func appendDigestLine(dst []byte, n int, a *Artifact) []byte {
	dst = append(dst, '0'+byte(n), ':')
	dst = append(append(dst, a.Type...), ':')
	dst = append(append(dst, a.Provenance...), ':')
	dst = append(strconv.AppendInt(dst, a.Size, 10), ':')
	sum := sha256.Sum256([]byte(a.Content))
	return append(hex.AppendEncode(dst, sum[:]), '|')
}
