package placement

import (
	"math"
	"slices"
	"strconv"
	"time"

	"trunkline/engine/cluster/placement"

	"github.com/cespare/xxhash/v2"
)

// spread shows how even the placement is.
func (s *simulation) spread() error {
	t := s.table("How evenly load spreads", "what", "least on a node", "mean", "most on a node", "most / mean")
	add := func(what string, l load) {
		least, mean, most := l.evenness(s.nodes)
		t.Add(what, least, mean, most, most/mean)
	}
	add("partitions owned, by rendezvous hashing alone", s.rendezvous())
	owners, copies := loads(s.placed)
	add("partitions owned, as placed", owners)
	add("copies, as placed", copies)
	k, err := placement.NewKeyspace(len(s.placed))
	if err != nil {
		return err
	}
	add("keys of processes", s.keys(k, placement.Process))
	add("keys of workspaces and principals", s.keys(k, placement.Workspace, placement.Principal))
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

// ids has the IDs of nodes.
func ids(nodes []placement.Node) map[string]bool {
	set := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		set[n.ID] = true
	}
	return set
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

// A copy of a partition: of a billion rows on a hundred thousand partitions, with the sizes and
// rates of bench/data/restart.json.
const (
	rowsPerPartition = 10_000
	snapshotBytes    = 193       // per row: what a snapshot of a million processes adds to the store
	loadRate         = 3_400_000 // rows/s that a start reads of a snapshot
	bandwidth        = 125e6     // bytes/s of a node: 1 Gbit/s
	copiesAtOnce     = 10        // of a node, which share its bandwidth
)

// changes shows what moves, and how long copies are missing or moving.
func (s *simulation) changes() error {
	t := s.table("What moves, and how long copies are missing or moving", "change", "owners lost", "switched besides", "copies built", "least possible", "plans", "owned: most / mean", "copies: most / mean", "GB", "until all are there s")
	takes := time.Duration(float64(time.Second)*float64(copiesAtOnce*rowsPerPartition*snapshotBytes)/bandwidth) +
		copiesAtOnce*rowsPerPartition*time.Second/loadRate + appendSlowest + followDelay
	for _, c := range s.scenes() {
		live := ids(c.nodes)
		placed, lost, switched, copies, plans, took := s.placed, 0, 0, 0, 0, time.Duration(0)
		for {
			next, err := s.plan(placed, c.nodes)
			if err != nil {
				return err
			}
			if slices.EqualFunc(placed, next, slices.Equal[placement.Replicas]) {
				break
			}
			if plans++; plans > 10 {
				s.fault("%s: plans do not come to an end", c.what)
				break
			}
			gets := load{}
			for p, to := range next {
				from := placed[p]
				switch {
				case !live[from[0]]:
					lost++
				case from[0] != to[0]:
					switched++
				}
				for _, id := range to {
					if !slices.Contains(from, id) {
						gets[id]++
						copies++
					}
				}
			}
			_, _, most := gets.evenness(c.nodes)
			took += max(time.Duration(math.Ceil(most/copiesAtOnce))*takes, 2*appendSlowest+followDelay)
			placed = next
		}
		owners, has := loads(placed)
		able := slices.DeleteFunc(slices.Clone(c.nodes), func(n placement.Node) bool { return n.Drained })
		_, mean, most := owners.evenness(able)
		_, meanCopies, mostCopies := has.evenness(able)
		t.Add(c.what, lost, switched, copies, s.least(able), plans, most/mean, mostCopies/meanCopies, float64(copies)*rowsPerPartition*snapshotBytes/1e9, took.Seconds())
	}
	return nil
}

// least returns how many copies have to be built at the least: those that are on none of the nodes
// any more, or the shares of those that have none.
func (s *simulation) least(able []placement.Node) int {
	if more := len(able) - len(s.nodes); more > 0 {
		return len(s.placed) * replicas / len(able) * more
	}
	_, before := loads(s.placed)
	lost := len(s.placed) * replicas
	for _, n := range able {
		lost -= before[n.ID]
	}
	return lost
}
