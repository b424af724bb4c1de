package envelope

import (
	"bytes"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
)

// The setters change one member. Writing the value that is there keeps its spelling.

// SetText sets a text or time; s is copied.
func (e *Env) SetText(k Key, s []byte) {
	f := &e.f[k]
	if f.kind == String && bytes.Equal(f.text, s) {
		return
	}
	start := len(e.arena)
	e.arena = append(e.arena, s...)
	f.text = e.arena[start:len(e.arena):len(e.arena)]
	start = len(e.arena)
	e.arena = encodeText(e.arena, e.form, f.text)
	e.put(k, String, start)
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
	start := len(e.arena)
	e.arena = appendInt(e.arena, e.form, n)
	e.put(k, Int, start)
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
	start := len(e.arena)
	e.arena = appendBool(e.arena, e.form, v)
	e.put(k, Bool, start)
}

// SetNull sets a member to null.
func (e *Env) SetNull(k Key) {
	f := &e.f[k]
	if f.kind == Null {
		return
	}
	f.text, f.n = nil, 0
	start := len(e.arena)
	e.arena = appendNull(e.arena, e.form)
	e.put(k, Null, start)
}

// setStrings sets a list of strings.
func (e *Env) setStrings(k Key, list [][]byte) {
	start := len(e.arena)
	if e.form == MsgPack {
		e.arena = mpack.AppendArray(e.arena, len(list))
		for _, s := range list {
			e.arena = mpack.AppendStr(e.arena, s)
		}
		e.put(k, List, start)
		return
	}
	b := append(e.arena, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonx.AppendString(b, s)
	}
	e.arena = append(b, ']')
	e.put(k, List, start)
}

// put makes arena[start:] the encoding of a member.
func (e *Env) put(k Key, kind Kind, start int) {
	e.SetRaw(k, kind, e.arena[start:len(e.arena):len(e.arena)])
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
	*f = field{n: infos[k].def, set: f.set || f.raw != nil}
	f.defaults(k)
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
	v := e.Value(k)
	if e.form == MsgPack {
		e.appendElementMsgPack(k, v, raw)
		return
	}
	start := len(e.arena)
	b := append(e.arena, '[')
	if v.Kind == List {
		if inner := bytes.TrimRight(v.Raw[1:len(v.Raw)-1], " \t\r\n"); len(bytes.TrimLeft(inner, " \t\r\n")) > 0 {
			b = append(append(b, inner...), ',')
		}
	}
	e.arena = append(append(b, raw...), ']')
	e.put(k, List, start)
}

func (e *Env) appendElementMsgPack(k Key, v Value, raw []byte) {
	l := mpack.OpenList(v.Raw)
	start := len(e.arena)
	b := mpack.AppendArray(e.arena, l.Len()+1)
	for {
		el, ok := l.Next()
		if !ok {
			break
		}
		b = append(b, el...)
	}
	e.arena = append(b, raw...)
	e.put(k, List, start)
}

// SetMember sets a member of a map member, a missing one counting as empty; the other members are
// copied.
func (e *Env) SetMember(k Key, name string, raw []byte) {
	start := len(e.arena)
	e.arena = e.appendWith(e.arena, e.Value(k), name, raw)
	e.put(k, Map, start)
}

// appendWith appends the map v with one member replaced, or added behind the others. Only the last
// of a repeated name is replaced, as only that one counts, and the others go.
func (e *Env) appendWith(dst []byte, v Value, name string, raw []byte) []byte {
	list, found := e.scratch[:0], -1
	if v.Kind == Map {
		for it := openMap(e.form, v.Raw); ; {
			spelled, key, el, ok := it.next()
			if !ok {
				break
			}
			if string(e.unescape(key)) != name {
				list = append(list, pair{spelled: spelled, raw: el.Raw})
			} else if found < 0 {
				found = len(list)
				list = append(list, pair{spelled: spelled, raw: raw})
			}
		}
	}
	if found < 0 {
		list = append(list, pair{name: name, raw: raw})
	}
	dst = appendMap(dst, e.form, list)
	e.scratch = recycle(list)
	return dst
}

// spell writes a name as members.next gives it.
func (e *Env) spell(name []byte) []byte {
	start := len(e.arena)
	e.arena = encodeText(e.arena, e.form, name)
	s := e.arena[start:len(e.arena):len(e.arena)]
	if e.form == JSON {
		return s[1 : len(s)-1]
	}
	return s
}
