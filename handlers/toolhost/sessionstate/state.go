// Package sessionstate holds the state that a caller and its tools share: eight slots, DS0 to DS7,
// each empty or holding one artifact (toolhost §3.6).
//
//	Snapshot   {"slots":{"<n>":Artifact,...}}
//	Delta      {"delta":true,"slots":{"<n>":Artifact,...},"removed_slots":[n,...]}
//	Artifact   {"type":"...","provenance":"...","content_json":"...","size_bytes":n}
//
//	State         the eight slots: a small value whose artifacts are shared and never change
//	Apply         checks and merges what a peer sent, all or nothing
//	AppendDelta   writes what one tool call changed
//	Digest        distinguishes two states
//
// A tool call works on a Clone. Only the slots that the tool writes are copied; dropping the clone
// undoes the call.
//
// What a peer sends is refused rather than repaired: null is no value of any member, though unknown
// members are passed over. Of repeated members only the last counts and is judged (toolhost §2.4);
// escapes in a name change nothing. Where several things are wrong, the order of the table in §3.6
// decides which is named, then the lower slot and the earlier member.
//
// Out of scope: reading content_json, and versions of a state (toolhost D13).
package sessionstate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"

	"trunkline/codec/jsonx"
)

const (
	// Slots is how many slots a state has; they are numbered from 0 (toolhost §3.6).
	Slots = 8
	// MaxBytes bounds Bytes of a state that a session keeps (toolhost §6). Apply refuses more; Set
	// does not: a tool's result is judged as a whole when the tool is done (toolhost §4.3 step 13).
	MaxBytes = 1 << 20
	// maxSize is the largest size_bytes: the largest integer that every JSON reader holds exactly.
	maxSize = 1<<53 - 1
)

// Artifact is what a slot holds (toolhost §3.6). States share it: one that Get lends is read only.
type Artifact struct {
	// Type is what the artifact is, for example "text" or "file_read".
	Type string
	// Provenance is where it came from.
	Provenance string
	// Content is content_json: opaque text, normally JSON, that is not parsed.
	Content string
	// Size is size_bytes, 0 to maxSize: a number with a meaning only to the tool that set it.
	Size int64
}

// held is an artifact in a slot.
type held struct {
	Artifact
	plain plain
}

// plain has a bit for each text of an artifact that is known to stand as it is between the quotes
// of JSON.
type plain uint8

const (
	plainType plain = 1 << iota
	plainProvenance
	plainContent
)

func (a *Artifact) bytes() int { return len(a.Type) + len(a.Provenance) + len(a.Content) }

// State is the eight slots (toolhost §3.6). The zero State is empty. Copies share what they hold,
// which never changes: a copy costs two words (toolhost §10). One goroutine at a time may use a
// State; different copies may be used by different goroutines.
type State struct {
	slots   *contents // not changed while a state has it; nil: all empty
	room    *Room     // for writes; nil: they allocate
	written uint8     // bit n: slot n was set or removed since Clone
}

type contents [Slots]*held

var nothing contents

func (s *State) all() *contents {
	if s.slots == nil {
		return &nothing
	}
	return s.slots
}

// Get returns what slot holds, to be read only; ok is false for none. It does not allocate.
func (s *State) Get(slot int) (a *Artifact, ok bool) {
	if uint(slot) >= Slots {
		return nil, false
	}
	if h := s.all()[slot]; h != nil {
		return &h.Artifact, true
	}
	return nil, false
}

// Set puts a into slot, if it is one. What no reply could carry is replaced at once, so that
// digests are about what the caller gets: each byte that is not UTF-8 becomes U+FFFD (toolhost
// §2.5), a size the nearest in 0 to maxSize. It allocates.
func (s *State) Set(slot int, a Artifact) {
	if uint(slot) >= Slots {
		return
	}
	was := s.all()[slot]
	if was == nil {
		was = new(held)
	}
	h := s.room.newHeld()
	h.Artifact, h.plain = a, 0
	h.examine(&h.Type, was.Type, was.plain, plainType)
	h.examine(&h.Provenance, was.Provenance, was.plain, plainProvenance)
	h.examine(&h.Content, was.Content, was.plain, plainContent)
	h.Size = min(max(a.Size, 0), maxSize)
	s.put(slot, h)
}

// examine makes a text valid UTF-8 and sets its bit of plain. Tools give a slot the same type and
// provenance again and again: those were examined before.
func (h *held) examine(text *string, was string, wasPlain, bit plain) {
	switch {
	case *text == was:
		h.plain |= wasPlain & bit
	case jsonx.Plain(*text):
		h.plain |= bit
	default:
		*text = validUTF8(*text)
	}
}

// put stores a, nil for none, and notes that the slot was written.
func (s *State) put(slot int, a *held) {
	if s.all()[slot] != a {
		next := s.room.newContents()
		*next = *s.all()
		next[slot] = a
		s.slots = next
	}
	s.written |= 1 << slot
}

// Clone returns s for a tool call to write to: no slot counts as written. It does not allocate.
func (s *State) Clone() State { return State{slots: s.slots} }

// Unwritten reports whether no slot was set or removed since Clone.
func (s *State) Unwritten() bool { return s.written == 0 }

// Bytes returns the bytes of type, provenance and content of all slots. It does not allocate.
func (s *State) Bytes() int {
	n := 0
	for _, a := range s.all() {
		if a != nil {
			n += a.bytes()
		}
	}
	return n
}

