package placement

import (
	"fmt"
	"slices"
)

// MoveKind is what a move does.
type MoveKind uint8

// The kinds of moves.
const (
	// Promote: the owner is not live, or there was none. Node claims the partition. It is never
	// deferred.
	Promote MoveKind = iota + 1
	// Switch: the owner steps down, and Node, which has a complete copy, claims the partition.
	Switch
	// Copy: Node builds a copy and follows the log. When it is complete, Node is the last standby,
	// and the copy of From is given up.
	Copy
	// Drop: copies are given up that are not needed or not live.
	Drop
)

// Move is one change of the replicas of one partition.
type Move struct {
	Partition Partition
	Kind      MoveKind
	Node      string   // becomes the owner or gets a copy; empty for Drop
	From      string   // the owner before, or whose copy is replaced; empty for none
	To        Replicas // all replicas afterwards; empty for Copy, beside which others may change
}

const (
	// placeSlack divides the slack where everything is placed: nothing has to move for balance, and
	// the first changes of the nodes stay within the slack.
	placeSlack = 5
	// placeRounds is the most rounds in which a placement settles; it takes two or three.
	placeRounds = 8
)

// Place places the partitions of a new cluster. Its bounds on moves do not matter.
func Place(partitions int, nodes []Node, o Options) (Assignment, error) {
	o.Slack /= placeSlack
	if partitions < 1 || partitions > MaxPartitions {
		return nil, fmt.Errorf("cannot place %d partitions: want 1 to %d", partitions, MaxPartitions)
	}
	placed := make(Assignment, partitions)
	for range placeRounds {
		b, err := newBoard(placed, nil, nodes, o)
		if err != nil {
			return nil, err
		}
		if len(b.ables) == 0 {
			return nil, fmt.Errorf("cannot place %d partitions: no node takes any", partitions)
		}
		b.placing = true
		if b.plan(); len(b.moves) == 0 {
			break
		}
		for p := range placed {
			placed[p] = b.names(&b.parts[p])
		}
	}
	return placed, nil
}

// Plan returns the moves that lead from the current assignment to one that suits the live nodes, in
// the order in which they are to begin. Replicas of current are live nodes with complete copies,
// and nodes that are not live; the first of them holds the last claim, as far as it is known.
// Pending are copies of earlier plans that are not complete; they count, and are not returned. One
// that no longer makes sense, because its node is gone or drained, is ignored.
//
// Copies and switches are bounded by the options. The next plan is due when a move is done or the
// nodes have changed. A partition moves for balance alone only if a node is out of its bounds, so
// repeated plans come to an end. A node that is away shortly should stay in nodes: everything that
// is not in there is copied anew.
//
// Plan changes none of its arguments. The moves of equal arguments are equal, in whatever order the
// nodes are.
func Plan(current Assignment, pending []Move, nodes []Node, o Options) ([]Move, error) {
	b, err := newBoard(current, pending, nodes, o)
	if err != nil {
		return nil, err
	}
	if len(b.ables) > 0 {
		b.plan()
	}
	return b.moves, nil
}

// Apply returns the assignment after moves of a plan that are done. It changes no argument and
// shares replicas with them.
func Apply(current Assignment, moves []Move) Assignment {
	next := slices.Clone(current)
	for _, m := range moves {
		if m.Kind != Copy {
			next[m.Partition] = m.To
			continue
		}
		to := slices.Clone(next[m.Partition])
		if !slices.Contains(to, m.Node) {
			to = append(to, m.Node)
		}
		if from := slices.Index(to, m.From); from > 0 {
			to = slices.Delete(to, from, from+1)
		}
		next[m.Partition] = to
	}
	return next
}

func (b *board) plan() {
	for p := range b.parts {
		b.promote(p)
	}
	b.switchOwners()
	for p := range b.parts {
		b.fill(p)
	}
	for p := range b.parts {
		b.drop(p)
	}
	b.spreadCopies()
}

