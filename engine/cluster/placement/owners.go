package placement

import "slices"

// link is how a search came to a node: by a partition that the node before owns. Before is -1 where
// the search began.
type link struct{ partition, before int }

// spreadOwners switches owners along chains of nodes, each of which hands a partition to the next,
// so that only the first owns less and only the last owns more. The first has at least two more
// than the last. From where no chain goes on, nodes are as even as their copies let them be: they
// are closed, with all that the search has reached from there.
func (b *board) spreadOwners() {
	held := make([][]int, len(b.nodes))
	for p, row := range b.rows {
		for _, i := range row {
			held[i] = append(held[i], p)
		}
	}
	closed := make([]bool, len(b.nodes))
	for {
		most := 0
		for _, i := range b.ables {
			if !closed[i] {
				most = max(most, b.owned[i])
			}
		}
		if most < 2 {
			return
		}
		came, queue, last := b.search(held, closed, most)
		if last < 0 {
			for _, i := range queue {
				closed[i] = true
			}
			continue
		}
		b.follow(came, last)
	}
}

// search goes from the open nodes that own the most to the nearest that owns at least two fewer. It
// returns how it came to each node, all nodes that it has reached, and the last one, -1 if there is
// none.
func (b *board) search(held [][]int, closed []bool, most int) (came map[int]link, queue []int, last int) {
	came = make(map[int]link)
	for _, i := range b.ables {
		if !closed[i] && b.owned[i] == most {
			came[i] = link{before: -1}
			queue = append(queue, i)
		}
	}
	for at := 0; at < len(queue); at++ {
		from := queue[at]
		for _, p := range held[from] {
			if b.rows[p][0] != from {
				continue
			}
			for _, to := range b.rows[p][1:] {
				if _, known := came[to]; known || closed[to] || !b.able(to) {
					continue
				}
				came[to] = link{p, from}
				if b.owned[to] <= most-2 {
					return came, queue, to
				}
				queue = append(queue, to)
			}
		}
	}
	return came, queue, -1
}

// follow switches the owners of a chain, from its last node on.
func (b *board) follow(came map[int]link, last int) {
	b.owned[last]++
	for to := last; ; {
		l := came[to]
		if l.before < 0 {
			b.owned[to]--
			return
		}
		lead(b.rows[l.partition], slices.Index(b.rows[l.partition], to))
		to = l.before
	}
}
