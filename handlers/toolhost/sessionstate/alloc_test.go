//go:build !race

package sessionstate

import "testing"

func TestNoAllocs(t *testing.T) {
	f := func(what string, fn func()) {
		t.Helper()
		fn()
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s: %v allocations, want 0", what, n)
		}
	}
	before := start()
	buf := make([]byte, 0, 4096)
	changed := before.Clone()
	changed.Set(0, Artifact{Type: "t", Content: "{\"a\":\"\u00e9\n\"}"})
	changed.Remove(6)
	same := before.Clone()
	one, _ := before.Get(1)
	same.Set(1, *one)

	f("AppendDelta of nothing", func() {
		after := before.Clone()
		buf = AppendDelta(buf[:0], &before, &after)
	})
	f("AppendDelta of what was written but is the same", func() { buf = AppendDelta(buf[:0], &before, &same) })
	f("AppendDelta of changes", func() { buf = AppendDelta(buf[:0], &before, &changed) })
	f("AppendSnapshot", func() { buf = changed.AppendSnapshot(buf[:0]) })
	f("Get, Remove of nothing, Bytes", func() {
		s := before.Clone()
		if _, ok := s.Get(2); !ok {
			s.Remove(2)
		}
		if s.Bytes() == 0 {
			t.Error("nothing left")
		}
	})
	state, room, n := start(), Room{}, int64(0)
	f("Set in a room", func() {
		after := state.CloneIn(&room)
		n++
		after.Set(1, Artifact{Type: "t", Content: "{}", Size: n})
		after.Remove(6)
		buf = AppendDelta(buf[:0], &state, &after)
		room.Replace(&state, &after)
		for range 2 {
			after = state.CloneIn(&room)
			n++
			after.Set(1, Artifact{Type: "t", Content: "{}", Size: n})
			room.Replace(&state, &after)
		}
	})
	empty := []byte(EmptyDelta)
	f("Apply of nothing", func() { _, _ = before.Apply(empty) })
}
