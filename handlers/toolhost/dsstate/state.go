package dsstate

import (
	"strings"
	"unicode/utf8"
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

func (a *Artifact) bytes() int { return len(a.Type) + len(a.Provenance) + len(a.Content) }

// State is the eight slots (toolhost §3.6). The zero State is empty. Copies share what they hold,
// which never changes: a copy costs two words (toolhost §10). One goroutine at a time may use a
// State; different copies may be used by different goroutines.
type State struct {
	slots   *contents // never changed; nil: all empty
	written uint8     // bit n: slot n was set or removed since Clone
}

type contents [Slots]*Artifact

var nothing contents

func (s *State) all() *contents {
	if s.slots == nil {
		return &nothing
	}
	return s.slots
}

// Get returns what slot holds; ok is false for an empty slot and for a number that is no slot. The
// artifact is lent for reading and stays valid for ever. It does not allocate.
func (s *State) Get(slot int) (a *Artifact, ok bool) {
	if uint(slot) >= Slots {
		return nil, false
	}
	a = s.all()[slot]
	return a, a != nil
}

// Set puts a into slot; a number that is no slot changes nothing. What no reply could carry is
// replaced at once, so that digests and deltas are about the bytes that the caller gets: each byte
// that is not UTF-8 becomes U+FFFD (toolhost §2.5), a size the nearest in 0 to maxSize. It
// allocates.
func (s *State) Set(slot int, a Artifact) {
	if uint(slot) >= Slots {
		return
	}
	s.put(slot, &Artifact{
		Type:       validUTF8(a.Type),
		Provenance: validUTF8(a.Provenance),
		Content:    validUTF8(a.Content),
		Size:       min(max(a.Size, 0), maxSize),
	})
}

// put stores a, nil for none, and notes that the slot was written.
func (s *State) put(slot int, a *Artifact) {
	if s.all()[slot] != a {
		next := *s.all()
		next[slot] = a
		s.slots = &next
	}
	s.written |= 1 << slot
}

// Clone returns a state with the same artifacts for a tool call to write to: none of its slots
// counts as written. It does not allocate.
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
