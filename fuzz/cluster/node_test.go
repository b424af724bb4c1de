package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"trunkline/engine/journal/memstore"
	"trunkline/engine/journal/replicated/memstream"
)

// node is a machine: a disk, clocks, networks, and one process after the other.
type node struct {
	w        *world
	id       string
	disk     *memstore.Disk
	clock    clock
	inFlight int
	dice     *dice // for the time between two processes

	mu     sync.Mutex // guards what follows
	life   *life      // nil between two processes
	lives  int
	held   bool            // no process is started
	paused bool            // the process does not go on
	asleep []chan struct{} // what would, in the order in which it stopped
	faults memstream.Faults
	cut    memstream.Cut
}

// clockSpread is how much faster, in thousandths, the clock of one node may run than that of
// another: less than the margin of a lease.
const clockSpread = 90

func newNode(w *world, at int) *node {
	n := &node{w: w, id: fmt.Sprint("n", at), inFlight: 1 + w.dice.below(4), dice: w.newDice("node", at)}
	n.disk = memstore.New(memstore.Options{Seed: w.seed<<8 + uint64(at)})
	n.clock.began, n.clock.fast = time.Now(), int64(n.dice.below(clockSpread))
	n.faults = fine
	return n
}

// run starts one process after the other.
func (n *node) run() {
	for n.w.open() {
		time.Sleep(n.dice.upTo(term / 2))
		if l := n.start(); l != nil {
			l.serve()
			l.bury()
		}
	}
}

// start makes the next process, nil while there is to be none.
func (n *node) start() *life {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held || !n.w.open() {
		return nil
	}
	n.lives++
	l := newLife(n, n.w.part, n.lives)
	l.net.SetFaults(n.faults)
	l.net.Part(n.cut)
	n.life = l
	return l
}

// alive returns the process, nil for none.
func (n *node) alive() *life {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life
}

// kill ends the process at once. power takes away what is on the disk and not synced.
func (n *node) kill(power bool) {
	n.mu.Lock()
	l := n.life
	n.life = nil
	n.mu.Unlock()
	if l == nil {
		return
	}
	l.net.Kill()
	if power {
		n.disk.Crash()
	} else {
		n.disk.Kill()
	}
	l.end()
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

// part cuts ways to the stream.
func (n *node) part(cut memstream.Cut) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
	if n.life != nil {
		n.life.net.Part(cut)
	}
}

// disturb changes the network to the stream.
func (n *node) disturb(f memstream.Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = f
	if n.life != nil {
		n.life.net.SetFaults(f)
	}
}

// fine is a network without faults.
var fine = memstream.Faults{Delay: 2 * time.Millisecond}
