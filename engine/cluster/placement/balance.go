package placement

import "slices"

// switchOwners makes standbys owners, without a copy: where the owner is drained, and where a node
// owns more or less than its bounds.
func (b *board) switchOwners() {
	taker := make([]bool, len(b.nodes))
	for i := range taker {
		taker[i] = b.owners.has[i] < b.owners.low[i]
	}
	for p := range b.parts {
		r := &b.parts[p]
		if r.n == 0 || r.moving() {
			continue
		}
		h := r.seats[0].node
		if k := b.nextOwner(r, taker); k > 0 && b.room(1) {
			b.switchTo(p, k)
			if !b.able[h] { // it takes over last of all
				r.remove(1)
				r.add(seat{node: h})
				b.moves[len(b.moves)-1].To = b.names(r)
			}
		}
	}
	b.chains()
}

// nextOwner returns the seat of the standby that should own the partition in place of its owner, 0
// for none.
func (b *board) nextOwner(r *row, taker []bool) int {
	o, h := &b.owners, r.seats[0].node
	best := 0
	for k, s := range r.all() {
		if k == 0 || !b.able[s.node] {
			continue
		}
		t := s.node
		takes := o.has[t] < o.floor[t] && taker[t] && o.has[h] > o.floor[h]
		gives := o.has[h] > o.high[h] && o.has[t] < o.ceil[t]
		if !takes && !gives && b.able[h] {
			continue
		}
		if best == 0 || o.has[t]-o.floor[t] < o.has[r.seats[best].node]-o.floor[r.seats[best].node] {
			best = k
		}
	}
	return best
}

func (b *board) switchTo(p, k int) {
	r := &b.parts[p]
	h, t := r.seats[0].node, r.seats[k].node
	b.owners.has[h]--
	b.owners.has[t]++
	r.lead(k)
	b.note(p, Switch, t, b.nodes[h].ID)
}

// chains switches owners where no single switch helps: along a chain of nodes, each of which hands
// a partition to the next, so that only the first owns less and only the last owns more.
func (b *board) chains() {
	o := &b.owners
	over := func(i int32) bool { return o.has[i] > o.high[i] }
	short := func(i int32) bool { return o.has[i] < o.low[i] }
	if !slices.ContainsFunc(b.ables, over) && !slices.ContainsFunc(b.ables, short) {
		return
	}
	held := b.held()
	for b.chain(held, over, true, func(v int32) bool { return o.has[v] < o.ceil[v] }) {
	}
	for b.chain(held, short, false, func(u int32) bool { return o.has[u] > o.floor[u] }) {
	}
}

// held returns the partitions of which each node has a complete copy.
func (b *board) held() [][]int32 {
	held := make([][]int32, len(b.nodes))
	for p := range b.parts {
		if r := &b.parts[p]; !r.moving() {
			for _, s := range r.all() {
				held[s.node] = append(held[s.node], int32(p))
			}
		}
	}
	return held
}

// link is how a search came to a node: by a partition of that node or of the one before it.
type link struct{ partition, before int32 }

// chain switches the shortest chain from a node of starts to one of ends, or, backward, the other
// way round. It reports whether there was one, and the bound on moves took it.
func (b *board) chain(held [][]int32, starts func(int32) bool, forward bool, ends func(int32) bool) bool {
	came := make([]link, len(b.nodes))
	for i := range came {
		came[i] = link{-1, -1}
	}
	var queue []int32
	for _, i := range b.ables {
		if starts(i) {
			came[i].before = i
			queue = append(queue, i)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, p := range held[at] {
			to := b.parts[p].all()[1:]
			if owner := b.parts[p].seats[:1]; !forward {
				to = owner
			} else if owner[0].node != at {
				continue
			}
			for _, s := range to {
				if !b.able[s.node] || came[s.node].before >= 0 {
					continue
				}
				came[s.node] = link{p, at}
				if ends(s.node) {
					return b.follow(came, s.node, forward)
				}
				queue = append(queue, s.node)
			}
		}
	}
	return false
}

// follow switches the chain that a search came to node by: all of it, or a later plan might undo
// the part. A chain that is longer than any plan may be is left.
func (b *board) follow(came []link, node int32, forward bool) bool {
	n := 0
	for i := node; came[i].partition >= 0; i = came[i].before {
		n++
	}
	if n > b.opts.MaxMoves && b.opts.MaxMoves > 0 && !b.placing || !b.room(n) {
		return false
	}
	for i := node; came[i].partition >= 0; i = came[i].before {
		to := i
		if !forward {
			to = came[i].before
		}
		b.switchTo(int(came[i].partition), b.parts[came[i].partition].find(to))
	}
	return true
}

// spreadCopies moves copies of standbys where a node has more or fewer copies than its bounds. A
// node that has too few gets its whole share. Zones stay as distinct as they are.
func (b *board) spreadCopies() {
	c := &b.copies
	for p := range b.parts { // what will be given up does not count
		if r := &b.parts[p]; b.good(r) > b.want {
			c.has[r.seats[b.surplus(r)].node]--
		}
	}
	hasFloor := func(i int32) bool { return c.has[i] >= c.floor[i] }
	hasCeil := func(i int32) bool { return c.has[i] >= c.ceil[i] }
	takers := slices.DeleteFunc(slices.Clone(b.ables), func(i int32) bool { return c.has[i] >= c.low[i] })
	roomy := slices.DeleteFunc(slices.Clone(b.ables), hasCeil)
	over := 0
	for _, i := range b.ables {
		if c.has[i] > c.high[i] {
			over++
		}
	}
	for p := range b.parts {
		if over+len(takers) == 0 || b.full() {
			return
		}
		r := &b.parts[p]
		if r.n == 0 || r.moving() || b.good(r) > b.want { // it is on its way already
			continue
		}
		for k := r.n - 1; k >= min(1, b.want-1) && !r.moving(); k-- {
			h := r.seats[k].node
			switch {
			case !b.able[h]:
			case len(roomy) > 0 && c.has[h] > c.high[h]:
				if b.give(p, k, roomy, c.ceil) {
					roomy = slices.DeleteFunc(roomy, hasCeil)
					if c.has[h] == c.high[h] {
						over--
					}
				}
			case len(takers) > 0 && c.has[h] > c.floor[h]:
				if b.give(p, k, takers, c.floor) {
					takers = slices.DeleteFunc(takers, hasFloor)
				}
			}
		}
	}
}

// surplus returns the seat of the copy that is one too many: the owner's if a partition has but
// one, because it is about to move.
func (b *board) surplus(r *row) int {
	if b.want == 1 {
		return 0
	}
	return r.n - 1
}

// give moves the copy of a seat to the best node that has fewer copies than its bound. That of an
// owner stays until the new one is complete and owns the partition.
func (b *board) give(p, k int, among []int32, bound []int) bool {
	r := &b.parts[p]
	c, ok := b.pick(p, k, among, bound)
	if !ok || !c.within || !c.newZone && b.isNewZone(r.all(), r.seats[k].node, k) || !b.takes(c.node) {
		return false
	}
	if k == 0 {
		b.copies.has[r.seats[0].node]--
		k = -1
	}
	b.copy(p, k, c.node)
	return true
}
