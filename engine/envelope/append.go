package envelope

import "trunkline/codec/mpack"

// pair is a member about to be written.
type pair struct {
	spelled []byte // the name as members.next gives it; nil: name
	name    string
	raw     []byte
	// outputs and inner mean that what is written is the list of outputs, or a group's members,
	// instead of raw.
	outputs bool
	inner   []pair
	isGroup bool
}

// Append appends the envelope in the shape it came in: the input's members in the input's order
// with what was written over them, then the members that were missing, by the rules of envelope
// §3.1 for its shape and boundary. It allocates only if dst has no room.
func (e *Env) Append(dst []byte) []byte {
	list, inner := e.pairs[:0], e.inner[:0]
	var done [numKeys]bool
	var have [numGroups]bool
	for i := range e.top {
		m := &e.top[i]
		switch {
		case m.key == dropped:
		case m.grp < numGroups:
			from := len(inner)
			inner = e.planGroup(inner, m.grp)
			have[m.grp] = true
			list = append(list, pair{spelled: m.spelled, inner: inner[from:len(inner):len(inner)], isGroup: true})
		case m.key == noKey:
			list = append(list, pair{spelled: m.spelled, raw: m.raw})
		case e.shape == Flat || e.f[m.key].raw != nil:
			list = append(list, pair{spelled: m.spelled, raw: e.shown(m.key), outputs: m.key == Outputs && e.outputsSet})
			done[m.key] = m.key != LoopFeedback || !e.newerFeedback || e.form == MsgPack
		}
	}
	for _, k := range e.added() {
		list = e.addMissing(list, k, &done, true)
	}
	for k := Key(0); e.shape == Flat && k < numKeys; k++ {
		list = e.addMissing(list, k, &done, false)
	}
	for g := group(0); e.shape == Nested && g < numGroups; g++ {
		if !have[g] {
			from := len(inner)
			inner = e.planGroup(inner, g)
			list = append(list, pair{name: groupNames[g], inner: inner[from:len(inner):len(inner)], isGroup: true})
		}
	}
	dst = e.write(dst, list)
	e.pairs, e.inner = recycle(list), recycle(inner)
	return dst
}

// added lists what the top of the shape gets added when missing, in this order.
func (e *Env) added() []Key {
	switch {
	case e.shape == Nested:
		return nestedAdded[:]
	case e.form == MsgPack:
		return flatAdded[:]
	}
	return allFlat[:]
}

// addMissing adds a member that is not in list yet; one without a value only if always.
func (e *Env) addMissing(list []pair, k Key, done *[numKeys]bool, always bool) []pair {
	set := k == Outputs && e.outputsSet
	if done[k] || e.f[k].raw == nil && !set && (!always || hasNoDefault(k)) {
		return list
	}
	done[k] = true
	return append(list, pair{name: k.name(Flat), raw: e.shown(k), outputs: set})
}

// hasNoDefault marks the members that nothing stands for when they are missing: the identifiers and
// times that Fill sets.
func hasNoDefault(k Key) bool {
	i := &infos[k]
	return (i.class == identifier || i.class == moment) && i.defText == nil
}

// shown returns a member as a reply shows it where it has to.
func (e *Env) shown(k Key) []byte {
	if raw := e.f[k].raw; raw != nil {
		return raw
	}
	return defaults[e.form][k]
}

// planGroup lists a group's members: the input's, then the missing ones.
func (e *Env) planGroup(list []pair, g group) []pair {
	var done [numKeys]bool
	for i := range e.groups[g] {
		m := &e.groups[g][i]
		switch {
		case m.key == dropped:
		case m.key == noKey:
			list = append(list, pair{spelled: m.spelled, raw: m.raw})
		case e.f[m.key].raw != nil:
			done[m.key] = true
			if !e.omitted(m.key) {
				list = append(list, pair{spelled: m.spelled, raw: e.f[m.key].raw})
			}
		}
	}
	for _, k := range nestedKeys[g] {
		if done[k] || e.omitted(k) {
			continue
		}
		list = append(list, pair{name: k.name(Nested), raw: e.shown(k)})
	}
	return list
}

