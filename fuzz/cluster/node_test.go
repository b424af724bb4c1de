package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/fuzz/kit/memstore"
	"trunkline/fuzz/kit/memstream"
)

// node is a machine: a disk, clocks, networks, and one process after the other.
type node struct {
	w        *world
	id       string
	seats    []*seat // by partition
	clock    clock
	inFlight int
	dice     *dice

	confirmed atomic.Int64 // by any partition that it owns, for a bug

	mu     sync.Mutex      // guards what follows
	held   bool            // no process is started
	paused bool            // the process does not go on
	asleep []chan struct{} // what would, in the order in which it stopped
	faults memstream.Faults
}

// clockSpread is how much faster, in thousandths, the clock of one node may run than that of
// another: less than the margin of a lease.
const clockSpread = 90

func newNode(w *world, at int) *node {
	n := &node{w: w, id: fmt.Sprint("n", at), inFlight: 1 + w.dice.below(4), dice: w.newDice("node", at)}
	for i, p := range w.parts {
		s := &seat{n: n, part: p, dice: n.dice, disk: memstore.New(memstore.Options{Seed: w.seed<<8 + uint64(i<<4+at)})}
		if i > 0 {
			s.dice = w.newDice("seat", at, i)
		}
		n.seats = append(n.seats, s)
	}
	n.clock.began, n.clock.fast = time.Now(), int64(n.dice.below(clockSpread))
	n.faults = fine
	return n
}

// kill ends the process at once. power takes away what is on the disk and not synced.
func (n *node) kill(power bool) {
	for _, s := range n.seats {
		s.kill(power)
	}
}

// ownsAll reports whether the process owns all partitions.
func (n *node) ownsAll() bool {
	return !slices.ContainsFunc(n.seats, func(s *seat) bool {
		l := s.alive()
		return l == nil || l != s.part.last()
	})
}

// hold has no process started, or some again.
func (n *node) hold(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = on
}

// pause stops the process for a time. Its clocks go on.
func (n *node) pause(t time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.paused {
		n.paused = true
		time.AfterFunc(t, n.wake)
	}
}

// wake ends a pause. What was stopped goes on at different times.
func (n *node) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, resume := range n.asleep {
		time.AfterFunc(n.dice.upTo(time.Millisecond), func() { close(resume) })
	}
	n.paused, n.asleep = false, nil
}

// awake returns once the node is not paused, or ctx has ended.
func (n *node) awake(ctx context.Context) {
	for ctx.Err() == nil {
		n.mu.Lock()
		if !n.paused {
			n.mu.Unlock()
			return
		}
		resume := make(chan struct{})
		n.asleep = append(n.asleep, resume)
		n.mu.Unlock()
		select {
		case <-resume:
		case <-ctx.Done():
		}
	}
}

// part cuts ways to the streams of some of its partitions.
func (n *node) part(cut memstream.Cut, seats ...*seat) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range seats {
		s.cut = cut
		if s.life != nil {
			s.life.net.Part(cut)
		}
	}
}

// disturb changes the network to the stream.
func (n *node) disturb(f memstream.Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = f
	for _, s := range n.seats {
		if s.life != nil {
			s.life.net.SetFaults(f)
		}
	}
}

// fine is a network without faults.
var fine = memstream.Faults{Delay: 2 * time.Millisecond}
