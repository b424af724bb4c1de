package replicated_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstore"
	"trunkline/fuzz/kit/memstream"
)

// lease is that of the nodes of these tests.
const lease = time.Second

// member is one node: a disk, a way to the log, and what is open there.
type member struct {
	log    *memstream.Log
	disk   *memstore.Disk
	client *memstream.Client
	seed   uint64

	inFlight int

	store   *replicated.Store
	journal *journal.Log
	state   map[journal.Index]string
	durable atomic.Uint64 // by OnDurable
}

func newMember(log *memstream.Log, seed uint64) *member {
	n := &member{log: log, disk: memstore.New(memstore.Options{Seed: seed}), seed: seed << 16, inFlight: 4}
	n.connect()
	return n
}

// connect gives the node a new way to the log, without faults.
func (n *member) connect() {
	n.seed++
	n.client = n.log.Client(n.seed, memstream.Faults{})
}

// open opens the store alone.
func (n *member) open() error {
	local, err := n.disk.Open()
	if err != nil {
		return err
	}
	n.store, err = replicated.Open(context.Background(), replicated.Config{Stream: n.client, Chunks: n.client, Local: local, Lease: lease, InFlight: n.inFlight})
	if err != nil {
		return errors.Join(err, local.Close())
	}
	return nil
}

// claim opens the journal and takes the log over.
func (n *member) claim() error {
	if err := n.open(); err != nil {
		return err
	}
	n.durable.Store(0)
	n.state = make(map[journal.Index]string)
	log, err := journal.Open(n.store, journal.Config{MaxBlockBytes: 512, OnDurable: n.durable.Store})
	if err != nil {
		return errors.Join(err, n.store.Close())
	}
	from, err := log.LoadSnapshot(func(r io.Reader, _ journal.Index, _ uint64) error { return json.NewDecoder(r).Decode(&n.state) })
	if err == nil {
		err = log.Replay(from, func(i journal.Index, rec []byte) error { n.state[i] = string(rec); return nil })
	}
	if err != nil {
		return errors.Join(err, log.Close())
	}
	n.durable.Store(log.Durable())
	n.journal = log
	return nil
}

func (n *member) append(rec string) journal.Index {
	i := n.journal.Append([]byte(rec))
	n.state[i] = rec
	return i
}

// snapshot writes the state as of now.
func (n *member) snapshot() error {
	state := maps.Clone(n.state)
	return n.journal.WriteSnapshot(n.journal.Appended(), func(w io.Writer) error { return json.NewEncoder(w).Encode(state) })
}

// die ends the process of the node.
func (n *member) die() {
	n.client.Kill()
	n.disk.Kill()
	if n.store != nil {
		_ = n.store.Close()
	}
	if n.journal != nil {
		_ = n.journal.Close()
	}
	n.store, n.journal = nil, nil
	n.connect()
}

// members returns some nodes of one log, with the first as its owner.
func members(t *testing.T, count int) []*member {
	t.Helper()
	log := memstream.New()
	var out []*member
	for i := range count {
		out = append(out, newMember(log, uint64(i+1)))
	}
	must(t, out[0].claim())
	t.Cleanup(func() {
		for _, n := range out {
			n.die()
		}
	})
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// barrier waits until everything that a node has appended is durable.
func (n *member) barrier() error { return n.journal.Barrier(context.Background()) }
