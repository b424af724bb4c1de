package envelope

// extKey is the top-level member in which each shape carries what only the other one has a place for (envelope §3.1). In the flat
// shape it holds {group: {member: value}}, and under topPart members of the nested shape's top that the flat one would misread. In
// the nested shape it holds under flatPart the flat members that no group and no interrupt can hold. What of a shape's own _ext has
// no place in the other one is such a member itself.
const (
	extKey   = "_ext"
	topPart  = "top"
	flatPart = "flat"
)

// AppendAs appends the envelope in shape s; in its own shape it is Append. Crossing over keeps the value of every known member:
// flat, nested and flat again is the same envelope (envelope §3.1). Sets of stages become lists and maps, false entries aside;
// the reason is spelled as form and shape have it (§3.4); the flat questions and the interrupt become each other, and what one
// interrupt cannot hold travels under _ext. Members nobody knows stay where they are, or travel under _ext where the other shape
// reads something into their name.
//
// Identifiers and times that are missing stay missing; the nested shape needs an envelope_id: call FillAs before. AppendAs
// allocates; e is as it was afterwards.
func (e *Env) AppendAs(dst []byte, s Shape) []byte {
	if s == e.shape {
		return e.Append(dst)
	}
	f, top, groups, shape, newer, mark := e.f, e.top, e.groups, e.shape, e.newerFeedback, len(e.arena)
	e.groups = [numGroups][]member{}
	x := crossing{Env: e, from: top, fromGroups: groups}
	if s == Nested {
		x.toNested()
	} else {
		x.toFlat()
	}
	e.top = x.addExt()
	e.shape, e.newerFeedback = s, false
	dst = e.Append(dst)
	e.f, e.top, e.groups, e.shape, e.newerFeedback, e.arena = f, top, groups, shape, newer, e.arena[:mark]
	return dst
}

// crossing is an envelope on its way from one shape to the other: its members are rearranged as if it had been read in the other
// shape, for the one writer there is.
type crossing struct {
	*Env
	from       []member
	fromGroups [numGroups][]member
	to         []member
	ext        extension
}

func (x *crossing) toNested() {
	x.crossTop(func(name []byte) (part string, stays bool) {
		n := findName(name) // an old one that does not count, or a group's
		return flatPart, !n.flat && !n.top
	})
	x.setAsList(ActiveStages)
	x.setAsList(CompletedStageSet)
	var asked questions
	for _, k := range flatOnly {
		asked[k] = x.f[k]
	}
	x.makeInterrupt()
	x.respell(Nested)
	told := x.tell()
	for _, k := range flatOnly {
		if was := asked[k]; was.raw != nil && !x.same(k, &was, &told[k]) {
			x.ext.put([]byte(flatPart), pair{name: infos[k].flat, raw: was.raw})
		}
	}
}

func (x *crossing) toFlat() {
	told := x.tell()
	for _, k := range flatOnly {
		if k == TerminalReason || told[k].raw != nil {
			x.f[k] = told[k]
		}
	}
	x.respell(Flat)
	x.crossTop(func(name []byte) (part string, stays bool) {
		return topPart, !findName(name).flat
	})
	for g := range numGroups {
		for i := range x.fromGroups[g] {
			if m := &x.fromGroups[g][i]; m.key == noKey {
				x.ext.put([]byte(groupNames[g]), pair{spelled: m.spelled, raw: m.raw})
			}
		}
	}
	x.setAsMap(ActiveStages)
	x.setAsMap(CompletedStageSet)
}

// crossTop takes the members over that nobody knows; where tells the part of _ext for those that cannot stay.
func (x *crossing) crossTop(where func(name []byte) (part string, stays bool)) {
	var ext Value
	for i := range x.from {
		m := &x.from[i]
		if m.key != noKey || m.grp < numGroups {
			continue
		}
		name := x.unescape(nameOf(x.form, m.spelled))
		if string(name) == extKey {
			ext = valueOf(x.form, m.raw) // the last one counts
		} else if part, stays := where(name); stays {
			x.to = append(x.to, *m)
		} else {
			x.ext.put([]byte(part), pair{spelled: m.spelled, raw: m.raw})
		}
	}
	part, _ := where([]byte(extKey))
	x.readExt(ext, part)
}

// readExt gives the members of the other shape's _ext their places; what has none stays together in a part of the new one.
func (x *crossing) readExt(v Value, own string) {
	rest := extension{odd: v.Raw}
	if v.Kind == Map {
		rest.odd = nil
		for it := openMap(x.form, v.Raw); ; {
			spelled, where, part, ok := it.next()
			if !ok {
				break
			}
			if part.Kind == Map {
				x.readPart(x.unescape(where), part, &rest)
			} else {
				rest.plain = append(rest.plain, pair{spelled: spelled, raw: part.Raw})
			}
		}
	}
	if raw := rest.encode(x.form); raw != nil {
		x.ext.put([]byte(own), pair{name: extKey, raw: raw})
	}
}

func (x *crossing) readPart(where []byte, part Value, rest *extension) {
	for it := openMap(x.form, part.Raw); ; {
		spelled, name, v, ok := it.next()
		if !ok {
			return
		}
		if !x.place(string(where), member{spelled: spelled, raw: v.Raw, key: noKey, grp: noGroup}, x.unescape(name), v) {
			rest.put(where, pair{spelled: spelled, raw: v.Raw})
		}
	}
}

// place puts a member where it belongs in the shape that is made, unless it would pass for something else there.
func (x *crossing) place(where string, m member, name []byte, v Value) bool {
	home := topPart
	if x.shape == Nested { // making the flat one
		home = flatPart
	}
	switch {
	case where == home && string(name) == extKey:
		x.restore(v)
		return true
	case where == flatPart && home == flatPart:
		return x.placeFlat(m, name, v)
	case home == flatPart:
		return false
	case where == topPart:
		if findName(name).top {
			return false
		}
		x.to = append(x.to, m)
		return true
	}
	return x.placeInGroup(where, m, name)
}

func (x *crossing) placeInGroup(where string, m member, name []byte) bool {
	for g := range numGroups {
		if groupNames[g] != where {
			continue
		}
		if findName(name).in == g {
			return false
		}
		x.groups[g] = append(x.groups[g], m)
		return true
	}
	return false
}

func (x *crossing) placeFlat(m member, name []byte, v Value) bool {
	n := findName(name)
	switch {
	case !n.flat:
		if !n.top || n.group == identity && v.Kind != Null {
			return false
		}
	case n.old(): // which does not count beside the other
		if x.f[n.key].raw == nil {
			return false
		}
	default:
		return isFlatOnly(n.key) && x.accept(n.key, v)
	}
	x.to = append(x.to, m)
	return true
}

// accept makes v a member's value if it may be one.
func (x *crossing) accept(k Key, v Value) bool {
	old := x.f[k]
	x.f[k] = field{raw: v.Raw, kind: v.Kind}
	if v.Kind == Null && infos[k].class != flag || v.Kind != Null && x.checkValue(k, v) == "" {
		return true
	}
	x.f[k] = old
	return false
}

// addExt returns the members of the shape's top with _ext among them if there is something in it.
func (x *crossing) addExt() []member {
	raw := x.ext.encode(x.form)
	if raw == nil {
		return x.to
	}
	return append(x.to, member{spelled: x.spell([]byte(extKey)), raw: raw, key: noKey, grp: noGroup})
}
