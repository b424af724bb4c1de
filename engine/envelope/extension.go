package envelope

// extension is an _ext to be.
type extension struct {
	parts []extPart
	odd   []byte // an encoding that stands in its place
}

// extPart is one entry of _ext.
type extPart struct {
	entry   pair
	members []pair // what it holds; nil: entry.raw
}

// put adds a member to a part.
func (x *extension) put(where string, p pair) {
	for i := range x.parts {
		if part := &x.parts[i]; part.members != nil && part.entry.name == where {
			part.members = append(part.members, p)
			return
		}
	}
	x.parts = append(x.parts, extPart{pair{name: where}, []pair{p}})
}

// restore takes over what travelled as a member of the other shape's _ext.
func (x *extension) restore(form Form, v Value) {
	if v.Kind != Map {
		x.odd = v.Raw
		return
	}
	for it := openMap(form, v.Raw); ; {
		spelled, _, part, ok := it.next()
		if !ok {
			return
		}
		x.parts = append(x.parts, extPart{entry: pair{spelled: spelled, raw: part.Raw}})
	}
}

// encode returns the encoding, nil if there is nothing in it.
func (x *extension) encode(form Form) []byte {
	if len(x.parts) == 0 {
		return x.odd
	}
	list := make([]pair, len(x.parts))
	for i := range x.parts {
		part := &x.parts[i]
		if list[i] = part.entry; part.members != nil {
			name := encodeText(nil, form, part.entry.name)
			if list[i].spelled = name; form == JSON {
				list[i].spelled = name[1 : len(name)-1]
			}
			list[i].raw = appendMap(nil, form, part.members)
		}
	}
	return appendMap(nil, form, list)
}
