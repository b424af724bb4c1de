package journal_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstore"
	"trunkline/fuzz/kit/memstream"
	"trunkline/fuzz/kit/natstest"
)

// TestReplicated runs the suite on a stream in memory that several nodes could share, with each of
// the stores as the local one.
func TestReplicated(t *testing.T) {
	inBlocks := func() Place { return on(memstore.Options{Seed: 4}) }
	for name, c := range map[string]struct {
		local  func() Place
		faults memstream.Faults
	}{
		"Whole":    {local: inBlocks},
		"Lossy":    {local: inBlocks, faults: memstream.Faults{Lose: 3, LoseAnswer: 3, Double: 100, Delay: 100 * time.Microsecond}},
		"Embedded": {local: func() Place { return inMemory(journal.Always) }},
	} {
		t.Run(name, func(t *testing.T) {
			runSuite(t, func(*testing.T) Place {
				log, seed := memstream.New(), uint64(0)
				return replicatedOn(c.local(), func() (node, error) {
					seed++
					client := log.Client(seed, c.faults)
					return node{client, client, client.Kill}, nil
				})
			})
		})
	}
}

// TestReplicatedOnCluster runs the suite on three servers on loopback that sync always. Each
// program of the model takes it half a second, so there are few.
func TestReplicatedOnCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("the same on a stream in memory is in TestReplicated")
	}
	const programs = "rapid.checks"
	all := flag.Lookup(programs).Value.String()
	must(t, flag.Set(programs, "15"))
	defer func() { must(t, flag.Set(programs, all)) }()
	c := natstest.New(t)
	admin := c.Connect(0)
	defer admin.Close()
	js, err := jetstream.New(admin)
	must(t, err)
	places, nc := 0, c.Connect(0)
	defer func() { nc.Close() }()
	runSuite(t, func(*testing.T) Place {
		for _, old := range []string{fmt.Sprint("p", places), fmt.Sprintf("p%d_SNAP", places)} {
			if err := js.DeleteStream(context.Background(), old); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
				t.Fatal(err)
			}
		}
		places++
		name := fmt.Sprint("p", places)
		p := replicatedOn(on(memstore.Options{Seed: 4}), func() (node, error) {
			nc.Close() // of the store before
			nc = c.Connect(places % 3)
			l := c.Open(nc, name, natstest.Patient)
			return node{l, l, nc.Close}, nil
		})
		p.Crowded = true
		return p
	})
}

// node is one node's way to a stream, and what ends it.
type node struct {
	replicated.Stream
	replicated.Chunks
	kill func()
}

// replicatedOn returns a place on a stream. The death of the process takes its connection with it;
// a power loss takes what the local store has not synced as well.
func replicatedOn(disk Place, connect func() (node, error)) Place {
	var now node
	var open journal.Store
	end := func(disk func()) {
		now.kill()
		disk()
		_ = open.Close() // it asks no more
	}
	return Place{
		Mode: journal.Always,
		Open: func() (journal.Store, error) {
			local, err := disk.Open()
			if err != nil {
				return nil, err
			}
			if now, err = connect(); err == nil {
				open, err = replicated.Open(context.Background(), replicated.Config{Stream: now.Stream, Chunks: now.Chunks, Local: local, Lease: time.Minute})
			}
			if err != nil {
				return nil, errors.Join(err, local.Close())
			}
			return open, nil
		},
		Crash: func() { end(disk.Crash) },
		Kill:  func() { end(disk.Kill) },
	}
}
