package placement

import (
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// board is what Place and Plan work on: the replicas of all partitions by the numbers of their
// nodes, and what each node has. Nodes are numbered in the order of their IDs.
type board struct {
	opts     Options
	nodes    []Node
	number   map[string]int32
	hash     []uint64
	zone     []int32
	able     []bool  // live and not drained
	ables    []int32 // those
	zones    int     // of those
	want     int     // copies per partition
	parts    []row
	owners   load
	copies   load
	getting  []int // copies under way to each node
	busy     int   // of the able nodes, those before it may get no more
	moves    []Move
	bounded  int  // copies and switches, those under way among them
	deferred bool // one more would have exceeded a bound
	placing  bool // nothing serves yet: copies are complete at once, and nothing is bounded
}

// seat is one copy of a partition.
type seat struct {
	node  int32
	phase phase
}

// phase is where a copy is in its life.
type phase uint8

const (
	complete phase = iota
	building       // it cannot take over without a rebuild
	leaving        // given up when another copy is complete
)

// maxListed is the most replicas of a partition that are looked at: there are more than MaxReplicas
// while nodes are drained. Those beyond are dropped.
const maxListed = 2 * MaxReplicas

// row is one partition: its copies, the owner's first.
type row struct {
	seats [maxListed + MaxReplicas]seat // those listed, and those that are being built
	n     int
	lost  string // the owner, if it is not live
	holes bool   // a standby is not live, or one too many
}

func (r *row) all() []seat { return r.seats[:r.n] }

func (r *row) find(node int32) int {
	for k, s := range r.all() {
		if s.node == node {
			return k
		}
	}
	return -1
}

// moving reports whether a copy of the partition is being built.
func (r *row) moving() bool {
	for _, s := range r.all() {
		if s.phase == building {
			return true
		}
	}
	return false
}

func (r *row) remove(k int) {
	copy(r.seats[k:], r.seats[k+1:r.n])
	r.n--
}

func (r *row) add(s seat) {
	r.seats[r.n] = s
	r.n++
}

// lead moves seat k to the front.
func (r *row) lead(k int) {
	s := r.seats[k]
	copy(r.seats[1:k+1], r.seats[:k])
	r.seats[0] = s
}

func newBoard(current Assignment, pending []Move, nodes []Node, o Options) (*board, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if len(current) > MaxPartitions {
		return nil, fmt.Errorf("cannot place %d partitions: at most %d", len(current), MaxPartitions)
	}
	nodes, err := sorted(nodes)
	if err != nil {
		return nil, err
	}
	b := &board{
		opts: o, nodes: nodes, number: make(map[string]int32, len(nodes)), hash: make([]uint64, len(nodes)), zone: make([]int32, len(nodes)),
		able: make([]bool, len(nodes)), parts: make([]row, len(current)), getting: make([]int, len(nodes)),
	}
	b.numberNodes()
	b.want = min(o.Replicas, len(b.ables))
	b.owners = b.divide(len(current), 1)
	b.copies = b.divide(len(current), b.want)
	return b, b.read(current, pending)
}

func (b *board) numberNodes() {
	zones, counted := make(map[string]int32), make(map[int32]bool)
	for i := range b.nodes {
		n := &b.nodes[i]
		b.number[n.ID] = int32(i)
		b.hash[i] = xxhash.Sum64String(n.ID)
		b.zone[i] = int32(-i - 1) // a zone of its own
		if n.Zone != "" {
			if _, known := zones[n.Zone]; !known {
				zones[n.Zone] = int32(len(zones))
			}
			b.zone[i] = zones[n.Zone]
		}
		if b.able[i] = !n.Drained; b.able[i] {
			b.ables = append(b.ables, int32(i))
			counted[b.zone[i]] = true
		}
	}
	b.zones = len(counted)
}

// read takes over what is. Copies under way count, but cannot take over.
func (b *board) read(current Assignment, pending []Move) error {
	for p, names := range current {
		r := &b.parts[p]
		for k, name := range names {
			i, live := b.number[name]
			switch {
			case k >= maxListed:
				r.holes = true
			case live && r.find(i) >= 0:
				return fmt.Errorf("cannot keep partition %d on node %q twice", p, name)
			case live:
				r.add(seat{node: i})
				b.copies.has[i]++
			case k == 0:
				r.lost = name
			default:
				r.holes = true
			}
		}
		if r.n > 0 && r.lost == "" {
			b.owners.has[r.seats[0].node]++
		}
	}
	for _, m := range pending {
		if int(m.Partition) >= len(b.parts) {
			return fmt.Errorf("cannot go on with a move of partition %d of %d", m.Partition, len(b.parts))
		}
		b.resume(m)
	}
	return nil
}

// resume counts a copy that is being built, if it still makes sense.
func (b *board) resume(m Move) {
	r := &b.parts[m.Partition]
	i, live := b.number[m.Node]
	if m.Kind != Copy || !live || !b.able[i] || r.n == 0 && r.lost == "" || r.n == len(r.seats) || r.find(i) >= 0 {
		return
	}
	if from, live := b.number[m.From]; live && r.find(from) > 0 {
		b.leave(r, r.find(from))
	}
	b.seat(r, i)
	b.bounded++
}

// seat adds a copy. It is complete at once while nothing serves.
func (b *board) seat(r *row, node int32) {
	s := seat{node: node, phase: building}
	if b.placing {
		s.phase = complete
	}
	r.add(s)
	b.copies.has[node]++
	b.getting[node]++
}

// leave gives up the copy of seat k, which is no owner's, when another one is complete.
func (b *board) leave(r *row, k int) {
	if r.seats[k].phase != leaving {
		b.copies.has[r.seats[k].node]--
		r.seats[k].phase = leaving
	}
	if b.placing {
		r.remove(k)
	}
}

// names returns the replicas of a partition by ID: the owner, and the standbys that are complete.
func (b *board) names(r *row) Replicas {
	to := make(Replicas, 0, r.n)
	for k, s := range r.all() {
		if k == 0 || s.phase != building {
			to = append(to, b.nodes[s.node].ID)
		}
	}
	return to
}

// note adds a move, after the row was changed.
func (b *board) note(p int, kind MoveKind, node int32, from string) {
	m := Move{Partition: Partition(p), Kind: kind, From: from}
	if node >= 0 {
		m.Node = b.nodes[node].ID
	}
	if kind != Copy {
		m.To = b.names(&b.parts[p])
	}
	b.moves = append(b.moves, m)
	if kind == Copy || kind == Switch {
		b.bounded++
	}
}

// room reports whether n more copies and switches are within the bound.
func (b *board) room(n int) bool {
	if b.placing || b.opts.MaxMoves == 0 || b.bounded+n <= b.opts.MaxMoves {
		return true
	}
	b.deferred = true
	return false
}

// takes reports whether a node may get one more copy now.
func (b *board) takes(node int32) bool {
	if !b.room(1) {
		return false
	}
	if b.placing || b.opts.MaxCopiesPerNode == 0 || b.getting[node] < b.opts.MaxCopiesPerNode {
		return true
	}
	b.deferred = true
	return false
}

// full reports whether no node may get one more copy now.
func (b *board) full() bool {
	if !b.room(1) {
		return true
	}
	if b.placing || b.opts.MaxCopiesPerNode == 0 {
		return false
	}
	for ; b.busy < len(b.ables); b.busy++ {
		if b.getting[b.ables[b.busy]] < b.opts.MaxCopiesPerNode {
			return false
		}
	}
	b.deferred = true
	return true
}
