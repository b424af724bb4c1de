package replicated_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstream"
)

// TestLostAnswer: a block whose answer is lost is asked for again, and is in the log once.
func TestLostAnswer(t *testing.T) {
	for name, f := range map[string]memstream.Faults{
		"answer":  {LoseAnswer: 1000},
		"request": {Lose: 1000},
		"twice":   {Double: 1000, Delay: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				n := members(t, 1)[0]
				n.client.SetFaults(f)
				must(t, n.store.BeginBlock(2, []byte("once")))
				n.client.SetFaults(memstream.Faults{})
				must(t, n.store.AwaitBlock())
				time.Sleep(time.Second)
				must(t, n.store.WriteBlock(3, []byte("next")))
				want(t, n.store, "once", "next")
			})
		})
	}
}

// TestLostAnswerOfClaim: the same for the message that takes the log over.
func TestLostAnswerOfClaim(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		must(t, m[1].open())
		m[1].client.Part(memstream.Answers)
		time.AfterFunc(lease/2, func() { m[1].client.Part(0) })
		must(t, m[1].store.WriteBlock(2, []byte("claim")))
		must(t, m[1].store.WriteBlock(3, []byte("next")))
		want(t, m[1].store, "claim", "next")
	})
}

// TestUnknown: without an answer within the lease the outcome is not known, in both cases: the
// block is there, or it is not.
func TestUnknown(t *testing.T) {
	for ways, blocks := range map[memstream.Cut][]string{memstream.Answers: {"block"}, memstream.Requests: nil} {
		inBubble(t, func(t *testing.T) {
			m := members(t, 2)
			a, b := m[0], m[1]
			a.client.Part(ways)
			begin := time.Now()
			err := a.store.WriteBlock(2, []byte("block"))
			if !errors.Is(err, replicated.ErrUnknown) || !errors.Is(err, replicated.ErrNotOwner) {
				t.Errorf("ways %d: %v", ways, err)
			}
			if took := time.Since(begin); took < lease/2 || took > 2*lease {
				t.Errorf("ways %d: the outcome was open for %s, the lease is %s", ways, took, lease)
			}
			a.client.Part(0)
			if err := a.store.WriteBlock(3, []byte("after")); !errors.Is(err, replicated.ErrUnknown) {
				t.Errorf("ways %d: a block after that: %v", ways, err)
			}
			must(t, b.open())
			want(t, b.store, append([]string{}, blocks...)...)
		})
	}
}

// TestUnknownIsNotLost: a block is stored, its answer is lost, and the stream forgets its id. When
// it is asked again, it refuses. That must not be taken for a block that is not there.
func TestUnknownIsNotLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		a.client.SetFaults(memstream.Faults{LoseAnswer: 1000})
		must(t, a.store.BeginBlock(2, []byte("there")))
		a.client.SetFaults(memstream.Faults{})
		a.log.Forget()
		if err := a.store.AwaitBlock(); !errors.Is(err, replicated.ErrUnknown) {
			t.Errorf("a block that is there: %v", err)
		}
		must(t, b.open())
		want(t, b.store, "there")
	})
}

// TestLateAnswerOfOldOwner: a block is stored and its answer lost, another node takes the log over,
// and the old owner asks again. The block is in the log of the new owner, so it is acknowledged;
// the next one is not.
func TestLateAnswerOfOldOwner(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		a.client.Part(memstream.Answers)
		i := a.append("stored")
		time.Sleep(lease / 10)
		must(t, b.claim())
		a.client.Part(0)
		must(t, a.barrier())
		if b.state[i] != "stored" {
			t.Errorf("the new owner has %v", b.state)
		}
		a.append("late")
		if err := a.barrier(); !errors.Is(err, replicated.ErrNotOwner) || errors.Is(err, replicated.ErrUnknown) {
			t.Errorf("the next block: %v", err)
		}
	})
}

// TestFailedBlockFailsAllLater: the first block is not acknowledged, so those behind it are not,
// whatever the stream has answered for them.
func TestFailedBlockFailsAllLater(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := members(t, 1)[0]
		a.client.SetFaults(memstream.Faults{LoseAnswer: 1000})
		must(t, a.store.BeginBlock(2, []byte("one")))
		a.client.SetFaults(memstream.Faults{})
		must(t, a.store.BeginBlock(3, []byte("two")))
		a.client.Part(memstream.Requests)
		if err := a.store.AwaitBlock(); !errors.Is(err, replicated.ErrUnknown) {
			t.Errorf("the first block: %v", err)
		}
		if err := a.store.AwaitBlock(); !errors.Is(err, replicated.ErrNotOwner) {
			t.Errorf("the second block, which was stored and answered: %v", err)
		}
	})
}

