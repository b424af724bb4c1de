package sessionstate

import (
	"bytes"

	"trunkline/codec/jsonx"
)

// Apply merges raw, a ds_state value that jsonx accepted, into a copy of s (toolhost §3.6):
//
//	no or false delta, slots   the slots listed, and no others
//	delta true                 sets slots, then removes removed_slots; either may be missing
//	null, {}, none of both     no change
//
// The slots concerned count as written in next. If raw is not valid, why is the text behind
// "invalid ds_state: " and next equals s; else why is "". Nothing of raw is kept. It allocates the
// slots that are set, and the eight words in which changes are noted.
func (s *State) Apply(raw []byte) (next State, why string) { return s.merge(raw, false) }

// ApplySetting is Apply, but a snapshot only sets the slots it lists: the reply of a worker that
// was not shown the state cannot mean to empty it (toolhost §4.9, state "none").
func (s *State) ApplySetting(raw []byte) (next State, why string) { return s.merge(raw, true) }

func (s *State) merge(raw []byte, keep bool) (next State, why string) {
	var in incoming
	if why = in.read(raw); why != "" {
		return *s, why
	}
	remove := in.remove
	if in.replace && !keep {
		for n, a := range s.all() {
			if a != nil {
				remove |= 1 << n
			}
		}
		remove &^= in.set
	}
	if remove|in.set == 0 {
		return *s, ""
	}
	all := *s.all()
	for n := range all {
		switch bit := uint8(1) << n; {
		case remove&bit != 0:
			all[n] = nil
		case in.set&bit != 0:
			all[n] = in.slots[n].artifact()
		}
	}
	next = State{slots: &all, written: s.written | remove | in.set}
	if next.Bytes() > MaxBytes {
		return *s, whyTooLarge
	}
	return next, ""
}

type slotView struct {
	texts [sizeMember]jsonx.Value // strings, or nothing; by the number of the member
	size  int64
}

func (v *slotView) artifact() *held {
	a := &held{Artifact: Artifact{Size: v.size}}
	for i, to := range [sizeMember]*string{&a.Type, &a.Provenance, &a.Content} {
		text, _ := v.texts[i].Text()
		*to = string(text)
	}
	return a
}

// What is wrong with an incoming ds_state, in the order in which it is looked for (toolhost §3.6).
const (
	whyNotObject = "must be an object"
	whyDelta     = "delta must be a boolean"
	whySlots     = "slots must be an object"
	whyRemoved   = "removed_slots must be an array of integers"
	whyTooLarge  = "exceeds 1MB limit"
)

// maxKeyText is how many bytes of a bad slot's name an error shows at most, as of an AID (§3.1).
const maxKeyText = 256

// The members of a state and of an artifact by their place in these lists.
var (
	stateMembers    = [...]string{"delta", "slots", "removed_slots"}
	artifactMembers = [...]string{"type", "provenance", "content_json", "size_bytes"}
)

const sizeMember = 3 // in artifactMembers; the ones before it are texts

// incoming is a ds_state value that was read and judged, but for the size of what it leads to.
type incoming struct {
	replace     bool  // slots not listed are removed
	set, remove uint8 // one bit per slot
	slots       [Slots]slotView
}

// read judges raw and fills in; why is "" if raw is valid. in points into raw.
func (in *incoming) read(raw []byte) (why string) {
	var m [len(stateMembers)]jsonx.Value
	switch top := jsonx.ValueOf(raw); top.Kind {
	case jsonx.Null:
		return ""
	case jsonx.ObjectStart:
		jsonx.Pick(top.Raw, stateMembers[:], m[:])
	default:
		return whyNotObject
	}
	delta, slots, removed := m[0], m[1], m[2]
	if delta.Kind != jsonx.End && delta.Kind != jsonx.True && delta.Kind != jsonx.False {
		return whyDelta
	}
	if slots.Kind != jsonx.End && slots.Kind != jsonx.ObjectStart {
		return whySlots
	}
	remove, outside, ok := slotNumbers(removed)
	if !ok {
		return whyRemoved
	}
	if why = in.readSlots(slots.Raw, outside); why != "" {
		return why
	}
	if delta.Kind == jsonx.True {
		in.remove = remove
	} else {
		in.replace = slots.Kind == jsonx.ObjectStart
	}
	return ""
}

