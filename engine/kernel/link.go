package kernel

import (
	"fmt"
	"sync"
)

// loosen gives up everything that link builds. Caller holds the scheduling lock; so for link.
func (k *Kernel) loosen() {
	s := &k.sched
	if s.loose {
		return
	}
	s.loose = true
	k.order = order{}
	s.leases.init()
	s.completed.init()
	for i := range s.ready {
		s.ready[i] = readyQueue{}
		s.ready[i].fifo.init()
	}
}

// restore puts node i, which is nowhere, where the snapshot has it.
func (s *scheduler) restore(i uint32, c *snapshotRow) {
	n := s.nodes.at(i)
	n.where, n.ready, n.stamp = c.where, c.ReadySeq, c.Expiry
	if c.where == queued || c.where == returned {
		s.depth++
	}
}

// link builds the creation order, and the scheduler's lists and heaps, from the rows and the nodes.
func (k *Kernel) link() error {
	k.sched.loose = false
	var beside sync.WaitGroup
	beside.Go(k.sched.link)
	latest := int64(0)
	beside.Go(func() { latest = k.rates.link() })
	err := k.linkOrder()
	beside.Wait()
	k.now = max(k.now, latest)
	return err
}

func (k *Kernel) linkOrder() error {
	last := uint64(0)
	k.order.reserve(k.total, k.huge)
	for _, e := range rank(k.byCreation(), k.huge) {
		if e.key == last {
			return fmt.Errorf("%w: two processes have the creation sequence %d", errBadSnapshot, last)
		}
		last = e.key
		k.order.append(e.key, e.i)
	}
	return nil
}

// byCreation returns the references of all rows with their creation sequences.
func (k *Kernel) byCreation() []ranked {
	rows := hugeSlice[ranked](k.huge, k.total)[:0]
	for i := range k.shards {
		sh := &k.shards[i]
		for slot := range sh.used {
			if r := sh.row(slot); r.created != 0 {
				rows = append(rows, ranked{key: r.created, i: slot<<k.shardBits | uint32(i)})
			}
		}
	}
	return rows
}

// places counts, or lists, the nodes that have a place in a list or heap.
type places[T any] struct {
	leases, completed T
	fifo, back        [NumPriorities]T
}

// of returns where the node n stands, nil if in no list or heap.
func (p *places[T]) of(n *node) *T {
	switch n.where {
	case queued:
		return &p.fifo[n.priority]
	case returned:
		return &p.back[n.priority]
	case leased:
		return &p.leases
	case completed:
		return &p.completed
	}
	return nil
}

// link builds the lists and heaps, which are empty, from the nodes, in the order of memory.
func (s *scheduler) link() {
	in := s.places()
	s.fill(&s.leases, s.rankByStamp(in.leases))
	s.fill(&s.completed, s.rankByStamp(in.completed))
	for p := range s.ready {
		q := &s.ready[p]
		s.fill(&q.fifo, rank(in.fifo[p], s.nodes.huge))
		for pos, e := range rank(in.back[p], s.nodes.huge) { // in order, which is a heap
			q.back = append(q.back, e.i)
			s.nodes.at(e.i).prev = uint32(pos)
		}
	}
}

// places lists the nodes with their ready sequences. It counts first, to hold the memory once.
func (s *scheduler) places() (in places[[]ranked]) {
	var count places[int]
	for i := range s.nodes.used {
		if n := count.of(s.nodes.at(i)); n != nil {
			*n++
		}
	}
	room := func(n int) []ranked { return hugeSlice[ranked](s.nodes.huge, n)[:0] }
	in.leases, in.completed = room(count.leases), room(count.completed)
	for p := range in.fifo {
		in.fifo[p], in.back[p] = room(count.fifo[p]), room(count.back[p])
	}
	for i := range s.nodes.used {
		if list := in.of(s.nodes.at(i)); list != nil {
			*list = append(*list, ranked{s.nodes.at(i).ready, i})
		}
	}
	return in
}

// rankByStamp sorts nodes, which come with their ready sequences, by stamp and then by sequence.
func (s *scheduler) rankByStamp(r []ranked) []ranked {
	r = rank(r, s.nodes.huge)
	for j := range r {
		r[j].key = byStamp(s.nodes.at(r[j].i).stamp)
	}
	return rank(r, s.nodes.huge)
}

// fill makes l, which is empty, of the nodes in r.
func (s *scheduler) fill(l *list, r []ranked) {
	for _, e := range r {
		l.pushBack(&s.nodes, e.i)
	}
}

// load stores a user's log; h is the hash of the user. One that is there already was dropped and
// made again during the snapshot. The caller has the shard for itself.
func (l *limiter) load(d *changeReader, h uint64) error {
	g := d.stamps()
	if !d.ended() {
		return fmt.Errorf("%w: log record", errBadSnapshot)
	}
	s, tag := l.homeBy(h)
	if i := s.find(tag, g.user); i != none {
		if s.recorded.at(i) >= g.index {
			return fmt.Errorf("%w: the log of user %q is in it twice", errBadSnapshot, g.user)
		}
		l.applyDrop(s, tag, i)
	}
	i := s.add(tag, g.user, g.last)
	l.live.Add(1)
	s.log(i).restore(&g)
	s.recorded.set(i, g.index)
	s.touch(i, l.activity.Add(1))
	return nil
}

// restore fills the ring of g, which is empty. The counts start too high; expire brings them down.
func (g *rateLog) restore(from *snapshotStamps) {
	g.n = from.n
	g.ring = make([]uint32, max(g.n, minStamps))
	gaps, stamp := from.gaps, uint32(from.last)
	g.ring[g.n-1] = stamp
	for i := g.n - 1; i > 0; i-- {
		stamp -= uint32(gaps.uint(uint64(windowMs[Hour-1])))
		g.ring[i-1] = stamp
	}
	for w := range g.counts {
		g.counts[w] = g.n
	}
}

// link orders the logs by their last stamps, if activity is known, and returns the latest in
// nanoseconds.
func (l *limiter) link() (latest int64) {
	logs := make([]ranked, 0, l.live.Load())
	for n := range l.shards {
		s := &l.shards[n]
		s.mu.Lock()
		for i := range s.used {
			if s.log(i).live {
				logs = append(logs, ranked{s.recorded.at(i), i*rateShards + uint32(n)})
			}
		}
		s.mu.Unlock()
	}
	logs = rank(logs, nil)
	for j, e := range logs {
		last := l.shards[e.i%rateShards].log(e.i / rateShards).last
		logs[j].key, latest = byStamp(last), max(latest, last*nsPerMs)
	}
	for _, e := range rank(logs, nil) {
		s := &l.shards[e.i%rateShards]
		s.mu.Lock()
		s.touch(e.i/rateShards, l.activity.Add(1))
		s.mu.Unlock()
	}
	return latest
}
