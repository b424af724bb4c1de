package dsstate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"trunkline/codec/jsonx"
)

// EmptyDelta is the delta of a call that changed nothing (toolhost §3.6).
const EmptyDelta = `{"delta":true,"slots":{},"removed_slots":[]}`

// AppendSnapshot appends the whole state to dst as compact JSON, slots ascending, and returns the
// result (toolhost §3.6). It allocates only if dst has no room.
func (s *State) AppendSnapshot(dst []byte) []byte {
	dst = append(dst, `{"slots":{`...)
	for n, a := range s.all() {
		if a != nil {
			dst = appendSlot(dst, n, a)
		}
	}
	return append(dst, `}}`...)
}

// AppendDelta appends to dst, as compact JSON, what leads from before to after (toolhost §3.6).
// after must be a written Clone of before: only slots that were written and differ are sent. It
// allocates only if dst has no room.
func AppendDelta(dst []byte, before, after *State) []byte {
	set, removed := after.changes(before)
	if set|removed == 0 {
		return append(dst, EmptyDelta...)
	}
	dst = append(dst, `{"delta":true,"slots":{`...)
	for n, a := range after.all() {
		if set&(1<<n) != 0 {
			dst = appendSlot(dst, n, a)
		}
	}
	dst = append(dst, `},"removed_slots":[`...)
	for n := range Slots {
		if removed&(1<<n) != 0 {
			dst = append(jsonx.AppendComma(dst), '0'+byte(n))
		}
	}
	return append(dst, `]}`...)
}

// changes returns the slots among the written ones that hold something else than in before, and
// those that hold nothing any more, one bit each.
func (s *State) changes(before *State) (set, removed uint8) {
	if s.written == 0 {
		return 0, 0
	}
	for n, now := range s.all() {
		bit, was := uint8(1)<<n, before.all()[n]
		switch {
		case s.written&bit == 0 || now == was:
		case now == nil:
			removed |= bit
		case was == nil || *now != *was:
			set |= bit
		}
	}
	return set, removed
}

func appendSlot(dst []byte, n int, a *Artifact) []byte {
	dst = append(jsonx.AppendComma(dst), '"', '0'+byte(n))
	dst = append(dst, `":{"type":`...)
	dst = jsonx.AppendString(dst, a.Type)
	dst = append(dst, `,"provenance":`...)
	dst = jsonx.AppendString(dst, a.Provenance)
	dst = append(dst, `,"content_json":`...)
	dst = jsonx.AppendString(dst, a.Content)
	dst = append(dst, `,"size_bytes":`...)
	dst = strconv.AppendInt(dst, a.Size, 10)
	return append(dst, '}')
}

// FNV-1a of 64 bits with its usual prime and an offset basis of its own: equal digests with other
// implementations need it (toolhost §3.6).
const (
	fnvBasis uint64 = 1469598103934665603
	fnvPrime uint64 = 1099511628211
)

// Digest returns the SHA-256 and the fast FNV-1a-64, in hexadecimal (toolhost §3.6), of
// "<n>:<type>:<provenance>:<size_bytes>:<sha256hex(content_json)>|" for each slot that is set,
// ascending. It allocates in proportion to the state and is not for hot paths.
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

func appendDigestLine(dst []byte, n int, a *Artifact) []byte {
	dst = append(dst, '0'+byte(n), ':')
	dst = append(append(dst, a.Type...), ':')
	dst = append(append(dst, a.Provenance...), ':')
	dst = append(strconv.AppendInt(dst, a.Size, 10), ':')
	sum := sha256.Sum256([]byte(a.Content))
	return append(hex.AppendEncode(dst, sum[:]), '|')
}
