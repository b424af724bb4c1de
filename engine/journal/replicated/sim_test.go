package replicated_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstream"
	"trunkline/fuzz/rounds"
)

// world is a cluster in which everything goes wrong that a seed decides.
type world struct {
	t     failer
	rng   dice
	log   *memstream.Log
	nodes []*member
	acked map[journal.Index]string
	fence map[uint64]bool
	epoch map[uint64]bool
	count int
	trace io.Writer

	snapshots atomic.Int64

	tail *standby
}

// failer is what a test and a property have in common.
type failer interface {
	Fatalf(format string, args ...any)
}

// dice decides what happens.
type dice interface {
	// IntN returns a number below n.
	IntN(n int) int
}

// standby follows the log for as long as a world exists.
type standby struct {
	*member
	follows *follower
}

// simulate runs a world and checks it at its end. seed is the chance of its networks and disks.
func simulate(t failer, seed uint64, rng dice, steps int, trace io.Writer) {
	log := memstream.New()
	log.SetMaxData([]int{0, 250, 60}[rng.IntN(3)]) // of blocks of up to 512 bytes
	w := &world{t: t, rng: rng, log: log, trace: trace,
		acked: map[journal.Index]string{}, fence: map[uint64]bool{}, epoch: map[uint64]bool{}}
	for i := range uint64(3) {
		n := newMember(log, seed<<8+i)
		n.inFlight = 4 - int(seed+i)%4
		w.nodes = append(w.nodes, n)
	}
	w.tail = &standby{member: newMember(log, seed<<8+9)}
	defer w.close()
	w.stand()
	for range steps {
		synctest.Wait()
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
		w.snapshot(n)
	case k < 12:
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		err := n.store.Barrier(ctx)
		cancel()
		w.event("barrier %v", err == nil)
	default:
		for range w.rng.IntN(30) {
			w.count++
			rec := strconv.Itoa(w.count)
			n.state[n.journal.Enqueue([]byte(rec))] = rec
		}
		n.journal.Flush() // blocks end at their limit or here, however fast the committer is
	}
}

// snapshot has a node write its state while everything goes on.
func (w *world) snapshot(n *member) {
	state, last, log := maps.Clone(n.state), n.journal.Appended(), n.journal
	go func() {
		err := log.WriteSnapshot(last, func(to io.Writer) error { return json.NewEncoder(to).Encode(state) })
		if err == nil {
			w.snapshots.Add(1)
		}
	}()
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
		w.t.Fatalf("the standby: %v", err)
	}
	w.tail.follows = follow(w.tail.member, 0)
}

// close ends what a failure has left open.
func (w *world) close() {
	w.tail.follows.quit()
	for _, n := range append(w.nodes, w.tail.member) {
		n.die()
	}
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
	w.event("end: %d records, %d acknowledged, %d snapshots, %d claims, %d followed, %d messages, fence %d",
		len(last.state), len(w.acked), w.snapshots.Load(), len(w.fence), len(w.tail.follows.state), w.log.Len(), last.store.Fence())
	last.die()
}

// TestSimulation: whatever happens to three nodes, what was acknowledged is in the log, at its
// index and once; nothing else is acknowledged.
func TestSimulation(t *testing.T) {
	seeds := uint64(rounds.Of(100, 1250))
	var sum countingTrace
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			var out countingTrace
			simulate(t, seed, rand.New(rand.NewPCG(seed, 1)), 60, &out)
			sum.records += out.records
			sum.acked += out.acked
			sum.snapshots += out.snapshots
			sum.claims += out.claims
		})
	}
	if n := int(seeds); sum.acked < n*20 || sum.records < sum.acked || sum.snapshots < n/4 || sum.claims < n*2 {
		t.Errorf("%d worlds: %+v: they test nothing", seeds, sum)
	}
	t.Logf("%d worlds: %+v", seeds, sum)
}

// countingTrace keeps the last event.
type countingTrace struct{ records, acked, snapshots, claims int }

// Write implements io.Writer.
func (c *countingTrace) Write(p []byte) (int, error) {
	// Other events have another form and count nothing.
	_, _ = fmt.Sscanf(string(p), "end: %d records, %d acknowledged, %d snapshots, %d claims", &c.records, &c.acked, &c.snapshots, &c.claims)
	return len(p), nil
}

// drawn is dice that a property can throw again.
type drawn struct{ t *rapid.T }

// IntN implements dice.
func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "n") }

// TestModel is TestSimulation with a world that is made smaller when it fails.
func TestModel(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		// In a bubble a test has no deadline, which rapid would ask for.
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			simulate(rt, rapid.Uint64Range(0, 1<<40).Draw(rt, "seed"), drawn{rt}, rapid.IntRange(1, 40).Draw(rt, "steps"), nil)
		})
	})
}

// TestSameSeedSameWorld: a world repeats, so that a seed that fails can be looked at.
func TestSameSeedSameWorld(t *testing.T) {
	for seed := range uint64(20) {
		var traces [2]bytes.Buffer
		for i := range traces {
			inBubble(t, func(t *testing.T) {
				simulate(t, seed, rand.New(rand.NewPCG(seed, 1)), 60, &traces[i])
			})
		}
		if traces[0].String() != traces[1].String() || traces[0].Len() == 0 {
			t.Errorf("seed %d has two worlds:\n%s\nand\n%s", seed, &traces[0], &traces[1])
		}
	}
}
