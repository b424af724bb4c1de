package replicated_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/engine/journal/replicated/memstream"
)

// world is a cluster in which everything goes wrong that a seed decides.
type world struct {
	t     testing.TB
	rng   *rand.Rand
	log   *memstream.Log
	nodes []*member
	acked map[journal.Index]string
	fence map[uint64]bool
	epoch map[uint64]bool
	count int
	trace io.Writer
	tail  *standby
}

// standby follows the log for as long as a world exists.
type standby struct {
	*member
	follows *follower
}

// simulate runs a world of one seed and checks it at its end.
func simulate(t testing.TB, seed uint64, steps int, trace io.Writer) {
	log := memstream.New()
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), log: log, trace: trace,
		acked: map[journal.Index]string{}, fence: map[uint64]bool{}, epoch: map[uint64]bool{}}
	for i := range uint64(3) {
		w.nodes = append(w.nodes, newMember(log, seed<<8+i))
	}
	w.tail = &standby{member: newMember(log, seed<<8+9)}
	w.stand()
	for range steps {
		w.step(w.nodes[w.rng.IntN(len(w.nodes))])
		time.Sleep(time.Duration(w.rng.IntN(3)) * 7 * time.Millisecond)
		for _, n := range w.nodes {
			w.collect(n)
		}
	}
	w.end(seed)
}

// step does one thing to a node.
func (w *world) step(n *member) {
	switch k := w.rng.IntN(20); {
	case k < 2:
		w.die(n)
	case k < 5:
		w.claim(n)
	case k < 6:
		n.client.Part(memstream.Cut(w.rng.IntN(4)))
	case k < 8:
		n.client.Part(0)
	case k < 9:
		n.client.SetFaults(memstream.Faults{
			Lose: w.rng.IntN(300), LoseAnswer: w.rng.IntN(300), Double: w.rng.IntN(500), Stale: w.rng.IntN(300),
			Delay: time.Duration(w.rng.IntN(60)) * time.Millisecond,
		})
	case k < 10:
		n.client.SetFaults(memstream.Faults{})
	case n.journal == nil:
	case k < 11:
		if err := n.snapshot(); err != nil {
			w.event("snapshot of %d: %v", n.seed>>24&0xff, n.journal.Err() != nil)
		}
	case k < 12:
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		err := n.store.Barrier(ctx)
		cancel()
		w.event("barrier %v", err == nil)
	default:
		for range w.rng.IntN(30) {
			w.count++
			n.append(strconv.Itoa(w.count))
		}
	}
}

func (w *world) event(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, format+"\n", args...)
	}
}

func (w *world) die(n *member) {
	n.client.Kill()
	w.collect(n)
	if n.store != nil && w.rng.IntN(2) == 0 {
		n.disk.Crash()
	}
	n.die()
}

// claim has a node take the log over, if nothing comes between.
func (w *world) claim(n *member) {
	w.die(n)
	err := n.claim()
	if damage := (*journal.DamageError)(nil); errors.As(err, &damage) {
		w.t.Fatalf("the log is damaged: %v", err)
	}
	if err != nil {
		w.event("no claim: %v", errors.Is(err, replicated.ErrNotOwner))
		n.disk.Kill()
		n.journal = nil
		return
	}
	if w.fence[n.store.Fence()] || w.epoch[n.journal.Epoch()] {
		w.t.Fatalf("fence %d or epoch %d was there before", n.store.Fence(), n.journal.Epoch())
	}
	w.fence[n.store.Fence()], w.epoch[n.journal.Epoch()] = true, true
	w.event("claim at %d", n.store.Fence())
}

// collect notes what a node has acknowledged.
func (w *world) collect(n *member) {
	if n.journal == nil {
		return
	}
	for i := n.durable.Load(); i > 0; i-- {
		rec, ok := n.state[i]
		if !ok {
			continue
		}
		if old, ok := w.acked[i]; ok && old != rec {
			w.t.Fatalf("index %d was acknowledged as %q and as %q", i, old, rec)
		} else if ok {
			break
		}
		w.acked[i] = rec
	}
}

// stand has the standby follow from where it is.
func (w *world) stand() {
	if err := w.tail.open(); err != nil {
		w.t.Fatal(err)
	}
	w.tail.follows = follow(w.tail.member, 0)
}

// end heals everything and compares the log with what was acknowledged.
func (w *world) end(seed uint64) {
	err := w.tail.follows.stop()
	if err != nil && !errors.Is(err, replicated.ErrRebuild) {
		w.t.Fatalf("seed %d: the standby: %v", seed, err)
	}
	w.tail.die()
	for _, n := range w.nodes {
		w.die(n)
	}
	time.Sleep(5 * time.Second) // whatever was on its way has arrived
	last := w.nodes[0]
	if err := last.claim(); err != nil {
		w.t.Fatalf("seed %d: the last claim: %v", seed, err)
	}
	seen := map[string]journal.Index{}
	for i, rec := range last.state {
		if old, ok := seen[rec]; ok {
			w.t.Fatalf("seed %d: record %s is at %d and at %d", seed, rec, old, i)
		}
		seen[rec] = i
	}
	for i, rec := range w.acked {
		if last.state[i] != rec {
			w.t.Fatalf("seed %d: record %d was acknowledged as %q and is %q", seed, i, rec, last.state[i])
		}
	}
	for i, rec := range w.tail.follows.state {
		if last.state[i] != rec {
			w.t.Fatalf("seed %d: the standby saw record %d as %q, and it is %q", seed, i, rec, last.state[i])
		}
	}
	w.event("end: %d records, %d acknowledged, %d claims, standby %d", len(last.state), len(w.acked), len(w.fence), len(w.tail.follows.state))
	last.die()
}

// TestSimulation: whatever happens to three nodes, what was acknowledged is in the log, at its
// index and once; nothing else is acknowledged. TRUNKLINE_SIM_SEEDS sets how many worlds there are.
func TestSimulation(t *testing.T) {
	seeds := uint64(300)
	if s := os.Getenv("TRUNKLINE_SIM_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 32)
		must(t, err)
		seeds = n
	}
	records, acked := 0, 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			var out countingTrace
			simulate(t, seed, 60, &out)
			records += out.records
			acked += out.acked
		})
	}
	if acked < int(seeds)*20 || records < acked {
		t.Errorf("%d worlds acknowledged %d of %d records: they test nothing", seeds, acked, records)
	}
	t.Logf("%d worlds, %d records, %d acknowledged", seeds, records, acked)
}

// countingTrace keeps the last event.
type countingTrace struct{ records, acked, claims, standby int }

// Write implements io.Writer.
func (c *countingTrace) Write(p []byte) (int, error) {
	// Other events have another form and count nothing.
	_, _ = fmt.Sscanf(string(p), "end: %d records, %d acknowledged, %d claims, standby %d", &c.records, &c.acked, &c.claims, &c.standby)
	return len(p), nil
}
