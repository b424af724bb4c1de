package envelope

// extension is an _ext to be.
type extension struct {
	names nameSet
	parts []extPart
	plain []pair // entries that are no maps
	odd   []byte // an encoding that stands in place of all
}

// extPart is one entry of _ext.
type extPart struct {
	name    []byte
	members []pair
}

// put adds a member to a part.
func (x *extension) put(where []byte, p pair) {
	at := x.names.add(where)
	if at < 0 {
		at = len(x.parts)
		x.parts = append(x.parts, extPart{name: where})
	}
	x.parts[at].members = append(x.parts[at].members, p)
}

// restore takes over what travelled as a member of the other shape's _ext.
func (x *crossing) restore(v Value) {
	if v.Kind != Map {
		x.ext.odd = v.Raw
		return
	}
	for it := openMap(x.form, v.Raw); ; {
		spelled, where, part, ok := it.next()
		if !ok {
			return
		}
		if part.Kind != Map {
			x.ext.plain = append(x.ext.plain, pair{spelled: spelled, raw: part.Raw})
			continue
		}
		where = x.unescape(where)
		for in := openMap(x.form, part.Raw); ; {
			spelled, _, el, ok := in.next()
			if !ok {
				break
			}
			x.ext.put(where, pair{spelled: spelled, raw: el.Raw})
		}
	}
}

// encode returns the encoding, nil if there is nothing in it.
func (x *extension) encode(form Form) []byte {
	list := x.plain
	for i := range x.parts {
		part := &x.parts[i]
		name := encodeText(nil, form, part.name)
		if form == JSON {
			name = name[1 : len(name)-1]
		}
		list = append(list, pair{spelled: name, raw: appendMap(nil, form, part.members)})
	}
	if len(list) == 0 {
		return x.odd
	}
	return appendMap(nil, form, list)
}
