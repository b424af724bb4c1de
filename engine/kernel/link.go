package kernel

import (
	"cmp"
	"fmt"
	"slices"
)

// ranked is a node or a reference with its place in an order.
type ranked struct {
	key, tie uint64
	i        uint32
}

// rank sorts, which is nothing to do for what comes in order.
func rank(r []ranked) []ranked {
	order := func(a, b ranked) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(a.tie, b.tie)
	}
	if !slices.IsSortedFunc(r, order) {
		slices.SortFunc(r, order)
	}
	return r
}

// byStamp makes a key of a stamp, which may be negative.
func byStamp(stamp int64) uint64 { return uint64(stamp) ^ 1<<63 }

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

// link builds the creation order and the scheduler's lists and heaps from the rows and their nodes.
func (k *Kernel) link() error {
	k.sched.loose = false
	rows := rank(k.byCreation())
	var leases, done []ranked
	var fifo, back [NumPriorities][]ranked
	last := uint64(0)
	for _, e := range rows {
		if e.key == last {
			return fmt.Errorf("%w: two processes have the creation sequence %d", ErrBadSnapshot, last)
		}
		last = e.key
		k.order.append(e.key, e.i)
		_, r := k.rowOf(e.i)
		n := k.sched.nodes.at(r.node)
		switch n.where {
		case queued:
			fifo[n.priority] = append(fifo[n.priority], ranked{key: n.ready, i: r.node})
		case returned:
			back[n.priority] = append(back[n.priority], ranked{key: n.ready, i: r.node})
		case leased:
			leases = append(leases, ranked{byStamp(n.stamp), n.ready, r.node})
		case completed:
			done = append(done, ranked{byStamp(n.stamp), n.ready, r.node})
		}
	}
	k.sched.fill(&k.sched.leases, leases)
	k.sched.fill(&k.sched.completed, done)
	for p := range k.sched.ready {
		q := &k.sched.ready[p]
		k.sched.fill(&q.fifo, fifo[p])
		for pos, e := range rank(back[p]) { // in order, which is a heap
			q.back = append(q.back, e.i)
			k.sched.nodes.at(e.i).prev = uint32(pos)
		}
	}
	return nil
}

// byCreation returns the references of all rows with their creation sequences.
func (k *Kernel) byCreation() []ranked {
	rows := make([]ranked, 0, k.total)
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

// fill makes l, which is empty, of the nodes in r.
func (s *scheduler) fill(l *list, r []ranked) {
	for _, e := range rank(r) {
		l.pushBack(&s.nodes, e.i)
	}
}

// load stores a user's log. One that is there already had gone and was made again while the snapshot was written.
func (l *limiter) load(g *snapshotStamps) error {
	s, tag := l.home(g.user)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(tag, g.user); i != none {
		if s.recorded.at(i) >= g.index {
			return fmt.Errorf("%w: the log of user %q is in it twice", ErrBadSnapshot, g.user)
		}
		l.applyDrop(s, tag, i)
	}
	i := s.add(tag, g.user, g.last)
	l.live.Add(1)
	s.log(i).restore(g)
	s.recorded.set(i, g.index)
	s.touch(i, l.activity.Add(1))
	return nil
}

// restore fills the ring of g, which is empty. The counts start too high; expire brings them down.
func (g *rateLog) restore(from *snapshotStamps) {
	g.n = from.n
	g.ring = make([]uint32, max(g.n, minStamps))
	ages, stamp := from.ages, uint32(from.last)
	g.ring[g.n-1] = stamp
	for i := g.n - 1; i > 0; i-- {
		stamp -= uint32(ages.uint(uint64(windowMs[Hour-1])))
		g.ring[i-1] = stamp
	}
	for w := range g.counts {
		g.counts[w] = g.n
	}
}

// link orders the logs by their last stamps, as far as activity is known, and returns the latest in nanoseconds.
func (l *limiter) link() (latest int64) {
	type log struct {
		ranked
		s *rateShard
	}
	var logs []log
	for n := range l.shards {
		s := &l.shards[n]
		s.mu.Lock()
		for i := range s.used {
			if g := s.log(i); g.live {
				logs = append(logs, log{ranked{byStamp(g.last), s.recorded.at(i), i}, s})
				latest = max(latest, g.last*nsPerMs)
			}
		}
		s.mu.Unlock()
	}
	slices.SortFunc(logs, func(a, b log) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.tie, b.tie)) })
	for _, e := range logs {
		e.s.mu.Lock()
		e.s.touch(e.i, l.activity.Add(1))
		e.s.mu.Unlock()
	}
	return latest
}
