package cluster

import (
	"fmt"
	"sync"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstream"
)

// partition is a log with those who have owned it.
type partition struct {
	w      *world
	number int
	log    *memstream.Log

	mu     sync.Mutex
	reigns map[uint64]*reign // by epoch
	owner  *life             // the last one
	next   string            // the node that the last one has given it to
}

// name names a life over it.
func (p *partition) name(id string, number int) string {
	if !p.w.several() {
		return fmt.Sprint(id, ".", number)
	}
	return fmt.Sprintf("%s/%d.%d", id, p.number, number)
}

// reign is what an owner has noted of its state, in order.
type reign struct {
	name  string
	notes []note
}

// note is the digest of the state that the records up to an index make.
type note struct {
	index  journal.Index
	digest uint64
}

// claimed compares the state of a new owner with that which the owner before it had at the same
// index.
func (p *partition) claimed(l *life) {
	epoch, at, digest := l.log.Epoch(), l.log.Appended(), l.svc.Runtime().Store.Digest()
	p.w.event("%s owns from index %d, epoch %d, digest %x", l.name, at, epoch, digest)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reigns[epoch] != nil {
		p.w.fail("%s has epoch %d, which %s had", l.name, epoch, p.reigns[epoch].name)
	}
	p.reigns[epoch] = &reign{l.name, []note{{at, digest}}}
	p.owner = l
	p.w.count(&p.w.stats.claims)
	if l.n.id == p.next {
		p.w.count(&p.w.stats.taken)
	}
	p.next = ""
	before := p.reigns[epoch-1]
	if before == nil { // its claim is in the log, and it does not know
		return
	}
	for i := len(before.notes) - 1; i >= 0; i-- {
		if n := before.notes[i]; n.index < at {
			if n.digest != digest {
				p.w.fail("%s has digest %x at index %d; %s had %x at %d", l.name, digest, at, before.name, n.digest, n.index)
			}
			p.w.count(&p.w.stats.compared)
			return
		}
	}
}

// released notes that its owner has given it to a node.
func (p *partition) released(to string) {
	p.w.count(&p.w.stats.given)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = to
}

// note notes the state of an owner.
func (p *partition) note(epoch uint64, at journal.Index, digest uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.reigns[epoch]
	r.notes = append(r.notes, note{at, digest})
}

// last returns the last owner, nil for none.
func (p *partition) last() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owner
}

// check reads the whole log of an owner: its time does not go back, and nothing is missing.
func (p *partition) check(l *life) {
	in, time := journal.NewInspector(l.store, 0, journal.Always), int64(0)
	err := in.Blocks(1, func(b *journal.BlockView) error {
		if b.Time < time {
			p.w.fail("the log goes back from %d to %d at index %d", time, b.Time, b.First)
		}
		time = b.Time
		return nil
	}, func(d journal.Damage) error { return &d.DamageError })
	if err != nil {
		p.w.fail("the log at the end: %v", err)
	}
}
