package replicated_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstore"
	"trunkline/fuzz/kit/memstream"
)

// audit verifies all that a member's replica has.
func (n *member) audit(bytes int) error {
	a := n.store.NewAudit(n.client, 0, journal.Always)
	for range 10_000 {
		if whole, err := a.Round(bytes); whole || err != nil {
			return err
		}
	}
	return errors.New("it does not end")
}

// TestAudit: whole replicas are found whole, in parts of any size, and have the same tip; also
// after a purge, with cuts, and with blocks in several messages.
func TestAudit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		a.log.SetMaxData(100)
		a.die()
		must(t, a.claim())
		whole := func() {
			t.Helper()
			must(t, a.barrier())
			b.die()
			must(t, b.open())
			for _, bytes := range []int{1, 1000, 1 << 20} {
				must(t, b.audit(bytes))
			}
			one, err := a.store.NewAudit(a.client, 0, journal.Always).Tip()
			must(t, err)
			audit := b.store.NewAudit(b.client, 0, journal.Always)
			other, err := audit.Tip()
			must(t, err)
			if one != other || other.Index != a.journal.Durable() {
				t.Errorf("the tips are %+v and %+v, the last record is %d", one, other, a.journal.Durable())
			}
			if at, err := audit.At(one.Seq); err != nil || at != one {
				t.Errorf("%+v at the tip %+v: %v", at, one, err)
			}
		}
		for range 5 {
			filled(t, a, 1)
			a.append(fmt.Sprintf("%0400d", 1))
			whole()
		}
		last := a.journal.Durable()
		must(t, a.journal.Close())
		must(t, a.open())
		must(t, a.store.CutBlocks(last))
		must(t, a.store.Close())
		must(t, a.claim())
		filled(t, a, 1)
		whole()
	})
}

// TestAuditOfDamage: whichever message of a replica is lost or flipped, it is found, unless it is
// none of the log.
func TestAuditOfDamage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		filled(t, a, 2)
		must(t, a.barrier())
		must(t, b.open())
		held, err := b.client.Held()
		must(t, err)
		kinds := make(map[uint64]replicated.Kind)
		must(t, b.client.Read(context.Background(), held.First, held.Last, func(m *replicated.Message) error { kinds[m.Seq] = m.Kind; return nil }))
		var damage *journal.DamageError
		for seq := held.First; seq <= held.Last; seq++ {
			b.client.LoseMessage(seq)
			if err := b.audit(1000); !errors.As(err, &damage) {
				t.Errorf("message %d is lost: %v", seq, err)
			}
			b.client.Heal()
			for _, bit := range []int{0, 77, 1001} {
				b.client.FlipBit(seq, bit)
				if err := b.audit(1000); kinds[seq] == replicated.KindBlock && !errors.As(err, &damage) {
					t.Errorf("bit %d of message %d is flipped: %v", bit, seq, err)
				}
				b.client.Heal()
			}
		}
		must(t, b.audit(1000))
		b.client.Kill()
		if err := b.audit(1000); err == nil || errors.As(err, &damage) {
			t.Errorf("a replica that cannot be read now: %v", err)
		}
	})
}

// TestAuditOfAnotherLog: two logs that are each in order have different hashes from where they
// part.
func TestAuditOfAnotherLog(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var tips []replicated.Place
		for _, rec := range []string{"one", "two"} {
			n := members(t, 1)[0]
			n.append("same")
			must(t, n.barrier())
			n.append(rec)
			must(t, n.barrier())
			n.append("same")
			must(t, n.barrier())
			tip, err := n.store.NewAudit(n.client, 0, journal.Always).Tip()
			must(t, err)
			tips = append(tips, tip)
		}
		if tips[0].Seq != tips[1].Seq || tips[0].Index != tips[1].Index || tips[0].Hash == tips[1].Hash {
			t.Errorf("the tips are %+v and %+v", tips[0], tips[1])
		}
	})
}

// TestElsewhere: where the leader of the stream has lost a message, a standby and a new owner ask
// another one, and go on if that has it.
func TestElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 1)
		a := m[0]
		for i := range 30 {
			a.append(fmt.Sprint(i))
			must(t, a.barrier())
		}
		for _, helps := range []bool{true, false} {
			c := a.log.Client(99, memstream.Faults{})
			asked := 0
			open := func() (*replicated.Store, error) {
				local, err := memstore.New(memstore.Options{}).Open()
				must(t, err)
				return replicated.Open(context.Background(), replicated.Config{Stream: c, Chunks: c, Local: local, Elsewhere: func(_ context.Context, lost error) bool {
					if asked++; !errors.As(lost, new(*journal.DamageError)) {
						t.Errorf("what is lost is %v", lost)
					}
					if helps {
						c.Heal()
					}
					return helps
				}})
			}
			s, err := open()
			must(t, err)
			c.LoseMessage(uint64(a.log.Len()) / 2)
			ctx, stop := context.WithCancel(context.Background())
			last := make(chan error, 1)
			seen := journal.Index(0)
			go func() {
				last <- s.Tail(ctx, 1, func() <-chan struct{} { return nil }, func() bool { return false }, unheard, func(first journal.Index, b []byte) error {
					seen = journal.LastOf(first, b)
					return nil
				})
			}()
			synctest.Wait()
			stop()
			err = <-last
			must(t, s.Close())
			c.LoseMessage(uint64(a.log.Len()) / 2)
			var damage *journal.DamageError
			s, failed := open()
			switch {
			case helps && (asked != 2 || errors.As(err, &damage) || failed != nil || seen != a.journal.Durable()):
				t.Errorf("asked %d times: %v, then %v; record %d was the last", asked, err, failed, seen)
			case !helps && (asked != 2 || !errors.As(err, &damage) || !errors.As(failed, &damage)):
				t.Errorf("nothing helps: asked %d times: %v, then %v", asked, err, failed)
			}
			if s != nil {
				must(t, s.Close())
			}
		}
	})
}

// TestDamagedCopyOfASnapshot: a node whose own copy of a snapshot has rotted reads the shared one,
// and gives the copy up.
func TestDamagedCopyOfASnapshot(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 1)
		a := m[0]
		filled(t, a, 3)
		must(t, a.barrier())
		state := fmt.Sprint(a.state)
		list, err := a.store.ListSnapshots()
		must(t, err)
		newest := list[len(list)-1].Number
		a.die()
		a.disk.FlipSnapshot(newest, 0, 1000)
		must(t, a.claim())
		if fmt.Sprint(a.state) != state {
			t.Errorf("the state is %v, want %v", a.state, state)
		}
		a.die()
		local, err := a.disk.Open()
		must(t, err)
		left, err := local.ListSnapshots()
		must(t, err)
		for _, l := range left {
			if l.Number == newest {
				t.Error("the damaged copy is kept")
			}
		}
		must(t, local.Close())
	})
}
