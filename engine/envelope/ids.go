package envelope

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"time"
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

// Fill sets the identifiers and times that are missing and that the form and shape add, or that
// stood there as null (envelope §3.1, §3.2): new identifiers, and now. It changes nothing else.
func (e *Env) Fill(now time.Time, newID IDSource) {
	adds := e.form == JSON || e.shape == Nested
	e.fillID(EnvelopeID, EnvelopePrefix, adds, newID)
	e.fillID(RequestID, requestPrefix, adds, newID)
	e.fillID(SessionID, sessionPrefix, adds, newID)
	e.fillTime(ReceivedAt, adds, now)
	e.fillTime(CreatedAt, e.shape == Nested, now)
	if e.form == MsgPack && e.shape == Nested && (e.f[RemainingGoals].raw == nil || e.f[GoalCompletionStatus].raw == nil) {
		var g goals // boundary A completes them itself
		g.normalise(e)
		g.store(e)
	}
}

func (e *Env) fillID(k Key, prefix string, add bool, newID IDSource) {
	if f := &e.f[k]; f.raw == nil && (add || f.null) {
		e.NewID(k, prefix, newID)
	}
}

func (e *Env) fillTime(k Key, add bool, now time.Time) {
	if f := &e.f[k]; f.raw == nil && (add || f.null) {
		e.setTime(k, now)
	}
}

// NewID gives the envelope a new identifier.
func (e *Env) NewID(k Key, prefix string, newID IDSource) {
	var buf [24]byte
	e.SetText(k, newID(append(buf[:0], prefix...)))
}

// dropLeftovers forgets the members of an error object that an earlier reply left in the envelope
// (envelope §3.2).
func (e *Env) dropLeftovers() {
	var isError, hasCode bool
	var found []*member
	for i := range e.top {
		m := &e.top[i]
		if m.key != noKey || m.grp != noGroup {
			continue
		}
		switch string(e.unescape(m.spelled)) {
		case "error":
			isError, found = valueOf(e.form, m.raw).true(), append(found, m)
		case "code":
			hasCode, found = valueOf(e.form, m.raw).Kind == String, append(found, m)
		case "message":
			found = append(found, m)
		}
	}
	if isError && hasCode {
		for _, m := range found {
			m.key = dropped
		}
	}
}
