package idem

import (
	"fmt"
	"strings"
	"testing"
)

// What a memo finds is what was kept last under that very name.
func TestMemo(t *testing.T) {
	m, kept := NewMemo(), map[string]Key{}
	name := func(i int) []byte { return AppendName(nil, []byte("stdin"), []byte("AID.T.v1"), fmt.Append(nil, i)) }
	found := func() (n int) {
		for i := range 3 * memoSlots {
			id := m.Find(name(i))
			if id == nil {
				continue
			}
			if n++; id.Key != kept[string(name(i))] || id.Input != fmt.Sprint(i) || id.InputHash != in(id.Input) {
				t.Fatalf("%q is %+v", name(i), id)
			}
		}
		return n
	}
	if n := found(); n != 0 {
		t.Fatalf("an empty memo has %d", n)
	}
	for i := range 2 * memoSlots {
		key, hash := k(fmt.Sprint(i)), in(fmt.Sprint(i))
		kept[string(name(i))] = key
		m.Keep(name(i), &key, fmt.Append(nil, i), &hash)
		if m.Find(name(i)) == nil {
			t.Fatalf("%q is not kept", name(i))
		}
	}
	if n := found(); n < memoSlots/2 || n > memoSlots {
		t.Fatalf("%d of %d places are used", n, memoSlots)
	}
}

func TestMemoKeepsNothingLong(t *testing.T) {
	m, key, hash := NewMemo(), k("a"), in("")
	for _, n := range []int{maxRemembered - 1, maxRemembered} {
		name, input := []byte(strings.Repeat("n", n)), []byte("x")
		m.Keep(name, &key, input, &hash)
		if kept := m.Find(name) != nil; kept != (n+1 <= maxRemembered) {
			t.Errorf("a name of %d bytes is kept: %v", n, kept)
		}
	}
}
