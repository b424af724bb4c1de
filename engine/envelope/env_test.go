package envelope

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestNameSet compares with a map, below and above the number of names that are compared one by
// one.
func TestNameSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s nameSet
		for range 2 { // the second time after reset
			model := map[string]int{}
			list := rapid.SliceOfN(rapid.StringMatching(`[a-f]{0,2}`), 0, 3*fewNames).Draw(t, "names")
			for _, name := range list {
				want, known := model[name]
				if !known {
					want = -1
				}
				if got := s.find([]byte(name)); got != want {
					t.Fatalf("find %q: %d, want %d", name, got, want)
				}
				if got := s.add([]byte(name)); got != want {
					t.Fatalf("add %q: %d, want %d", name, got, want)
				}
				if !known {
					model[name] = len(model)
				}
			}
			if s.reset(); s.find([]byte("a")) != -1 {
				t.Fatal("reset keeps a name")
			}
		}
	})
}

func TestNameSetAtItsLimit(t *testing.T) {
	for _, n := range [...]int{fewNames - 1, fewNames, fewNames + 1, 10 * fewNames} {
		var s nameSet
		for i := range n {
			s.add(fmt.Append(nil, "n", i))
		}
		for i := range n {
			if got := s.find(fmt.Append(nil, "n", i)); got != i {
				t.Errorf("%d names: n%d is at %d", n, i, got)
			}
		}
		if (s.many != nil) != (n > fewNames) {
			t.Errorf("%d names: indexed %v", n, s.many != nil)
		}
	}
}

// manyOf repeats a piece with its number n times, between commas.
func manyOf(n int, piece string) string {
	if !strings.Contains(piece, "%") {
		return strings.Repeat(piece+",", n-1) + piece
	}
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, piece, i, i)
	}
	return b.String()
}

// TestBounds checks what a peer may send at most, and that what was taken over once may be more.
func TestBounds(t *testing.T) {
	f := func(most int, field, want string, text func(n int) string) {
		t.Helper()
		for _, form := range [...]Form{JSON, MsgPack} {
			var e Env
			if p := e.Decode(form, (parts{form, Flat}).bytes(text(most))); p != nil {
				t.Errorf("%v, %d: %s", form, most, p.Message())
			}
			over := (parts{form, Flat}).bytes(text(most + 1))
			if p := e.Decode(form, over); p == nil || p.Field != field || p.Text != want {
				t.Errorf("%v, %d: %+v, want %s %s", form, most+1, p, field, want)
			}
			if p := e.Reopen(form, over); p != nil {
				t.Errorf("%v again, %d: %s", form, most+1, p.Message())
			}
		}
	}
	const flat, nested = `{"envelope_id":"e",`, `{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{},`
	f(maxMembers, "", tooManyMembers, func(n int) string { return flat + manyOf(n, `"x%d":%d`) + `}` })
	f(maxMembers, "", tooManyMembers, func(n int) string { return nested + manyOf(n, `"x%d":%d`) + `}` })
	f(maxMembers, "audit", tooManyMembers, func(n int) string { return nested + `"audit":{` + manyOf(n, `"x%d":%d`) + `}}` })
	f(maxMembers, "outputs", tooManyMembers, func(n int) string { return flat + `"outputs":{` + manyOf(n, `"o%d%d":{}`) + `}}` })
	f(2*maxMembers-1, "", tooManyMembers, func(n int) string { return flat + manyOf(n, `"iteration":1`) + `}` })
	for _, k := range [...]Key{StageOrder, AllGoals, RemainingGoals} {
		f(maxElements, k.String(), tooManyElements, func(n int) string { return flat + `"` + k.String() + `":[` + manyOf(n, `"s%d%d"`) + `]}` })
	}
	f(maxElements, "goal_completion_status", tooManyElements, func(n int) string {
		return flat + `"goal_completion_status":{` + manyOf(n, `"g%d%d":"x"`) + `}}`
	})
}

