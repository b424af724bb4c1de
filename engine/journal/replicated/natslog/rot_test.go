package natslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/engine/journal/replicated/natslog"
	"trunkline/fuzz/kit/memstore"
	"trunkline/fuzz/kit/natstest"
)

// patient is a lease that a busy machine keeps.
const patient = time.Minute

// open opens a store on a log, with a local one in memory.
func open(t *testing.T, l *natslog.Log, lease time.Duration) (*replicated.Store, error) {
	t.Helper()
	local, err := memstore.New(memstore.Options{}).Open()
	must(t, err)
	return replicated.Open(context.Background(), replicated.Config{Stream: l, Chunks: l, Local: local, Lease: lease})
}

// claim opens a journal on a log and takes it over.
func claim(t *testing.T, l *natslog.Log, lease time.Duration) (*journal.Log, map[journal.Index]string, error) {
	t.Helper()
	s, err := open(t, l, lease)
	if err != nil {
		return nil, nil, err
	}
	state := make(map[journal.Index]string)
	j, err := journal.Open(s, journal.Config{MaxBlockBytes: 4 << 10})
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	if err = j.Replay(0, func(i journal.Index, rec []byte) error { state[i] = string(rec); return nil }); err != nil {
		return nil, state, errors.Join(err, j.Close())
	}
	return j, state, nil
}

// TestRottenFollower: one bit of a block is flipped in the files of a follower. When it leads, it
// may have lost messages without an error of its own; or it has noticed, and has them from the
// others again. In no case is anything shown that was not written, or anything left out. With
// another leader all is there.
func TestRottenFollower(t *testing.T) {
	if testing.Short() {
		t.Skip("it stops and starts servers")
	}
	c := natstest.New(t)
	nc := c.Connect(0)
	defer nc.Close()
	l := c.Open(nc, "rot", natstest.Patient)
	c.Lead(nc, "rot", 0)
	j, state, err := claim(t, l, patient)
	must(t, err)
	for i := range 500 {
		rec := fmt.Sprint("record ", i, " of a log that rots ", i)
		state[j.Append([]byte(rec))] = rec
		if i%20 == 0 {
			must(t, j.Barrier(context.Background()))
		}
	}
	must(t, j.Close())

	const rotten = 1
	for _, place := range []string{"record 250 of", "record 0 of", "record 499 of"} {
		c.Stop(rotten)
		flip(t, c.Blocks(rotten, "rot"), place)
		c.Start(rotten)
		for _, leader := range []int{rotten, 2, rotten, 0} {
			c.Lead(nc, "rot", leader)
			j, shown, err := claim(t, c.Open(nc, "rot", natstest.Patient), patient)
			compare(t, shown, state)
			var damage *journal.DamageError
			switch {
			case err == nil:
				must(t, j.Close())
				if len(shown) != len(state) {
					t.Errorf("%s: with leader %d %d of %d records are shown", place, leader, len(shown), len(state))
				}
			case leader == rotten && errors.As(err, &damage):
				t.Logf("%s: the rotten leader is refused: %v", place, err)
			default:
				t.Errorf("%s: with leader %d: %v", place, leader, err)
			}
		}
	}
}

// compare checks that nothing else is shown than what was written.
func compare(t *testing.T, shown, state map[journal.Index]string) {
	t.Helper()
	for i, rec := range shown {
		if state[i] != rec {
			t.Fatalf("record %d is shown as %q, and was %q", i, rec, state[i])
		}
	}
}

// flip flips one bit of the files, where some text is.
func flip(t *testing.T, files []string, text string) {
	t.Helper()
	for _, file := range files {
		b, err := os.ReadFile(file)
		must(t, err)
		if at := bytes.Index(b, []byte(text)); at >= 0 {
			b[at+3] ^= 4
			must(t, os.WriteFile(file, b, 0o600))
			return
		}
	}
	t.Fatalf("%v do not hold %q", files, text)
}

// TestKeepers: the log shows who keeps it, and has another server lead it.
func TestKeepers(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts servers")
	}
	c := natstest.New(t)
	nc := c.Connect(0)
	defer nc.Close()
	l := c.Open(nc, "keepers", natstest.Patient)
	if l.Replica() != nil {
		t.Error("this process keeps a copy")
	}
	keepers := func(what string, is func(k []natslog.Keeper) bool) (k []natslog.Keeper) {
		t.Helper()
		c.Await(what, func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), natstest.Patient)
			defer cancel()
			var err error
			k, err = l.Keepers(ctx)
			return err == nil && is(k)
		})
		return k
	}
	whole := func(k []natslog.Keeper) bool {
		return len(k) == 3 && k[0].Leads && k[0].Current && k[1].Current && k[2].Current && !k[1].Leads && !k[2].Leads
	}
	k := keepers("three whole copies", whole)
	next := k[2].Server
	c.Await("a leader that steps down", func() bool { return l.Lead(context.Background(), next) == nil })
	keepers("another leader", func(k []natslog.Keeper) bool { return whole(k) && k[0].Server == next })
	c.Stop(1)
	keepers("a server that is away", func(k []natslog.Keeper) bool {
		return len(k) == 3 && slices.ContainsFunc(k, func(k natslog.Keeper) bool { return k.Server == "n1" && !k.Current })
	})
}
