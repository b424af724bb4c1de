package dsstate

import "trunkline/codec/jsonx"

// Apply merges raw, the text of a ds_state value that jsonx accepted, into a copy of s and returns the copy (toolhost §3.6):
//
//	delta absent or false, slots present   the slots listed, and no others
//	delta true                             sets slots, then removes removed_slots; either may be missing
//	null, {}, neither of the two members   no change
//
// The slots concerned count as written in next. If raw is not valid, why is the text to stand behind "invalid ds_state: " and
// next equals s; otherwise why is "". s itself never changes and nothing of raw is kept. It allocates the slots that are set, and
// the eight words in which changes are noted.
func (s *State) Apply(raw []byte) (next State, why string) { return s.merge(raw, false) }

// ApplySetting is Apply but for a snapshot, which here only sets the slots it lists and leaves the others as they are: the reply
// of a worker that was not shown the state cannot mean to empty it (toolhost §4.9, state "none").
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

// slotView is an artifact still in the text it was sent in.
type slotView struct {
	texts [sizeMember]jsonx.Value // strings, or nothing; by the number of the member
	size  int64
}

// artifact returns v as an artifact that shares no memory with the text.
func (v *slotView) artifact() *Artifact {
	a := &Artifact{Size: v.size}
	for i, to := range [sizeMember]*string{&a.Type, &a.Provenance, &a.Content} {
		text, _ := v.texts[i].Text()
		*to = string(text)
	}
	return a
}
