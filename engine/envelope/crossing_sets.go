package envelope

import "trunkline/codec/mpack"

// setAsList writes a set that is a map as the list of its names, without the false ones.
func (x *crossing) setAsList(k Key) {
	v := x.Value(k)
	if v.Kind != Map {
		return
	}
	var names nameSet
	var spelled [][]byte
	var within []bool
	for it := openMap(x.form, v.Raw); ; {
		s, name, el, ok := it.next()
		if !ok {
			break
		}
		if at := names.add(x.unescape(name)); at >= 0 {
			within[at] = el.True() // the last one counts
		} else {
			spelled, within = append(spelled, s), append(within, el.True())
		}
	}
	kept := spelled[:0]
	for i, s := range spelled {
		if within[i] {
			kept = append(kept, s)
		}
	}
	x.f[k] = field{raw: encodeSpelled(x.form, kept), kind: List}
}

// encodeSpelled encodes a list of strings spelled as members.next gives names.
func encodeSpelled(form Form, list [][]byte) (b []byte) {
	if form == MsgPack {
		b = mpack.AppendArray(b, len(list))
		for _, s := range list {
			b = append(b, s...)
		}
		return b
	}
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), s...), '"')
	}
	return append(b, ']')
}

// setAsMap writes a set that is a list as the map of its names.
func (x *crossing) setAsMap(k Key) {
	v := x.Value(k)
	if v.Kind != List {
		return
	}
	var names nameSet
	var list []pair
	yes := appendBool(nil, x.form, true)
	for it := openList(x.form, v.Raw); ; {
		el, ok := it.next()
		if !ok {
			break
		}
		if names.add(x.textOf(el)) >= 0 {
			continue
		}
		spelled := el.Raw
		if x.form == JSON {
			spelled = spelled[1 : len(spelled)-1]
		}
		list = append(list, pair{spelled: spelled, raw: yes})
	}
	x.f[k] = field{raw: appendMap(nil, x.form, list), kind: Map}
}
