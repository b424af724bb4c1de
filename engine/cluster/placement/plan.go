package placement

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Plan returns the assignment that is to follow the current one, whose replicas are live nodes with
// complete copies and nodes that are not live, on the live nodes. A partition without an owner that
// is live and not drained is owned by its first standby that is. Then partitions switch to
// standbys, until no node could own two fewer than another one gives up; then copies are built
// where partitions have fewer than replicas, share a zone for no reason, or are on a node that has
// at least two more than another one. Only what has to move moves. A new copy owns nothing before
// the next plan, unless the partition has no other; repeated plans come to an end.
//
// Plan changes none of its arguments. The result is the same in whatever order the nodes are. Where
// no node takes anything it is the current assignment.
func Plan(current Assignment, nodes []Node, replicas int) (Assignment, error) {
	if replicas < 1 || replicas > MaxReplicas {
		return nil, fmt.Errorf("cannot keep %d replicas: want 1 to %d", replicas, MaxReplicas)
	}
	b, err := newBoard(current, nodes)
	if err != nil {
		return nil, err
	}
	b.want = min(replicas, len(b.ables))
	if b.want == 0 {
		return slices.Clone(current), nil
	}
	for p := range b.rows {
		b.promote(p)
	}
	b.spreadOwners()
	for p := range b.rows {
		b.fill(p)
	}
	b.spreadCopies()
	return b.names(), nil
}

// board is what Plan works on: the replicas of all partitions by the numbers of their nodes, the
// owner first, and how many each node has. Nodes are numbered in the order of their IDs.
type board struct {
	nodes  []Node
	hash   []uint64
	zone   []int
	ables  []int // nodes that are not drained
	want   int   // copies of a partition
	rows   [][]int
	owned  []int
	copies []int
}

func newBoard(current Assignment, nodes []Node) (*board, error) {
	if len(current) > MaxPartitions {
		return nil, fmt.Errorf("cannot place %d partitions: at most %d", len(current), MaxPartitions)
	}
	nodes, err := sorted(nodes)
	if err != nil {
		return nil, err
	}
	n := len(nodes)
	b := &board{nodes: nodes, hash: make([]uint64, n), zone: make([]int, n), rows: make([][]int, len(current)), owned: make([]int, n), copies: make([]int, n)}
	numbers, zones := make(map[string]int, n), make(map[Node]int)
	for i := range nodes {
		numbers[nodes[i].ID] = i
		b.hash[i] = xxhash.Sum64String(nodes[i].ID)
		zone := Node{Zone: nodes[i].Zone}
		if zone.Zone == "" {
			zone.ID = nodes[i].ID
		}
		if _, known := zones[zone]; !known {
			zones[zone] = len(zones)
		}
		b.zone[i] = zones[zone]
		if !nodes[i].Drained {
			b.ables = append(b.ables, i)
		}
	}
	for p, names := range current {
		for _, name := range names {
			i, live := numbers[name]
			switch {
			case live && slices.Contains(b.rows[p], i):
				return nil, fmt.Errorf("cannot keep partition %d on node %q twice", p, name)
			case live:
				b.rows[p] = append(b.rows[p], i)
				b.copies[i]++
			}
		}
	}
	return b, nil
}

// names returns the board as an assignment.
func (b *board) names() Assignment {
	a := make(Assignment, len(b.rows))
	for p, row := range b.rows {
		for _, i := range row {
			a[p] = append(a[p], b.nodes[i].ID)
		}
	}
	return a
}

func (b *board) able(i int) bool { return !b.nodes[i].Drained }

// promote finds an owner for a partition: the first of its nodes that takes anything, else one that
// builds a copy.
func (b *board) promote(p int) {
	k := slices.IndexFunc(b.rows[p], b.able)
	if k < 0 {
		k = len(b.rows[p])
		b.add(p, b.pick(p, -1))
	}
	lead(b.rows[p], k)
	b.owned[b.rows[p][0]]++
}

// lead moves the k-th of a row to the front.
func lead(row []int, k int) {
	i := row[k]
	copy(row[1:k+1], row[:k])
	row[0] = i
}

func (b *board) add(p, i int) {
	b.rows[p] = append(b.rows[p], i)
	b.copies[i]++
}

// fill adds the copies that a partition lacks and drops those of drained nodes and those that are
// too many: of these, the last that shares a zone, else the last.
func (b *board) fill(p int) {
	good := 0
	for _, i := range b.rows[p] {
		if b.able(i) {
			good++
		}
	}
	for ; good < b.want; good++ {
		b.add(p, b.pick(p, -1))
	}
	for k := len(b.rows[p]) - 1; k > 0; k-- {
		if !b.able(b.rows[p][k]) {
			b.drop(p, k)
		}
	}
	for len(b.rows[p]) > b.want {
		last := len(b.rows[p]) - 1
		k := last
		for k > 0 && b.isNewZone(p, b.rows[p][k], k) {
			k--
		}
		if k == 0 {
			k = last
		}
		b.drop(p, k)
	}
}

func (b *board) drop(p, k int) {
	b.copies[b.rows[p][k]]--
	b.rows[p] = slices.Delete(b.rows[p], k, k+1)
}

// spreadCopies moves copies of standbys to other zones where some share one for no reason, and to
// nodes that have at least two fewer. An owner's moves only if a partition has but one.
func (b *board) spreadCopies() {
	for p, row := range b.rows {
		least := len(b.rows)
		for _, i := range b.ables {
			least = min(least, b.copies[i])
		}
		for k := len(row) - 1; k >= min(1, b.want-1); k-- {
			from, alone := row[k], b.isNewZone(p, row[k], k)
			if alone && b.copies[from] < least+2 {
				continue
			}
			to := b.pick(p, k)
			if to < 0 {
				continue
			}
			if better := b.isNewZone(p, to, k); better && !alone || better == alone && b.copies[from] >= b.copies[to]+2 {
				row[k] = to
				b.copies[from]--
				b.copies[to]++
			}
		}
	}
}

// pick finds the node for one more copy of a partition that keeps its copies but for the k-th, -1
// if there is none. It prefers a new zone, then the fewest copies, then the highest rank.
func (b *board) pick(p, k int) int {
	best, bestIsNew := -1, false
	for _, i := range b.ables {
		if bestIsNew && b.copies[i] > b.copies[best] || slices.Contains(b.rows[p], i) {
			continue
		}
		isNew := b.isNewZone(p, i, k)
		switch {
		case best < 0:
		case isNew != bestIsNew:
			if bestIsNew {
				continue
			}
		case b.copies[i] != b.copies[best]:
			if b.copies[i] > b.copies[best] {
				continue
			}
		case b.rank(p, i) <= b.rank(p, best):
			continue
		}
		best, bestIsNew = i, isNew
	}
	return best
}

// isNewZone reports whether no copy of a partition but the k-th is in the zone of a node. Those of
// drained nodes do not count: they are given up.
func (b *board) isNewZone(p, i, k int) bool {
	for j, other := range b.rows[p] {
		if j != k && b.zone[other] == b.zone[i] && b.able(other) {
			return false
		}
	}
	return true
}

// rank is that of a node for a partition, by rendezvous hashing: nodes that are alike otherwise get
// the copies of another one in equal parts. The constants are arbitrary, and odd.
func (b *board) rank(p, i int) uint64 {
	return fold(b.hash[i]^fold(uint64(p)^0x9e3779b97f4a7c15, 0xe7037ed1a0b428db), 0xa0761d6478bd642f)
}

// fold multiplies, and takes both halves of the product.
func fold(x, y uint64) uint64 {
	high, low := bits.Mul64(x, y)
	return high ^ low
}
