package envelope

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
)

// idBytes is how much of an id is generated: 64 bits, written as 16 hexadecimal digits (envelope
// §3.7).
const idBytes = 8

// The prefixes of generated ids (envelope §3.7).
const (
	EnvelopePrefix     = "env_"
	requestPrefix      = "req_"
	sessionPrefix      = "sess_"
	interruptPrefix    = "int_"
	confirmationPrefix = "conf_"
)

// IDSource appends 16 lower-case hexadecimal digits, the generated part of an id (envelope §3.7),
// to dst. It is safe for concurrent use.
type IDSource func(dst []byte) []byte

// RandomID is the IDSource of a running engine: 64 random bits. Ids have to be unique, not secret,
// which the runtime's ChaCha8 generator is more than good for, without a lock or a system call. It
// allocates only to grow dst.
func RandomID(dst []byte) []byte {
	var id [idBytes]byte
	binary.BigEndian.PutUint64(id[:], rand.Uint64())
	return hex.AppendEncode(dst, id[:])
}

// appendDerivedID appends the 16 hexadecimal digits of an id that repeated calls must agree on
// (envelope §3.7): the beginning of the SHA-256 of all arguments as text, joined by NUL. kind is
// "clarification" or "confirmation". It allocates only to grow dst, whose spare room it uses for
// the text.
func appendDerivedID(dst []byte, envelopeID, stage []byte, iteration, stageNumber int64, kind string) []byte {
	start := len(dst)
	dst = append(dst, envelopeID...)
	dst = append(dst, 0)
	dst = append(dst, stage...)
	dst = append(dst, 0)
	dst = strconv.AppendInt(dst, iteration, 10)
	dst = append(dst, 0)
	dst = strconv.AppendInt(dst, stageNumber, 10)
	dst = append(dst, 0)
	dst = append(dst, kind...)
	sum := sha256.Sum256(dst[start:])
	return hex.AppendEncode(dst[:start], sum[:idBytes])
}
