package envelope

import (
	"bytes"

	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
)

// Decode reads an envelope of either shape. src is JSON text that passed jsonx.Check or MessagePack
// that passed the Scanner. Every known member is checked by the rules of its boundary (envelope
// §3.2, §3.3); a Problem describes what is wrong, and e is then of no use. Decode allocates only
// what e has no room for, and for Problems.
func (e *Env) Decode(form Form, src []byte) *Problem {
	e.reset(form)
	return e.decode(src)
}

// Reopen is Decode for what Append wrote: it is without the bounds on what a peer may send.
func (e *Env) Reopen(form Form, src []byte) *Problem {
	e.reset(form)
	e.trusted = true
	return e.decode(src)
}

// Bounds on what an envelope may hold beside its known members: each of these is worked with one by
// one, so that a few bytes of a text would cost many of memory. They are far above what people
// send.
const (
	// maxMembers bounds the members that the model does not know, at the top and in groups, and the
	// outputs.
	maxMembers = 16384
	// maxElements bounds stage_order, the goals and their statuses.
	maxElements = 16384
)

const tooManyMembers, tooManyElements = "has more than 16384 members", "has more than 16384 elements"

// count counts a member or output and reports whether there are too many. Known members are few,
// but may be repeated.
func (e *Env) count(known bool) (tooMany bool) {
	if e.total++; !known {
		e.unknown++
	}
	return e.tooMany()
}

func (e *Env) tooMany() bool {
	return !e.trusted && (e.unknown > maxMembers || e.total > 2*maxMembers)
}

func (e *Env) decode(src []byte) *Problem {
	core, p := e.readTop(src)
	if p != nil {
		return p
	}
	if e.shape == Nested {
		return e.decodeNested()
	}
	if !core || e.identity != Absent && e.identity != Null {
		return &Problem{Text: "missing field `identity`"}
	}
	return e.decodeFlat()
}

// readTop lists the members of the outermost map and finds out the shape; core reports whether one
// of the members is there by which a flat envelope is recognised.
func (e *Env) readTop(src []byte) (core bool, p *Problem) {
	whole := valueOf(e.form, src)
	if whole.Kind != Map {
		return false, &Problem{Text: wantMap}
	}
	it := openMap(e.form, whole.Raw)
	for it.next() {
		n := e.meaning(it.name)
		m := member{spelled: it.spelled, raw: it.v.Raw, kind: it.v.Kind, key: noKey, grp: n.group}
		switch {
		case n.group == identity:
			e.identity, e.shape = m.kind, Flat
			if m.kind == Map {
				e.shape = Nested
			}
		case n.old():
			m.old = n.key // which of two names counts is settled once both are known
		case n.flat:
			m.key = n.key
			switch n.key {
			case EnvelopeID, RequestID, RawInput, Outputs, CurrentStage:
				core = true
			}
		}
		if e.count(m.key != noKey || m.grp < numGroups) {
			return false, &Problem{Text: tooManyMembers}
		}
		e.top = append(e.top, m)
	}
	return core, nil
}

// meaning returns what a name as members.next gives it means.
func (e *Env) meaning(name []byte) *knownName {
	return findName(e.unescape(name))
}

func (e *Env) decodeFlat() *Problem {
	for i := range e.top {
		m := &e.top[i]
		m.grp = noGroup // a group's name is ignored here
		if m.key != noKey {
			e.take(e.top, i)
		}
	}
	for i := range e.top {
		if e.top[i].old != 0 {
			e.takeOldName(i)
		}
	}
	return e.check()
}

// takeOldName settles a member that stands under another name of its: it counts if the usual one is
// not there, or null.
func (e *Env) takeOldName(i int) {
	m := &e.top[i]
	if m.kind == Null {
		return
	}
	k, taken := m.old, &e.olderMode
	if k == LoopFeedback {
		taken = &e.newerFeedback
	}
	if f := &e.f[k]; f.raw != nil && !*taken {
		if f.kind != Null {
			return
		}
		if k == ParallelMode {
			e.top[f.at].key, f.raw = noKey, nil // echoed as it is
		}
	}
	m.key, *taken = k, true
	e.take(e.top, i)
}

