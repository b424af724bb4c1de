package mpack

import "testing"

// TestTuple: the fields of a record are read in their order, and what is wrong stays noted.
func TestTuple(t *testing.T) {
	record := AppendArray(nil, 6)
	record = AppendBool(AppendInt(AppendStr(record, "a"), 7), true)
	record = AppendMap(AppendNil(AppendNil(record)), 0)
	read := func(limit int64) (Tuple, int64) {
		r, p := OpenTuple(record)
		if p != NoProblem {
			t.Fatal(p.Text())
		}
		if text := r.Text(); string(text) != "a" {
			t.Errorf("text %q", text)
		}
		return r, r.Int(0, limit)
	}
	r, n := read(7)
	if n != 7 || !r.Bool() || r.Optional(Str).Data != nil || r.Optional(Map).Kind != Absent || r.Whole() {
		t.Errorf("%d, bad: %v", n, r.Bad)
	}
	if r, _ = read(6); !r.Bad {
		t.Error("a number beyond its bound is taken")
	}
	r, _ = read(7)
	r.Bool()
	r.Raw()
	r.Raw()
	if m := r.Optional(Map); len(m.Data) != 1 || !r.Whole() {
		t.Errorf("map %x, bad: %v", m.Data, r.Bad)
	}
	if r.Raw() != nil || !r.Bad || r.Whole() {
		t.Error("an element behind the last one")
	}
	if r, _ = read(7); r.Optional(Str).Kind != Absent || !r.Bad {
		t.Error("a bool is taken for a text")
	}
	for _, bad := range []string{"", "\x91", "\x90\x90", "\xc4\x00"} {
		if _, p := OpenTuple([]byte(bad)); p == NoProblem {
			t.Errorf("%q is taken", bad)
		}
	}
}