// validUTF8 returns s with U+FFFD for each byte that is not UTF-8, as jsonx.AppendString does.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}

// EmptyDelta is the delta of a call that changed nothing (toolhost §3.6).
const EmptyDelta = `{"delta":true,"slots":{},"removed_slots":[]}`

// AppendSnapshot appends the state as compact JSON (toolhost §3.6), without allocations of its own.
func (s *State) AppendSnapshot(dst []byte) []byte {
	dst = append(dst, `{"slots":{`...)
	for n, a := range s.all() {
		if a != nil {
			dst = appendSlot(dst, n, a)
		}
	}
	return append(dst, `}}`...)
}

// AppendDelta appends what leads from before to after (toolhost §3.6), a written Clone of before:
// only written slots that differ are sent. It allocates only if dst has no room.
func AppendDelta(dst []byte, before, after *State) []byte {
	set, removed := after.changes(before)
	if set|removed == 0 {
		return append(dst, EmptyDelta...)
	}
	dst = append(dst, `{"delta":true,"slots":{`...)
	for ; set != 0; set &= set - 1 {
		n := bits.TrailingZeros8(set)
		dst = appendSlot(dst, n, after.slots[n])
	}
	dst = append(dst, `},"removed_slots":[`...)
	for ; removed != 0; removed &= removed - 1 {
		dst = append(jsonx.AppendComma(dst), '0'+byte(bits.TrailingZeros8(removed)))
	}
	return append(dst, `]}`...)
}

// changes returns the written slots that hold something else than in before, and nothing, as bits.
func (s *State) changes(before *State) (set, removed uint8) {
	if s.written == 0 {
		return 0, 0
	}
	all, old := s.all(), before.all()
	for left := s.written; left != 0; left &= left - 1 {
		n := bits.TrailingZeros8(left)
		bit, now, was := uint8(1)<<n, all[n], old[n]
		switch {
		case now == was:
		case now == nil:
			removed |= bit
		case was == nil || now.Artifact != was.Artifact:
			set |= bit
		}
	}
	return set, removed
}

func appendSlot(dst []byte, n int, a *held) []byte {
	dst = append(jsonx.AppendComma(dst), '"', '0'+byte(n))
	dst = append(dst, `":{"type":"`...)
	dst = a.appendText(dst, a.Type, plainType)
	dst = append(dst, `","provenance":"`...)
	dst = a.appendText(dst, a.Provenance, plainProvenance)
	dst = append(dst, `","content_json":"`...)
	dst = a.appendText(dst, a.Content, plainContent)
	dst = append(dst, `","size_bytes":`...)
	dst = strconv.AppendInt(dst, a.Size, 10)
	return append(dst, '}')
}

func (a *held) appendText(dst []byte, text string, bit plain) []byte {
	if a.plain&bit != 0 {
		return append(dst, text...)
	}
	return jsonx.AppendText(dst, text)
}

// FNV-1a of 64 bits with its usual prime and the offset basis of toolhost §3.6.
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

func appendDigestLine(dst []byte, n int, a *held) []byte {
	dst = append(dst, '0'+byte(n), ':')
	dst = append(append(dst, a.Type...), ':')
	dst = append(append(dst, a.Provenance...), ':')
	dst = append(strconv.AppendInt(dst, a.Size, 10), ':')
	sum := sha256.Sum256([]byte(a.Content))
	return append(hex.AppendEncode(dst, sum[:]), '|')
}

// Room is memory for the writes of calls that run one after the other on one state: without it each
// write allocates. It holds what the state before has left behind. The zero Room is empty. It
// belongs to the owner of the state.
type Room struct {
	contents *contents
	held     *held
	// own means that the contents of the state are in no other one; slots has a bit for each slot
	// whose artifact is in no other one either.
	own   bool
	slots uint8
}

// CloneIn is Clone for a call that ends before the next one begins: its writes use r.
func (s *State) CloneIn(r *Room) State { return State{slots: s.slots, room: r} }

// Replace makes after, a clone of s in r, the state in place of s. What only s held, artifacts that
// Get has lent included, is used again.
func (r *Room) Replace(s, after *State) {
	old, now := s.slots, after.slots
	*s = State{slots: now}
	if old == now {
		return
	}
	set := uint8(0)
	for left := after.written; left != 0; left &= left - 1 {
		n, bit := bits.TrailingZeros8(left), left&-left
		if now[n] != nil {
			set |= bit
		}
		if !r.own {
			continue
		}
		if h := old[n]; r.slots&bit != 0 && h != now[n] {
			*h = held{}
			r.held = h
		}
		old[n] = nil // nothing that is out of use is kept alive
	}
	if r.own {
		r.contents = old
	}
	r.own, r.slots = true, r.slots&^after.written|set
}

// Share is to be called before the state is copied for longer than a call, and after it was
// replaced in another way than by Replace.
func (r *Room) Share() { *r = Room{held: r.held} }

// newContents returns contents to be overwritten.
func (r *Room) newContents() *contents {
	if r == nil || r.contents == nil {
		return new(contents)
	}
	c := r.contents
	r.contents = nil
	return c
}

// newHeld returns an artifact to be overwritten.
func (r *Room) newHeld() *held {
	if r == nil || r.held == nil {
		return new(held)
	}
	h := r.held
	r.held = nil
	return h
}
