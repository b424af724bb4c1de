package dsstate

import (
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

// AppendDelta appends to dst, as compact JSON, what leads from before to after and returns the result (toolhost §3.6). after
// must be a Clone of before that was written to: slots that were not written are not looked at, and of those that were only
// the ones that differ in a member are sent. It allocates only if dst has no room.
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

// appendSlot appends one member of "slots".
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
