package bus

import "testing"

func TestRingKeepsOrderWhileGrowing(t *testing.T) {
	var r ring
	var pools slotPools
	var model []*Message
	push := func(n int) {
		for range n {
			m := &Message{}
			r.push(entry{m: m}, &pools)
			model = append(model, m)
		}
	}
	pop := func(n int) {
		for range n {
			if got := r.pop(&pools); got != model[0] {
				t.Fatalf("popped out of order with %d left", len(model))
			}
			model = model[1:]
		}
	}
	// Every growth happens with the oldest entry in the middle of the array.
	for range 8 {
		push(len(model) + 13)
		pop(len(model) / 3)
	}
	if r.len() != len(model) {
		t.Fatalf("len = %d, want %d", r.len(), len(model))
	}
	pop(len(model))
	if r.slots != nil || r.head() != nil {
		t.Error("a drained large ring keeps its array")
	}
	push(1)
	pop(1)
	if r.slots == nil || len(r.slots.entries) != firstSlots {
		t.Error("a drained small ring gave its array away")
	}
}

func TestSlotClass(t *testing.T) {
	f := func(n, want int) {
		t.Helper()
		if got := slotClass(n); got != want {
			t.Errorf("slotClass(%d) = %d, want %d", n, got, want)
		}
	}
	f(firstSlots, 0)
	f(32, 1)
	f(1<<20, slotClasses-1)
	f(1<<21, -1)
}

func TestPooledSlotsAreEmpty(t *testing.T) {
	var pools slotPools
	s := pools.get(32)
	s.entries[5] = entry{m: &Message{}, lost: 1}
	pools.put(s)
	for i, e := range pools.get(32).entries {
		if e != (entry{}) {
			t.Errorf("entry %d = %v, want empty", i, e)
		}
	}
}
