package replicated_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstream"
)

// TestParts: blocks around the length of a message, and around several of it, are read as they were
// written, from every index on, and followed.
func TestParts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		a.log.SetMaxData(100)
		a.die()
		must(t, a.claim())
		live := map[journal.Index]string{}
		for i, size := range []int{1, 99, 100, 101, 199, 200, 201, 300, 950, 5, 2000, 100} {
			first := journal.Index(10 + 3*i)
			live[first] = fmt.Sprint(i, strings.Repeat("x", size))[:size]
			must(t, a.store.WriteBlock(first, []byte(live[first])))
			if i%3 == 0 {
				must(t, a.store.Barrier(context.Background()))
			}
		}
		live[2] = ""
		must(t, a.store.Blocks(2, func(first journal.Index, block []byte) error {
			if first == 2 {
				live[2] = string(block)
			}
			return nil
		}))
		wantFrom(t, a.store, live)
		must(t, b.open())
		wantFrom(t, b.store, live)
		must(t, b.store.WriteBlock(100, []byte(strings.Repeat("a first append in parts ", 20))))
		if err := a.store.WriteBlock(100, []byte(strings.Repeat("late ", 50))); !errors.Is(err, replicated.ErrNotOwner) || errors.Is(err, replicated.ErrUnknown) {
			t.Errorf("a block in parts of the old owner: %v", err)
		}
		must(t, b.store.DropBlocks(34))
		must(t, b.store.CutBlocks(43))
		for first := range live {
			if first < 34 || first >= 43 {
				delete(live, first)
			}
		}
		var got []journal.Index
		must(t, b.store.Blocks(0, func(first journal.Index, block []byte) error {
			if got = append(got, first); live[first] != string(block) {
				t.Errorf("block %d is %q", first, block)
			}
			return nil
		}))
		if len(got) != len(live) {
			t.Errorf("blocks %v, want %d", got, len(live))
		}
	})
}

// TestPartsInJournal: a record that is longer than a message has its place among the others, in a
// replay and for a standby.
func TestPartsInJournal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 4)
		a, b, c, d := m[0], m[1], m[2], m[3]
		a.log.SetMaxData(300)
		a.die()
		must(t, errors.Join(a.claim(), c.open()))
		f := follow(c, 0)
		for i := range 100 {
			a.append(fmt.Sprint(i, strings.Repeat("y", i%7*200)))
		}
		must(t, a.barrier())
		must(t, b.claim())
		must(t, f.stop())
		if fmt.Sprint(b.state) != fmt.Sprint(a.state) || fmt.Sprint(f.state) != fmt.Sprint(a.state) {
			t.Errorf("replayed %d and followed %d records of %d, or others", len(b.state), len(f.state), len(a.state))
		}
		must(t, d.open())
		log, err := journal.Open(followed{d.store}, journal.Config{Mode: journal.Always})
		must(t, err)
		defer log.Close()
		tailed := map[journal.Index]string{}
		must(t, log.Replay(0, func(i journal.Index, rec []byte) error {
			tailed[i] = string(rec)
			return nil
		}))
		if fmt.Sprint(tailed) != fmt.Sprint(a.state) {
			t.Errorf("a log that is followed has %d records of %d, or others", len(tailed), len(a.state))
		}
	})
}

// TestPartOfABlockAtTheEnd: a look at the stream may meet a block of which some parts are stored.
// The log ends before it then, and is not empty.
func TestPartOfABlockAtTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 3)
		a := m[0]
		a.log.SetMaxData(100)
		a.die()
		must(t, a.claim())
		end := a.append("one")
		must(t, errors.Join(a.barrier(), a.snapshot()))
		a.append(strings.Repeat("y", 1000))
		must(t, a.barrier())
		for _, n := range m[1:] {
			n.client.SetFaults(memstream.Faults{Stale: 1000})
			must(t, n.open())
			log, err := journal.Open(n.store, journal.Config{})
			must(t, err)
			if log.Appended() != end {
				t.Errorf("the log ends at %d, want %d", log.Appended(), end)
			}
			must(t, log.Close())
		}
	})
}

// TestPartsLimit: a block takes as many messages as the limit allows, and not one more.
func TestPartsLimit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		log := memstream.New()
		log.SetMaxData(10)
		n := newMember(log, 1)
		must(t, n.open())
		defer n.die()
		if err := n.store.WriteBlock(1, make([]byte, 9001)); err == nil {
			t.Error("a block of 901 parts was written")
		}
		must(t, n.store.WriteBlock(1, make([]byte, 9000)))
		must(t, n.store.Blocks(1, func(_ journal.Index, b []byte) error {
			if len(b) != 9000 {
				t.Errorf("%d bytes were read", len(b))
			}
			return nil
		}))
	})
}

// TestPartsAreAlone: a block in parts is sent when all before it are stored, and nothing is sent
// behind it before it is stored itself: an owner would name a sequence that a new one could reach.
func TestPartsAreAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := members(t, 1)[0]
		a.log.SetMaxData(10)
		a.die()
		must(t, a.open())
		must(t, a.store.WriteBlock(2, []byte("claim")))
		before := a.log.Len()
		a.client.SetFaults(memstream.Faults{Delay: 20 * time.Millisecond})
		must(t, a.store.BeginBlock(3, []byte("one")))
		if a.log.Len() != before {
			t.Fatal("a block was stored at once")
		}
		must(t, a.store.BeginBlock(4, []byte(strings.Repeat("x", 95))))
		if n := a.log.Len() - before; n != 1+10 {
			t.Errorf("%d messages are stored when a block in 10 parts was begun", n)
		}
		must(t, errors.Join(a.store.AwaitBlock(), a.store.AwaitBlock()))
		a.client.SetFaults(memstream.Faults{Lose: 1000})
		if err := a.store.BeginBlock(5, []byte(strings.Repeat("x", 95))); !errors.Is(err, replicated.ErrUnknown) {
			t.Errorf("a block in parts without an answer: %v", err)
		}
	})
}
