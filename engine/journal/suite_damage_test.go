package journal_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"trunkline/engine/journal"
)

// changes is what may happen to the bytes of a block.
func changes() map[string]func(b []byte) []byte {
	return map[string]func(b []byte) []byte{
		"flip in header":  func(b []byte) []byte { b[20] ^= 1; return b },
		"flip in version": func(b []byte) []byte { b[0] ^= 2; return b },
		"flip in body":    func(b []byte) []byte { b[len(b)/2] ^= 0x80; return b },
		"flip in sum":     func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"cut short":       func(b []byte) []byte { return b[:len(b)-3] },
		"cut in header":   func(b []byte) []byte { return b[:20] },
		"empty":           func(b []byte) []byte { return b[:0] },
		"end zeroed":      func(b []byte) []byte { clear(b[len(b)/2:]); return b },
		"zeroed":          func(b []byte) []byte { clear(b); return b },
		"garbage":         func(b []byte) []byte { return bytes.Repeat([]byte{0xA7}, len(b)) },
		"garbage at end":  func(b []byte) []byte { return append(b, 0, 1, 2) },
	}
}

// filled makes a place with some blocks and returns what is in it.
func filled(t *testing.T, p Place) (state map[journal.Index]string, firsts []journal.Index) {
	t.Helper()
	l := begin(t, p, smallBlocks)
	l.appendMany(200, 60)
	l.close()
	firsts, _ = blocks(t, p)
	if len(firsts) < 5 {
		t.Fatalf("only %d blocks", len(firsts))
	}
	return l.state, firsts
}

// testTornTail: where a store may tear, whatever is left of the last block is cut, and nothing
// before it is touched.
func testTornTail(t *testing.T, p Place) {
	for name, change := range changes() {
		state, firsts := grown(t, p)
		torn := firsts[len(firsts)-1]
		l, err := tryBegin(t, p, func(s journal.Store) journal.Store {
			return &altered{Store: s, at: torn, change: change, tears: true}
		})
		if err != nil {
			t.Fatalf("last block %s: %v", name, err)
		}
		l.wantState(upTo(state, torn-1))
		l.close()
		next := begin(t, p)
		next.wantState(l.state)
		next.close()
	}
}

// grown adds some blocks to a place.
func grown(t *testing.T, p Place) (state map[journal.Index]string, firsts []journal.Index) {
	t.Helper()
	l := begin(t, p, smallBlocks)
	l.appendMany(40, 60)
	l.close()
	firsts, _ = blocks(t, p)
	return l.state, firsts
}

// testDamage: whatever happens to a block, the journal is refused with the index of it, after the
// records before it and none of it; also in the last block, where the store does not tear, and in
// one before the last, where it does.
func testDamage(t *testing.T, p Place) {
	state, firsts := filled(t, p)
	_, data := blocks(t, p)
	all := changes()
	all["another block"] = func([]byte) []byte { return data[firsts[1]] }
	all["missing"] = func([]byte) []byte { return nil }
	for name, change := range all {
		for _, at := range []int{0, 2, len(firsts) - 2, len(firsts) - 1} {
			last := at == len(firsts)-1
			if last && name == "missing" {
				continue // no journal can distinguish it from one that ended there
			}
			refused(t, p, &altered{at: firsts[at], change: change, tears: !last}, name, upTo(state, firsts[at]-1))
		}
	}
	l := begin(t, p)
	l.wantState(state)
	l.close()
}

// refused opens a place with an altered block and wants a DamageError.
func refused(t *testing.T, p Place, a *altered, name string, before map[journal.Index]string) {
	t.Helper()
	l, err := tryBegin(t, p, func(s journal.Store) journal.Store { a.Store = s; return a })
	var damage *journal.DamageError
	if !errors.As(err, &damage) || damage.Index != a.at {
		t.Fatalf("block at %d %s: %v, want damage at %d", a.at, name, err, a.at)
	}
	for i, rec := range l.state {
		if before[i] != rec {
			t.Fatalf("block at %d %s: record %d is %q, want %q", a.at, name, i, rec, before[i])
		}
	}
}

// testRecovery: an operator gives up what follows the damage, and the journal goes on from there
// for good.
func testRecovery(t *testing.T, p Place) {
	state, firsts := filled(t, p)
	bad := firsts[3]
	a := &altered{at: bad, change: func(b []byte) []byte { clear(b); return b }}
	wrap := func(s journal.Store) journal.Store { a.Store = s; return a }
	to := func(i journal.Index) func(c *journal.Config) { return func(c *journal.Config) { c.RecoverTo = i } }
	if _, err := tryBegin(t, p, wrap, to(firsts[2])); err == nil {
		t.Fatalf("recovered to an index inside of a block")
	}
	if _, err := tryBegin(t, p, wrap, to(bad)); err == nil {
		t.Fatalf("recovered to an index inside of the damage")
	}
	l, err := tryBegin(t, p, wrap, to(bad-1))
	must(t, err)
	l.wantState(upTo(state, bad-1))
	if l.log.Epoch() != 2 || l.log.Appended() != bad {
		t.Fatalf("epoch %d at index %d after recovery", l.log.Epoch(), l.log.Appended())
	}
	l.append("after")
	l.close()
	next := begin(t, p)
	next.wantState(l.state)
	next.close()
	now, _ := blocks(t, p)
	if !slices.Equal(now[:4], firsts[:4]) || len(now) != 6 {
		t.Fatalf("blocks at %v after recovery, before at %v", now, firsts)
	}
}
