//go:build !race

package kernel

import "testing"

// TestLanesDoNotAllocate: a record about what is there already needs no memory.
func TestLanesDoNotAllocate(t *testing.T) {
	k := New(Config{})
	r := k.Recover(2)
	r.Settle()
	index := uint64(0)
	apply := func(rec []byte) {
		index++
		to, err := r.Route(rec, index)
		if err == nil {
			_, err = r.lanes[to.Lane].Take(rec, index, to.Hash)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	pid := []byte("p")
	apply(AppendChange(nil, &Change{Kind: ChangeCreate, PID: pid, Seq: 1, State: Ready, ReadySeq: 1}))
	lease := AppendChange(nil, &Change{Kind: ChangeLease, PID: pid, Expiry: 7})
	back := AppendChange(nil, &Change{Kind: ChangeRequeue, PID: pid})
	usage := AppendChange(nil, &Change{Kind: ChangeUsage, PID: pid, Usage: Usage{LLMCalls: 400}})
	if n := testing.AllocsPerRun(100, func() { apply(lease); apply(back); apply(usage) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