// take makes member i of a list the one that counts for its key.
func (e *Env) take(list []member, i int) {
	f := &e.f[list[i].key]
	if f.raw != nil {
		list[f.at].key = dropped
	}
	f.raw, f.at, f.kind = list[i].raw, int32(i), list[i].kind
}

func (e *Env) decodeNested() *Problem {
	have, p := e.readGroups()
	if p != nil {
		return p
	}
	for _, g := range [...]group{pipeline, bounds} {
		if !have[g] {
			return &Problem{Field: groupNames[g], Text: missingText}
		}
	}
	if p := e.checkID(); p != nil {
		return p
	}
	return e.check()
}

// readGroups takes the members beside the groups and those in them; of a repeated name the last one
// counts.
func (e *Env) readGroups() (have [numGroups]bool, p *Problem) {
	var at [numGroups]int
	var bad [numGroups]bool
	for i := range e.top {
		m := &e.top[i]
		if m.key != noKey && infos[m.key].group == top {
			m.grp = noGroup
			e.take(e.top, i)
			continue
		}
		m.key = noKey
		if m.grp >= numGroups {
			m.grp = noGroup
			continue
		}
		g := m.grp
		if have[g] || bad[g] {
			e.dropGroup(g, at[g])
		}
		at[g], have[g], bad[g] = i, m.kind == Map, m.kind != Map && m.kind != Null
		switch m.kind {
		case Map:
			if !e.readGroup(g, m.raw) {
				return have, &Problem{Field: groupNames[g], Text: tooManyMembers}
			}
		case Null:
			m.key, m.grp = dropped, noGroup
		}
	}
	for g := range numGroups {
		if bad[g] {
			return have, &Problem{Field: groupNames[g], Text: wantMap}
		}
	}
	return have, nil
}

// dropGroup forgets a group that stands at top[at], because a later one has its name.
func (e *Env) dropGroup(g group, at int) {
	e.top[at].grp, e.top[at].key = noGroup, dropped
	for _, k := range nestedKeys[g] {
		e.f[k] = field{}
	}
	e.groups[g] = e.groups[g][:0]
}

// readGroup lists a group's members; it reports false if there are too many.
func (e *Env) readGroup(g group, raw []byte) bool {
	it := openMap(e.form, raw)
	for it.next() {
		m := member{spelled: it.spelled, raw: it.v.Raw, kind: it.v.Kind, key: noKey, grp: noGroup}
		if n := e.meaning(it.name); n.in == g {
			m.key = n.key
		}
		if e.count(m.key != noKey) {
			return false
		}
		e.groups[g] = append(e.groups[g], m)
		if m.key != noKey {
			e.take(e.groups[g], len(e.groups[g])-1)
		}
	}
	return true
}

// checkID validates the one member that a nested envelope must have.
func (e *Env) checkID() *Problem {
	v := Value{e.f[EnvelopeID].kind, e.f[EnvelopeID].raw}
	switch {
	case v.Kind == Absent || v.Kind == Null:
		return &Problem{Field: e.path(EnvelopeID), Text: missingText}
	case v.Kind == String && len(e.textOf(v)) == 0:
		return &Problem{Field: e.path(EnvelopeID), Text: "cannot be empty"}
	}
	return nil
}

// unescape returns the meaning of a member's name.
func (e *Env) unescape(name []byte) []byte {
	if e.form == MsgPack || bytes.IndexByte(name, '\\') < 0 {
		return name
	}
	return e.keep(jsonx.AppendUnescaped(e.arena, name))
}

func (e *Env) textOf(v Value) []byte {
	if e.form == MsgPack {
		return mpack.ReadValue(v.Raw).Data
	}
	return e.unescape(v.Raw[1 : len(v.Raw)-1])
}

// decodeMembers reads the members of a flat envelope to be, any of which may be missing.
func (e *Env) decodeMembers(src []byte) *Problem {
	e.reset(JSON)
	if _, p := e.readTop(src); p != nil {
		return p
	}
	e.shape = Flat
	if e.identity != Absent && e.identity != Null {
		return &Problem{Field: groupNames[identity], Text: "must not stand in a flat envelope"}
	}
	return e.decodeFlat()
}