// promote finds an owner for a partition whose owner is not live.
func (b *board) promote(p int) {
	r := &b.parts[p]
	if r.n > 0 && r.lost == "" {
		if r.holes {
			b.note(p, Drop, -1, "")
		}
		return
	}
	k := b.successor(r)
	if k < 0 {
		b.seat(r, b.pickOwner(p))
		k = r.n - 1
	}
	if s := &r.seats[k]; s.phase == leaving {
		b.copies.has[s.node]++
		s.phase = complete
	}
	r.lead(k)
	node, lost := r.seats[0].node, r.lost
	r.lost = ""
	b.owners.has[node]++
	b.note(p, Promote, node, lost)
}

// successor returns the seat of the standby that takes over: the first of an able node that is
// complete, else leaving, else being built; -1 for none.
func (b *board) successor(r *row) int {
	best := -1
	preference := [...]int{complete: 2, leaving: 1, building: 0}
	for k, s := range r.all() {
		if b.able[s.node] && (best < 0 || preference[s.phase] > preference[r.seats[best].phase]) {
			best = k
		}
	}
	return best
}

// good returns how many copies a partition has that it is to have.
func (b *board) good(r *row) (n int) {
	for _, s := range r.all() {
		if b.keeps(s) {
			n++
		}
	}
	return n
}

// fill adds the copies that a partition lacks, and replaces those that share a zone for no reason.
func (b *board) fill(p int) {
	r := &b.parts[p]
	for r.n > 0 {
		replaced, lacks := b.misplaced(r)
		if !lacks && replaced < 0 || b.full() {
			return
		}
		c, ok := b.pick(p, replaced, b.ables, b.copies.floor)
		if !ok || !lacks && !c.newZone || !b.takes(c.node) {
			return
		}
		b.copy(p, replaced, c.node)
	}
}

// misplaced returns the seat of a standby whose copy is to be replaced, -1 for none: that of a
// drained node if there are too few copies, else the last that is in the zone of another one while
// there are more zones. lacks reports that there are too few.
func (b *board) misplaced(r *row) (seat int, lacks bool) {
	lacks = b.good(r) < b.want
	distinct, doubled := 0, -1
	for k, s := range r.all() {
		switch {
		case s.phase == leaving:
		case !b.able[s.node]:
			if lacks && k > 0 {
				return k, true
			}
		case b.isNewZone(r.seats[:k], s.node, -1):
			distinct++
		case k > 0:
			doubled = k
		}
	}
	if lacks || distinct >= min(b.want, b.zones) {
		doubled = -1
	}
	return doubled, lacks
}

// copy gives a partition a copy on a node, in place of that of a seat; -1: of none.
func (b *board) copy(p, replaced int, node int32) {
	r := &b.parts[p]
	from := ""
	if replaced >= 0 {
		from = b.nodes[r.seats[replaced].node].ID
		b.leave(r, replaced)
	}
	b.seat(r, node)
	b.note(p, Copy, node, from)
}

// drop gives up the copies of drained nodes and those beyond what is wanted, once all of the others
// are complete. Nothing is given up while moves are deferred, because they may need it.
func (b *board) drop(p int) {
	r := &b.parts[p]
	if b.deferred || r.n == 0 || !b.able[r.seats[0].node] || r.moving() {
		return
	}
	before := r.n
	for surplus := b.good(r) - b.want; surplus >= 0; {
		k := r.n - 1
		for k > 0 && b.able[r.seats[k].node] {
			k--
		}
		if k == 0 {
			if surplus == 0 {
				break
			}
			surplus--
			k = b.doubled(r)
		}
		b.copies.has[r.seats[k].node]--
		r.remove(k)
	}
	if r.n < before {
		b.note(p, Drop, -1, "")
	}
}

// doubled returns the seat of the last standby that shares the zone of another copy, else of the
// last.
func (b *board) doubled(r *row) int {
	for k := r.n - 1; k > 0; k-- {
		if !b.isNewZone(r.all(), r.seats[k].node, k) {
			return k
		}
	}
	return r.n - 1
}
