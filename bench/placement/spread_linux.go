package placement

import (
	"slices"
	"strconv"

	"trunkline/bench/internal/goal"
	"trunkline/engine/cluster/placement"

	"github.com/cespare/xxhash/v2"
)

// spread shows how even the placement is.
func (s *simulation) spread() error {
	t := s.table("How evenly load spreads", "what", "least on a node", "mean", "most on a node", "most / mean")
	add := func(what string, l load, nodes []placement.Node) {
		least, mean, most := l.evenness(nodes)
		t.Add(what, least, mean, most, most/mean)
	}
	add("partitions owned, by rendezvous hashing alone", s.rendezvous(), s.nodes)
	owners, copies := loads(s.placed)
	add("partitions owned, as placed", owners, s.nodes)
	add("copies, as placed", copies, s.nodes)
	k, err := placement.NewKeyspace(len(s.placed))
	if err != nil {
		return err
	}
	add("keys of processes", s.keys(k, placement.Process), s.nodes)
	add("keys of workspaces and principals", s.keys(k, placement.Workspace, placement.Principal), s.nodes)
	heavy := slices.Clone(s.nodes)
	for i := range heavy {
		heavy[i].Weight = 1 + i%2
	}
	return s.spreadOf(t, "partitions owned per weight, half of the nodes weigh 2", heavy)
}

func (s *simulation) spreadOf(t *goal.Grid, what string, nodes []placement.Node) error {
	placed, err := placement.Place(len(s.placed), nodes, s.opts)
	if err != nil {
		return err
	}
	owners, _ := loads(placed)
	least, mean, most := owners.evenness(nodes)
	t.Add(what, least, mean, most, most/mean)
	return nil
}

// rendezvous gives each partition to the node that ranks highest, whatever that node has already.
func (s *simulation) rendezvous() load {
	l := load{}
	salts := make([]uint64, len(s.nodes))
	for i, n := range s.nodes {
		salts[i] = xxhash.Sum64String(n.ID)
	}
	var d xxhash.Digest
	for p := range s.placed {
		name := strconv.Itoa(p)
		best, top := 0, uint64(0)
		for i, salt := range salts {
			d.ResetWithSeed(salt)
			d.WriteString(name)
			if h := d.Sum64(); h >= top {
				best, top = i, h
			}
		}
		l[s.nodes[best].ID]++
	}
	return l
}

// keys counts where numbered keys go.
func (s *simulation) keys(k placement.Keyspace, kinds ...placement.Kind) load {
	per := make([]int, len(s.placed))
	for i := range keys * len(s.nodes) / len(kinds) {
		name := "key-" + strconv.Itoa(i)
		for _, kind := range kinds {
			per[k.Partition(kind, name)]++
		}
	}
	l := load{}
	for p, n := range per {
		l[s.placed[p][0]] += n
	}
	return l
}

// change is nodes that come or go.
type change struct {
	what  string
	nodes []placement.Node
}

// scenes are the changes, from those that happen most.
func (s *simulation) scenes() []change {
	tenth := max(1, len(s.nodes)/10)
	without := func(gone func(i int) bool) (left []placement.Node) {
		for i, n := range s.nodes {
			if !gone(i) {
				left = append(left, n)
			}
		}
		return left
	}
	more := func(n int) []placement.Node { return nodes(len(s.nodes) + n) }
	drained := slices.Clone(s.nodes)
	drained[0].Drained = true
	return []change{
		{what: "a node dies", nodes: without(func(i int) bool { return i == 0 })},
		{what: "10 % of the nodes die at once", nodes: without(func(i int) bool { return i%10 == 0 })},
		{what: "10 % die, all in one zone", nodes: without(func(i int) bool { return i%zones == 0 && i/zones < tenth })},
		{what: "a zone dies", nodes: without(func(i int) bool { return i%zones == 0 })},
		{what: "a node is drained", nodes: drained},
		{what: "a node comes", nodes: more(1)},
		{what: "10 % more nodes come", nodes: more(tenth)},
	}
}

// changes shows what moves.
func (s *simulation) changes() error {
	t := s.table("What moves", "change", "owners lost", "switched besides", "copies built", "least possible", "plans", "owned: most / mean", "copies: most / mean")
	for _, c := range s.scenes() {
		placed, count, copies, plans := s.placed, map[placement.MoveKind]int{}, 0, 0
		for {
			moves, err := s.plan(placed, c.nodes, s.opts)
			if err != nil {
				return err
			}
			if len(moves) == 0 {
				break
			}
			if plans++; plans > 10 {
				s.fault("%s: plans do not come to an end", c.what)
				break
			}
			for _, m := range moves {
				count[m.Kind]++
				if builds(placed, m) {
					copies++
				}
			}
			placed = placement.Apply(placed, moves)
		}
		owners, has := loads(placed)
		able := slices.DeleteFunc(slices.Clone(c.nodes), func(n placement.Node) bool { return n.Drained })
		_, mean, most := owners.evenness(able)
		_, meanCopies, mostCopies := has.evenness(able)
		t.Add(c.what, count[placement.Promote], count[placement.Switch], copies, s.least(able), plans, most/mean, mostCopies/meanCopies)
	}
	return nil
}

// least returns how many copies have to be built at the least: those that are on none of the nodes
// any more, or the shares of those that have none.
func (s *simulation) least(able []placement.Node) int {
	_, before := loads(s.placed)
	kept := 0
	for _, n := range able {
		kept += before[n.ID]
	}
	lost := len(s.placed)*s.opts.Replicas - kept
	if len(able) > len(s.nodes) {
		lost = len(s.placed) * s.opts.Replicas / len(able) * (len(able) - len(s.nodes))
	}
	return lost
}

// builds reports that a move takes a new copy: one more, or the owner's where none is left.
func builds(placed placement.Assignment, m placement.Move) bool {
	return m.Kind == placement.Copy || m.Kind == placement.Promote && !slices.Contains(placed[m.Partition], m.Node)
}
