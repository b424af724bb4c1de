package envelope

import (
	"bytes"
	"time"
)

// The setters change one member. Writing the value that is there keeps its spelling.

// SetText sets a text or time; s is copied.
func (e *Env) SetText(k Key, s []byte) {
	f := &e.f[k]
	if f.kind == String && bytes.Equal(f.text, s) {
		return
	}
	f.text = e.keep(append(e.arena, s...))
	e.SetRaw(k, String, e.keep(encodeText(e.arena, e.form, f.text)))
}

// setTime sets a time, spelled as envelope §3.6 has the server write it.
func (e *Env) setTime(k Key, t time.Time) {
	var buf [40]byte
	e.SetText(k, appendTime(buf[:0], t))
}

// SetInt sets a counter.
func (e *Env) SetInt(k Key, n int64) {
	f := &e.f[k]
	if f.raw != nil && f.n == n && f.kind != Null {
		return
	}
	f.n = n
	e.SetRaw(k, Int, e.keep(appendInt(e.arena, e.form, n)))
}

// SetBool sets a flag.
func (e *Env) SetBool(k Key, v bool) {
	f := &e.f[k]
	if f.kind == Bool && (f.n != 0) == v {
		return
	}
	f.n = 0
	if v {
		f.n = 1
	}
	e.SetRaw(k, Bool, e.keep(appendBool(e.arena, e.form, v)))
}

// SetNull sets a member to null.
func (e *Env) SetNull(k Key) {
	f := &e.f[k]
	if f.kind == Null {
		return
	}
	f.text, f.n = nil, 0
	e.SetRaw(k, Null, e.keep(appendNull(e.arena, e.form)))
}

func (e *Env) setStrings(k Key, list [][]byte) {
	e.SetRaw(k, List, e.keep(appendTexts(e.arena, e.form, list)))
}

// keep makes grown, which is arena and more, the arena, and returns what was appended.
func (e *Env) keep(grown []byte) []byte {
	start := len(e.arena)
	e.arena = grown
	return grown[start:len(grown):len(grown)]
}

// SetRaw makes raw, which is kept and not copied, the encoding of a member that is not a text,
// time, counter or flag.
func (e *Env) SetRaw(k Key, kind Kind, raw []byte) {
	f := &e.f[k]
	f.raw, f.kind, f.set = raw, kind, true
}

// Remove takes a member away; where the shape adds it when missing, its default stands there.
func (e *Env) Remove(k Key) {
	f := &e.f[k]
	*f = field{n: infos[k].def, text: infos[k].defText, set: f.set || f.raw != nil}
}

// setReason sets terminal_reason in the spelling of the boundary and shape; NoReason is null in the
// flat shape and absent in the nested one (envelope §3.4).
func (e *Env) setReason(r Reason) {
	switch {
	case r == NoReason && e.shape == Nested:
		e.Remove(TerminalReason)
	case r == NoReason:
		e.SetNull(TerminalReason)
	case e.f[TerminalReason].kind == String && e.Reason() == r && r != OtherReason:
	case e.form == JSON && e.shape == Flat:
		e.SetText(TerminalReason, []byte(r.Exchange()))
	default:
		e.SetText(TerminalReason, []byte(r.Wire()))
	}
}

// appendElement appends an encoded element to a list; a missing one counts as empty.
func (e *Env) appendElement(k Key, raw []byte) {
	list, n := openList(e.form, e.Value(k).Raw), 0
	for list.next() {
		n++
	}
	b := openWritten(e.arena, e.form, List, n+1)
	list = openList(e.form, e.Value(k).Raw)
	for i := range n {
		list.next()
		b = append(separate(b, e.form, i), list.v.Raw...)
	}
	b = append(separate(b, e.form, n), raw...)
	e.SetRaw(k, List, e.keep(closeWritten(b, e.form, List)))
}

// SetMember sets a member of a map member, a missing one counting as empty, or takes it out for
// nil. A repeated name stands once afterwards, at the place of the first.
func (e *Env) SetMember(k Key, name string, raw []byte) {
	list, found := e.scratch[:0], raw == nil
	it := openMap(e.form, e.Value(k).Raw)
	for it.next() {
		if string(e.unescape(it.name)) != name {
			list = append(list, pair{spelled: it.spelled, raw: it.v.Raw})
		} else if !found {
			found = true
			list = append(list, pair{spelled: it.spelled, raw: raw})
		}
	}
	if !found {
		list = append(list, pair{name: name, raw: raw})
	}
	e.setMap(k, list)
	e.scratch = recycle(list)
}

func (e *Env) setMap(k Key, list []pair) {
	e.SetRaw(k, Map, e.keep(appendMap(e.arena, e.form, list)))
}

// spell writes a name as members.next gives it.
func (e *Env) spell(name []byte) []byte {
	s := e.keep(encodeText(e.arena, e.form, name))
	if e.form == JSON {
		return s[1 : len(s)-1]
	}
	return s
}

// SetCompleted notes that a stage succeeded: it joins completed_stage_set and leaves failed_stages
// (envelope §5.2).
func (e *Env) SetCompleted(stage string) {
	e.addName(CompletedStageSet, stage)
	if e.Get(e.Value(FailedStages).Raw, stage).Kind != Absent {
		e.SetMember(FailedStages, stage, nil)
	}
}

// SetFailed notes that a stage failed, and why (envelope D31).
func (e *Env) SetFailed(stage string, why []byte) {
	e.SetMember(FailedStages, stage, e.keep(encodeText(e.arena, e.form, why)))
}

// addName adds a name to a set, in the way the set is written: a new one as the shape has it, a map
// in the flat shape and a list in the nested one.
func (e *Env) addName(k Key, name string) {
	v := e.Value(k)
	if v.Kind == List || v.Kind != Map && e.shape == Nested {
		if v.Kind == List && e.hasText(v, name) {
			return
		}
		e.appendElement(k, e.keep(encodeText(e.arena, e.form, name)))
		return
	}
	if e.Get(v.Raw, name).true() {
		return
	}
	e.SetMember(k, name, appendBool(nil, e.form, true))
}

func (e *Env) hasText(list Value, name string) bool {
	it := openList(e.form, list.Raw)
	for it.next() {
		if s, ok := e.Str(it.v); ok && string(s) == name {
			return true
		}
	}
	return false
}
