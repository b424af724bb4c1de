package control

import (
	"fmt"
	"slices"
	"strings"
)

// plan returns which nodes are to own which partitions instead of their owners, so that the nodes
// own as many each, or one more. Only nodes that can take a partition over get it, and only what
// has to move moves. The result is the same in whatever order the nodes are.
func (all states) plan(partitions int) (map[int]string, error) {
	all = slices.SortedFunc(slices.Values(all), func(a, b nodeState) int { return strings.Compare(a.Node, b.Node) })
	for i := 1; i < len(all); i++ {
		if all[i].Node == all[i-1].Node {
			return nil, fmt.Errorf("cannot balance the partitions: two nodes answer as %q", all[i].Node)
		}
	}
	b := board{nodes: all, rows: make([][]int, partitions), owned: make([]int, len(all))}
	next := make(map[int]string)
	for p := range b.rows {
		owner := all.owner(p)
		if owner == nil {
			return nil, refuse("partition %d has no owner that answers", p)
		}
		at := slices.IndexFunc(all, func(n nodeState) bool { return n.Node == owner.Node })
		row := []int{at}
		for i := range all { // the order in which they take over without an order
			if i = (p + i) % len(all); all[i].mayOwn(p, owner) == nil {
				row = append(row, i)
			}
		}
		if !b.able(at) && len(row) > 1 {
			lead(row, 1)
		}
		b.owned[row[0]]++
		b.rows[p] = row
	}
	b.spread()
	for p, row := range b.rows {
		if to := all[row[0]].Node; to != all.owner(p).Node {
			next[p] = to
		}
	}
	return next, nil
}

// board is what plan works on: the nodes that can own each partition, the owner first, and how many
// each node owns.
type board struct {
	nodes states
	rows  [][]int // of nodes, by partition
	owned []int   // by node
}

// able reports whether a node takes anything.
func (b *board) able(i int) bool { return !b.nodes[i].Drained && !b.nodes[i].Full }

// lead moves the k-th of a row to the front.
func lead(row []int, k int) {
	i := row[k]
	copy(row[1:k+1], row[:k])
	row[0] = i
}

// step is how a search came to a node: by a partition that the node before owns. Before is -1 where
// the search began.
type step struct{ partition, before int }

// spread switches owners along chains of nodes, each of which hands a partition to the next, so
// that only the first owns less and only the last owns more. The first has at least two more than
// the last. From where no chain goes on, nodes are as even as their copies let them be: they are
// closed, with all that the search has reached from there.
func (b *board) spread() {
	closed := make(map[int]bool)
	for {
		most := 0
		for i := range b.nodes {
			if b.able(i) && !closed[i] {
				most = max(most, b.owned[i])
			}
		}
		if most < 2 {
			return
		}
		came, last := b.search(closed, most)
		if last < 0 {
			for i := range came {
				closed[i] = true
			}
			continue
		}
		b.owned[last]++
		to := last
		for l := came[to]; l.before >= 0; l = came[to] { // from the last node of the chain on
			row := b.rows[l.partition]
			lead(row, slices.Index(row, to))
			to = l.before
		}
		b.owned[to]--
	}
}

// search goes from the open nodes that own the most to the nearest that owns at least two fewer. It
// returns how it came to each node, and the last one, -1 if there is none.
func (b *board) search(closed map[int]bool, most int) (came map[int]step, last int) {
	came = make(map[int]step)
	var queue []int
	for i := range b.nodes {
		if b.able(i) && !closed[i] && b.owned[i] == most {
			came[i] = step{before: -1}
			queue = append(queue, i)
		}
	}
	for at := 0; at < len(queue); at++ {
		for p, row := range b.rows {
			if row[0] != queue[at] {
				continue
			}
			for _, to := range row[1:] {
				if _, known := came[to]; known || closed[to] || !b.able(to) {
					continue
				}
				if came[to] = (step{p, queue[at]}); b.owned[to] <= most-2 {
					return came, to
				}
				queue = append(queue, to)
			}
		}
	}
	return came, -1
}