// TestReordered: a block that overtakes the one before it is refused, and is sent again when that
// one is stored.
func TestReordered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := members(t, 1)[0]
		a.client.SetFaults(memstream.Faults{Delay: 10 * time.Millisecond})
		must(t, a.store.BeginBlock(2, []byte("one")))
		a.client.SetFaults(memstream.Faults{})
		must(t, a.store.BeginBlock(3, []byte("two")))
		must(t, a.store.AwaitBlock())
		must(t, a.store.AwaitBlock())
		want(t, a.store, "one", "two")
	})
}

// TestConfirmed: the lease of an owner counts from when it sent what was stored last, not from when
// the answer came.
func TestConfirmed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := members(t, 1)[0]
		before := a.store.Confirmed()
		time.Sleep(time.Second)
		a.client.SetFaults(memstream.Faults{Delay: 20 * time.Millisecond})
		must(t, a.store.WriteBlock(2, []byte("x")))
		at := a.store.Confirmed()
		if at != before+time.Second {
			t.Errorf("confirmed at %s, after %s", at, before)
		}
		a.client.Part(memstream.Requests)
		if err := a.store.WriteBlock(3, []byte("y")); err == nil || a.store.Confirmed() != at {
			t.Errorf("a block that did not arrive: %v, confirmed at %s", err, a.store.Confirmed())
		}
	})
}

// cramped is a stream without room for a while.
type cramped struct {
	*memstream.Client
	full atomic.Bool
}

// Append implements replicated.Stream.
func (c *cramped) Append(a *replicated.Append) func() replicated.Outcome {
	if c.full.Load() {
		return func() replicated.Outcome { return replicated.Outcome{Err: fmt.Errorf("%w: 503", replicated.ErrNoRoom)} }
	}
	return c.Client.Append(a)
}

// TestNoRoom: what a stream has no room for is sent again, to servers that may have some, and shows
// why; in the end that is in the error.
func TestNoRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		n := newMember(memstream.New(), 1)
		local, err := n.disk.Open()
		must(t, err)
		c := &cramped{Client: n.client}
		s, err := replicated.Open(context.Background(), replicated.Config{Stream: c, Chunks: n.client, Local: local, Lease: lease})
		must(t, err)
		must(t, s.WriteBlock(1, []byte("x")))
		c.full.Store(true)
		time.AfterFunc(lease/2, func() {
			if !errors.Is(s.Trouble(), replicated.ErrNoRoom) {
				t.Errorf("while there is no room: %v", s.Trouble())
			}
			c.full.Store(false)
		})
		must(t, s.WriteBlock(2, []byte("y")))
		if err := s.Trouble(); err != nil {
			t.Errorf("after there is room again: %v", err)
		}
		c.full.Store(true)
		if err := s.WriteBlock(3, []byte("z")); !errors.Is(err, replicated.ErrNotOwner) || !errors.Is(err, replicated.ErrNoRoom) {
			t.Errorf("without room: %v", err)
		}
		if err := s.Trouble(); err != nil {
			t.Errorf("of a store that has ended: %v", err)
		}
		must(t, s.Close())
	})
}

// elsewhere is a stream that answers with another sequence than the one a message must have.
type elsewhere struct{ *memstream.Client }

// Append implements replicated.Stream.
func (e elsewhere) Append(a *replicated.Append) func() replicated.Outcome {
	wait := e.Client.Append(a)
	return func() replicated.Outcome {
		o := wait()
		o.Seq++
		return o
	}
}

// TestStoredElsewhere: a stream that has stored a message where it must not be is not trusted.
func TestStoredElsewhere(t *testing.T) {
	n := newMember(memstream.New(), 1)
	local, err := n.disk.Open()
	must(t, err)
	s, err := replicated.Open(context.Background(), replicated.Config{Stream: elsewhere{n.client}, Chunks: n.client, Local: local})
	must(t, err)
	if err := s.WriteBlock(1, []byte("x")); !errors.Is(err, replicated.ErrUnknown) || s.Fence() != 0 {
		t.Errorf("a block that is somewhere else: %v, fence %d", err, s.Fence())
	}
	must(t, s.Close())
}