// readSlots judges the members of "slots", and outside, the first number of removed_slots that is
// no slot, between their names and their values: that is the order of the rows in toolhost §3.6.
func (in *incoming) readSlots(raw, outside []byte) (why string) {
	var values [Slots]jsonx.Value
	o := jsonx.OpenObject(raw)
	for key, v, ok := o.Next(); ok; key, v, ok = o.Next() {
		n, ok := slotNumber(key)
		if !ok {
			return badSlot(key)
		}
		values[n] = v
	}
	if outside != nil {
		return badSlot(outside)
	}
	for n, v := range values {
		if v.Kind == jsonx.End {
			continue
		}
		if bad := in.slots[n].read(v); bad != "" {
			return "slot " + string(rune('0'+n)) + ": " + bad
		}
		in.set |= 1 << n
	}
	return ""
}

// read judges one artifact; bad is the name of the first member that is wrong.
func (v *slotView) read(artifact jsonx.Value) (bad string) {
	if artifact.Kind != jsonx.ObjectStart {
		return whyNotObject
	}
	var m [len(artifactMembers)]jsonx.Value
	jsonx.Pick(artifact.Raw, artifactMembers[:], m[:])
	for i := range v.texts {
		if v.texts[i] = m[i]; m[i].Kind != jsonx.End && m[i].Kind != jsonx.String {
			return artifactMembers[i]
		}
	}
	var ok bool
	if v.size, ok = size(m[sizeMember]); !ok {
		return artifactMembers[sizeMember]
	}
	return ""
}

func size(v jsonx.Value) (n int64, ok bool) {
	switch v.Kind {
	case jsonx.End:
		return 0, true
	case jsonx.Number:
		return truncated(v.Raw)
	}
	return 0, false
}

// slotNumbers reads removed_slots, which may be absent. outside is the text of the first number
// that is no slot. 6.0 is no integer here, nor is what int64 cannot hold (toolhost §2.4).
func slotNumbers(v jsonx.Value) (set uint8, outside []byte, ok bool) {
	if v.Kind != jsonx.End && v.Kind != jsonx.ArrayStart {
		return 0, nil, false
	}
	a := jsonx.OpenArray(v.Raw)
	for e, more := a.Next(); more; e, more = a.Next() {
		n, ok := jsonx.ParseInt(e.Raw)
		switch {
		case e.Kind != jsonx.Number || !ok:
			return 0, nil, false
		case n >= 0 && n < Slots:
			set |= 1 << n
		case outside == nil:
			outside = e.Raw
		}
	}
	return set, outside, true
}

func slotNumber(key []byte) (n int, ok bool) {
	var room [4]byte
	if bytes.IndexByte(key, '\\') >= 0 && len(key) == len(`\u0037`) {
		key = jsonx.AppendUnescaped(room[:0], key)
	}
	if len(key) != 1 || key[0] < '0' || key[0] >= '0'+Slots {
		return 0, false
	}
	return int(key[0] - '0'), true
}

// badSlot is the text about a slot that is none; raw is its name, still escaped.
func badSlot(raw []byte) string {
	// Six bytes of an escape give at least one: the first maxKeyText are whole.
	key := jsonx.AppendUnescaped(nil, raw[:min(len(raw), 8*maxKeyText)])
	return `bad slot "` + string(jsonx.Clip(key, maxKeyText)) + `"`
}

const sizeDigits = 16

// truncated returns the number that raw spells, cut towards zero; ok is false above maxSize and
// below 0. It works on the digits: float64 rounds numbers near the limit to beyond it.
func truncated(raw []byte) (n int64, ok bool) {
	raw, negative := bytes.CutPrefix(raw, []byte("-"))
	mantissa, exponent := raw, 0
	if e := bytes.IndexAny(raw, "eE"); e >= 0 {
		mantissa, exponent = raw[:e], exponentOf(raw[e+1:])
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	zeros, size := leadingZeros(whole), len(whole)
	if zeros == size {
		zeros += leadingZeros(fraction)
	}
	if zeros == size+len(fraction) {
		return 0, true // -0 is as good as 0
	}
	before := size - zeros + exponent // how many digits, the first not zero, are before the point
	if negative || before > sizeDigits {
		return 0, false
	}
	for i := zeros; i < zeros+before; i++ {
		n *= 10
		switch {
		case i < size:
			n += int64(whole[i] - '0')
		case i < size+len(fraction):
			n += int64(fraction[i-size] - '0')
		}
	}
	return n, n <= maxSize
}

// exponentOf returns the exponent of text, cut where it exceeds the digits of any line.
func exponentOf(text []byte) (n int) {
	const most = 1 << 30
	for _, c := range bytes.TrimLeft(text, "+-") {
		n = min(10*n+int(c-'0'), most)
	}
	if bytes.HasPrefix(text, []byte("-")) {
		return -n
	}
	return n
}

func leadingZeros(digits []byte) int { return len(digits) - len(bytes.TrimLeft(digits, "0")) }
