//go:build !race

package projects

import (
	"math"
	"math/rand/v2"
	"testing"

	"trunkline/engine/projects/codec"
)

// TestEventsTakeOneAllocation: an event is encoded once, into the bytes that the journal keeps
// (exacta §10).
func TestEventsTakeOneAllocation(t *testing.T) {
	r := newRig()
	q := &Request{ID: []byte(codec.ID{1}.String()), Origin: new(Origin)}
	flow := r.p.newFlow()
	for range 2 * DefaultJournalEvents { // the journal has all its room
		r.p.progress(q, flow, "apply", 1, 1)
	}
	if n := testing.AllocsPerRun(1000, func() { r.p.progress(q, flow, "apply", 1, 1) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// TestManySubscribers: all get the same events in the same order, in pieces of any size.
func TestManySubscribers(t *testing.T) {
	r := newRig()
	flow := r.p.newFlow()
	cursors := make([]*Cursor, 1000)
	for i := range cursors {
		cursors[i] = &Cursor{Next: 1, From: 1, All: true}
	}
	const events = 1000
	for range events {
		r.p.progress(nil, flow, "apply", 1, 1)
	}
	want, _ := r.p.Journal.Copy(nil, math.MaxInt, &Cursor{Next: 1, All: true}, math.MaxUint64)
	out := make([]byte, 0, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i, c := range cursors {
		out = out[:0]
		for more := CopiedFull; more == CopiedFull; {
			out, more = r.p.Journal.Copy(out, 1+random.IntN(100_000), c, math.MaxUint64)
		}
		if string(out) != string(want) || c.Next != events+1 {
			t.Fatalf("subscriber %d has %d bytes up to %d", i, len(out), c.Next)
		}
	}
}
