package envelope

// Decode reads an envelope of either shape. src is JSON text that passed jsonx.Check or MessagePack that passed the Scanner. Every
// known member is checked by the rules of its boundary (envelope §3.2, §3.3); a Problem says what is wrong, and e is then of no
// use. Decode allocates only what e has no room for, and for Problems.
func (e *Env) Decode(form Form, src []byte) *Problem {
	e.reset(form)
	whole := valueOf(form, src)
	if whole.Kind != Map {
		return &Problem{Text: "must be an object"}
	}
	core := e.readTop(whole.Raw)
	if e.shape == Nested {
		return e.decodeNested()
	}
	if !core || e.identity != Absent && e.identity != Null {
		return &Problem{Text: "missing field `identity`"}
	}
	return e.decodeFlat()
}

// readTop lists the members of the outermost map and finds out the shape; core tells whether one of the members is there by which
// a flat envelope is recognised.
func (e *Env) readTop(raw []byte) (core bool) {
	it := openMap(e.form, raw)
	for {
		spelled, name, v, ok := it.next()
		if !ok {
			return core
		}
		name = e.unescape(name)
		m := member{spelled: spelled, raw: v.Raw, key: noKey, grp: noGroup}
		if string(name) == groupNames[identity] {
			e.identity, e.shape = v.Kind, Flat
			if v.Kind == Map {
				e.shape = Nested
			}
		}
		if s, known := flatNames.find(name); known {
			m.key = s.key
			switch s.key {
			case EnvelopeID, RequestID, RawInput, Outputs, CurrentStage:
				core = true
			}
			if newer := string(name) == loopFeedback; newer || string(name) == dagMode {
				m.key, m.grp = noKey, top // which of two names counts is settled once both are known
			}
		} else if s, known := topNames.find(name); known {
			m.grp = s.grp
		}
		e.top = append(e.top, m)
	}
}

func (e *Env) decodeFlat() *Problem {
	for i := range e.top {
		m := &e.top[i]
		if m.grp != top {
			m.grp = noGroup // a group's name means nothing here
		}
		if m.key != noKey {
			e.take(e.top, i)
		}
	}
	for i := range e.top {
		if m := &e.top[i]; m.grp == top {
			m.grp = noGroup
			e.takeOldName(i)
		}
	}
	return e.check()
}

// takeOldName settles a member that stands under another name of its: it counts if the usual one is not there, or null.
func (e *Env) takeOldName(i int) {
	m := &e.top[i]
	if valueOf(e.form, m.raw).Kind == Null {
		return
	}
	k, taken := ParallelMode, &e.olderMode
	if string(e.unescape(nameOf(e.form, m.spelled))) == loopFeedback {
		k, taken = LoopFeedback, &e.newerFeedback
	}
	if f := &e.f[k]; f.raw != nil && !*taken && valueOf(e.form, f.raw).Kind != Null {
		return
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
	f.raw, f.at = list[i].raw, int32(i)
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

// readGroups takes the members beside the groups and those in them; of a repeated name the last one counts.
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
		v := valueOf(e.form, m.raw)
		at[g], have[g], bad[g] = i, v.Kind == Map, v.Kind != Map && v.Kind != Null
		switch v.Kind {
		case Map:
			e.readGroup(g, v.Raw)
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

func (e *Env) readGroup(g group, raw []byte) {
	it := openMap(e.form, raw)
	for {
		spelled, name, v, ok := it.next()
		if !ok {
			return
		}
		m := member{spelled: spelled, raw: v.Raw, key: noKey, grp: noGroup}
		if s, known := groupMembers.find(e.unescape(name)); known && s.grp == g {
			m.key = s.key
		}
		e.groups[g] = append(e.groups[g], m)
		if m.key != noKey {
			e.take(e.groups[g], len(e.groups[g])-1)
		}
	}
}

// checkID judges the one member that a nested envelope must have.
func (e *Env) checkID() *Problem {
	path := groupNames[identity] + "." + infos[EnvelopeID].flat
	v := valueOf(e.form, e.f[EnvelopeID].raw)
	switch {
	case v.Kind == Absent || v.Kind == Null:
		return &Problem{Field: path, Text: missingText}
	case v.Kind == String && len(e.textOf(v)) == 0:
		return &Problem{Field: path, Text: "cannot be empty"}
	}
	return nil
}

// unescape returns the meaning of a member's name.
func (e *Env) unescape(name []byte) (s []byte) {
	if e.form == MsgPack {
		return name
	}
	s, e.arena = unescaped(name, e.arena)
	return s
}

// textOf returns the text of a String value.
func (e *Env) textOf(v Value) (s []byte) {
	s, e.arena = textOf(e.form, v, e.arena)
	return s
}

// nameOf returns the name in the form of members.next from the way it is spelled.
func nameOf(form Form, spelled []byte) []byte {
	if form == JSON {
		return spelled
	}
	s, _ := textOf(MsgPack, Value{String, spelled}, nil)
	return s
}

// decodeMembers reads the members of a flat envelope to be, any of which may be missing.
func (e *Env) decodeMembers(src []byte) *Problem {
	e.reset(JSON)
	whole := valueOf(JSON, src)
	if whole.Kind != Map {
		return &Problem{Text: "must be an object"}
	}
	e.readTop(whole.Raw)
	e.shape = Flat
	return e.decodeFlat()
}