// omitted reports whether the nested shape leaves a member out: one that would be shown empty, and
// the reason of a wait.
func (e *Env) omitted(k Key) bool {
	f := &e.f[k]
	if !infos[k].omitEmpty {
		return f.raw == nil && hasNoDefault(k)
	}
	switch f.kind {
	case Absent, Null:
		return true
	case String:
		if k == TerminalReason && !e.Bool(Terminated) && e.Reason().waits() {
			return true
		}
		return len(f.text) == 0
	case Map, List:
		return k != Interrupt && isEmpty(e.form, f.raw)
	}
	return false
}

func isEmpty(form Form, raw []byte) bool {
	list, m := openList(form, raw), openMap(form, raw)
	return !list.next() && !m.next()
}

func (e *Env) write(dst []byte, list []pair) []byte {
	dst = openWritten(dst, e.form, Map, len(list))
	for i := range list {
		p := &list[i]
		dst = appendName(dst, e.form, i, p)
		switch {
		case p.isGroup:
			dst = appendMap(dst, e.form, p.inner)
		case p.outputs:
			dst = e.appendOutputs(dst)
		default:
			dst = append(dst, p.raw...)
		}
	}
	return closeWritten(dst, e.form, Map)
}

func appendMap(dst []byte, form Form, list []pair) []byte {
	dst = openWritten(dst, form, Map, len(list))
	for i := range list {
		dst = append(appendName(dst, form, i, &list[i]), list[i].raw...)
	}
	return closeWritten(dst, form, Map)
}

func appendTexts[T ~string | ~[]byte](dst []byte, form Form, list []T) []byte {
	dst = openWritten(dst, form, List, len(list))
	for i, s := range list {
		dst = encodeText(separate(dst, form, i), form, s)
	}
	return closeWritten(dst, form, List)
}

// openWritten appends what a List or Map of n members begins with.
func openWritten(dst []byte, form Form, kind Kind, n int) []byte {
	switch {
	case form == MsgPack && kind == Map:
		return mpack.AppendMap(dst, n)
	case form == MsgPack:
		return mpack.AppendArray(dst, n)
	case kind == Map:
		return append(dst, '{')
	}
	return append(dst, '[')
}

func closeWritten(dst []byte, form Form, kind Kind) []byte {
	switch {
	case form == MsgPack:
		return dst
	case kind == Map:
		return append(dst, '}')
	}
	return append(dst, ']')
}

// separate appends what stands before the i-th member of a list or map.
func separate(dst []byte, form Form, i int) []byte {
	if form == JSON && i > 0 {
		return append(dst, ',')
	}
	return dst
}

// appendName appends the i-th name of a map and what separates it from its value.
func appendName(dst []byte, form Form, i int, p *pair) []byte {
	if form == MsgPack {
		if p.spelled != nil {
			return append(dst, p.spelled...)
		}
		return mpack.AppendStr(dst, p.name)
	}
	dst = append(separate(dst, form, i), '"')
	if p.spelled != nil {
		dst = append(dst, p.spelled...)
	} else {
		dst = append(dst, p.name...)
	}
	return append(dst, '"', ':')
}

// defaults holds the encodings that missing members get, all in one piece of memory.
var defaults = encodeDefaults()

func encodeDefaults() (table [2][numKeys][]byte) {
	var b [1024]byte
	all := b[:0]
	for _, form := range [...]Form{JSON, MsgPack} {
		for k := range numKeys {
			start := len(all)
			all = appendDefault(all, form, k)
			table[form][k] = all[start:len(all):len(all)]
		}
	}
	return table
}

func appendDefault(dst []byte, form Form, k Key) []byte {
	i := &infos[k]
	switch i.class {
	case text, identifier, moment:
		return encodeText(dst, form, i.defText)
	case counter, wideCounter:
		return appendInt(dst, form, i.def)
	case flag:
		return appendBool(dst, form, false)
	case texts, objects:
		return appendTexts[string](dst, form, nil)
	case nullText, nullMoment, nullFlag, nullMap:
		return appendNull(dst, form)
	}
	return appendMap(dst, form, nil)
}
