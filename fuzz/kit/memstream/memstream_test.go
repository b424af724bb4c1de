package memstream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstream"
)

func add(c *memstream.Client, after uint64) func() replicated.Outcome {
	return c.Append(&replicated.Append{Message: replicated.Message{Kind: replicated.KindBlock, Data: []byte{1}}, After: after, ID: fmt.Sprint(after)})
}

// TestFaults: each fault does what it is named after, as often as it is asked for.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		faults         memstream.Faults
		ways           memstream.Cut
		answered, kept int
	}{
		"none":        {answered: 100, kept: 100},
		"lose":        {faults: memstream.Faults{Lose: 1000}},
		"answer":      {faults: memstream.Faults{LoseAnswer: 1000}, kept: 100},
		"double":      {faults: memstream.Faults{Double: 1000}, answered: 100, kept: 100},
		"delay":       {faults: memstream.Faults{Delay: 5 * time.Millisecond}, answered: 100, kept: 100},
		"no requests": {ways: memstream.Requests},
		"no answers":  {ways: memstream.Answers, kept: 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			log := memstream.New()
			cl := log.Client(1, c.faults)
			cl.Part(c.ways)
			answered := 0
			for i := range uint64(100) {
				if o := add(cl, i)(); o.Err == nil {
					answered++
				} else if errors.Is(o.Err, replicated.ErrNotStored) && c.kept == 100 {
					t.Errorf("%s: %v", name, o.Err)
				}
			}
			time.Sleep(time.Second)
			if answered != c.answered || log.Len() != c.kept {
				t.Errorf("%s: %d answers, %d messages, want %d and %d", name, answered, log.Len(), c.answered, c.kept)
			}
		})
	}
}

// TestDelaysOvertake: messages that are sent one after the other arrive in another order.
func TestDelaysOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		overtaken := 0
		for seed := range uint64(50) {
			log := memstream.New()
			cl := log.Client(seed, memstream.Faults{Delay: 5 * time.Millisecond})
			one, two := add(cl, 0), add(cl, 1)
			if o := one(); o.Err != nil {
				t.Fatal(o.Err)
			}
			if errors.Is(two().Err, replicated.ErrNotStored) {
				overtaken++
			}
		}
		if overtaken < 10 || overtaken > 40 {
			t.Errorf("%d of 50 were overtaken", overtaken)
		}
	})
}

// TestReplica: what a replica has lost or shows flipped is its own matter.
func TestReplica(t *testing.T) {
	log := memstream.New()
	a, b := log.Client(1, memstream.Faults{}), log.Client(2, memstream.Faults{})
	for i := range uint64(3) {
		add(a, i)()
	}
	b.LoseMessage(2)
	b.FlipBit(3, 1)
	for c, want := range map[*memstream.Client]string{a: "1:1 2:1 3:1 ", b: "1:1 3:3 "} {
		got := ""
		if err := c.Read(context.Background(), 1, 3, func(m *replicated.Message) error { got += fmt.Sprint(m.Seq, ":", m.Data[0], " "); return nil }); err != nil || got != want {
			t.Errorf("read %q, want %q: %v", got, want, err)
		}
	}
	if st, err := b.State(context.Background()); err != nil || st.Deleted != 1 || st.Last != 3 {
		t.Errorf("state %+v: %v", st, err)
	}
	b.Kill()
	if _, err := b.State(context.Background()); err == nil {
		t.Error("a dead client was answered")
	}
	if o := add(b, 3)(); o.Err == nil || log.Len() != 3 {
		t.Errorf("a dead client appended: %+v", o)
	}
}

// TestStale: a stale look at the state shows an older end, and never an older control message than
// that.
func TestStale(t *testing.T) {
	log := memstream.New()
	c := log.Client(1, memstream.Faults{Stale: 500})
	for i := range uint64(10) {
		add(c, i)()
	}
	c.Append(&replicated.Append{Message: replicated.Message{Kind: replicated.KindControl}, After: 10, ID: "c"})()
	old := 0
	for range 100 {
		st, err := c.State(context.Background())
		if err != nil || (st.Last == 11) != (st.Control != nil) {
			t.Fatalf("state %+v: %v", st, err)
		}
		if st.Last < 11 {
			old++
		}
	}
	if old < 20 || old > 80 {
		t.Errorf("%d of 100 looks were stale", old)
	}
}
