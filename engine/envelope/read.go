package envelope

// Text returns the text of a member of the text and time classes, without escapes; the default
// where it is missing, nil where that is null.
func (e *Env) Text(k Key) []byte { return e.f[k].text }

// Int returns a counter, its default where it is missing.
func (e *Env) Int(k Key) int64 { return e.f[k].n }

// Bool returns a flag, false where it is missing or null.
func (e *Env) Bool(k Key) bool { return e.f[k].n != 0 }

// Value returns a member as it stands now; for Outputs use the methods of outputs.
func (e *Env) Value(k Key) Value {
	return Value{e.f[k].kind, e.f[k].raw}
}

// strings appends the elements of a list of strings to dst.
func (e *Env) strings(k Key, dst [][]byte) [][]byte {
	return e.textsOf(e.Value(k), dst)
}

// textsOf appends the strings of an encoded list to dst; elements of other types are skipped
// (envelope §3.8).
func (e *Env) textsOf(list Value, dst [][]byte) [][]byte {
	if list.Kind != List {
		return dst
	}
	it := openList(e.form, list.Raw)
	for it.next() {
		if it.v.Kind == String {
			dst = append(dst, e.textOf(it.v))
		}
	}
	return dst
}

// Reason returns why the envelope ended, or why it waits.
func (e *Env) Reason() Reason { return ParseReason(e.f[TerminalReason].text) }

// Get returns a member of an encoded map, the last one where the name is repeated; Absent if there
// is none or raw is no map.
func (e *Env) Get(raw []byte, name string) (v Value) {
	it := openMap(e.form, raw)
	for it.next() {
		if len(it.name) >= len(name) && string(e.unescape(it.name)) == name {
			v = it.v
		}
	}
	return v
}

// Str returns the text of a String without its escapes; ok is false for any other value.
func (e *Env) Str(v Value) (s []byte, ok bool) {
	if v.Kind != String {
		return nil, false
	}
	return e.textOf(v), true
}

// waits reports whether r is the reason of an envelope that waits for its user.
func (r Reason) waits() bool { return r == ClarificationRequired || r == ConfirmationRequired }