// keeps shows what of e, down to memory it keeps for later, points into b; "" if nothing does.
func keeps(e *Env, b []byte) (where string) {
	lo := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	in := func(s []byte) bool {
		p := uintptr(unsafe.Pointer(unsafe.SliceData(s)))
		return cap(s) > 0 && p >= lo && p < lo+uintptr(len(b))
	}
	for k := range numKeys {
		if in(e.f[k].raw) || in(e.f[k].text) {
			return "field " + k.String()
		}
	}
	lists := append([][]member{e.top}, e.groups[:]...)
	for _, list := range lists {
		for _, m := range list[:cap(list)] {
			if in(m.raw) || in(m.spelled) {
				return "member"
			}
		}
	}
	for _, o := range e.outputs[:cap(e.outputs)] {
		if in(o.raw) || in(o.name) || in(o.spelled) {
			return "output"
		}
	}
	for _, list := range [...][]pair{e.pairs, e.inner, e.scratch} {
		for _, p := range list[:cap(list)] {
			if in(p.raw) || in(p.spelled) {
				return "pair"
			}
		}
	}
	for _, s := range [...]*nameSet{&e.names, &e.outputAt} {
		for _, name := range s.few[:cap(s.few)] {
			if in(name) {
				return "name"
			}
		}
	}
	return ""
}

// TestReleaseLetsGo checks that a pooled Env keeps nothing of what was lent to it.
func TestReleaseLetsGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := forms(t)
		text := d.flat()
		if d.chance(50) {
			text = d.nested()
		}
		src := d.encode(text)
		e := decoded(t, d.form, src)
		e.Append(nil)
		e.SetCompleted("s1")
		e.SetMember(Metadata, "k", d.encode(`1`))
		e.Append(nil)
		if keeps(e, src) == "" {
			t.Fatal("nothing points into the source: the test looks at the wrong things")
		}
		if e.Release(); keeps(e, src) != "" {
			t.Fatalf("a %s still points into the source", keeps(e, src))
		}
	})
}

func TestReleaseLetsGoOfWhatIsLarge(t *testing.T) {
	e := decoded(t, JSON, []byte(`{"envelope_id":"e",`+manyOf(maxKeptMembers+1, `"x%d":%d`)+`,"outputs":{`+manyOf(maxKeptMembers+1, `"o%d":{"n":%d}`)+
		`},"raw_input":"\u0061`+strings.Repeat("x", maxKeptArena)+`"}`))
	e.Append(nil)
	e.Release()
	if cap(e.top) > maxKeptMembers || cap(e.outputs) > maxKeptMembers || cap(e.pairs) > maxKeptMembers || cap(e.arena) > maxKeptArena || e.outputAt.many != nil {
		t.Errorf("kept %d members, %d outputs, %d pairs, %d bytes, index %v", cap(e.top), cap(e.outputs), cap(e.pairs), cap(e.arena), e.outputAt.many != nil)
	}
}

// TestNothingStaleIsRead decodes one envelope after another with the source of the one before
// overwritten.
func TestNothingStaleIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var reused Env
		x := testEngine()
		for range 3 {
			d := forms(t)
			text := d.flat()
			if d.chance(50) {
				text = d.nested()
			}
			src := d.encode(text)
			fresh := decoded(t, d.form, src).Append(nil)
			if p := reused.Decode(d.form, src); p != nil {
				t.Fatalf("%s: %s", p.Message(), src)
			}
			out := reused.Append(nil)
			if !bytes.Equal(out, fresh) {
				t.Fatalf("reused %q\nfresh  %q", out, fresh)
			}
			if d.form == JSON {
				step, _, err := x.Process(nil, src)
				if own, _, _ := testEngine().Process(nil, src); err != nil || !bytes.Equal(step, own) {
					t.Fatalf("a step with a used workspace %s\nwith a fresh one %s", step, own)
				}
			}
			for i := range src {
				src[i] = 0xcc
			}
		}
	})
}
