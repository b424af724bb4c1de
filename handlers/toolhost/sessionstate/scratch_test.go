package sessionstate

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// kept is a copy that was taken behind Share, and what it holds.
type kept struct {
	state State
	text  string
}

// A state whose calls write in a room is the same as one whose calls allocate, delta by delta, and
// copies taken behind Share never change.
func TestRoomChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var plain, state State
		var room Room
		var copies []kept
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				room.Share()
				copies = append(copies, kept{state, snapshot(&state)})
			case 1:
				raw := fmt.Appendf(nil, `{"delta":%v,"slots":{"%d":{"type":"applied"}}}`, rapid.Bool().Draw(t, "delta"), rapid.IntRange(0, 2).Draw(t, "slot"))
				next, why := state.Apply(raw)
				if plain, _ = plain.Apply(raw); why != "" {
					t.Fatal(why)
				}
				state = next
				room.Share()
			default:
				callBoth(t, i, &plain, &state, &room)
			}
			if got, want := snapshot(&state), snapshot(&plain); got != want {
				t.Fatalf("the state is %s, want %s", got, want)
			}
			for _, c := range copies {
				if got := snapshot(&c.state); got != c.text {
					t.Fatalf("a copy became %s, was %s", got, c.text)
				}
			}
		}
	})
}

// callBoth runs one call on both states, which may fail.
func callBoth(t *rapid.T, i int, plain, state *State, room *Room) {
	a, b := plain.Clone(), state.CloneIn(room)
	for k := range rapid.IntRange(0, 3).Draw(t, "writes") {
		slot := rapid.IntRange(0, 2).Draw(t, "slot")
		if rapid.IntRange(0, 4).Draw(t, "write") == 0 {
			a.Remove(slot)
			b.Remove(slot)
			continue
		}
		x := Artifact{Type: "text", Provenance: rapid.SampledFrom([]string{"p", "\"", "\xff"}).Draw(t, "provenance"), Content: fmt.Sprint(i%3, k), Size: int64(k)}
		a.Set(slot, x)
		b.Set(slot, x)
	}
	if got, want := string(AppendDelta(nil, state, &b)), string(AppendDelta(nil, plain, &a)); got != want {
		t.Fatalf("the delta is %s, want %s", got, want)
	}
	if rapid.IntRange(0, 4).Draw(t, "fails") > 0 {
		*plain = a.Clone()
		room.Replace(state, &b)
	}
}
