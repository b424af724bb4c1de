package orchestration

import (
	"cmp"
	"slices"
)

// edge is a way from one stage to another that the routing of a pipeline can take. Counters of a
// session are a slice indexed as Pipeline.edges, so they exist for these pairs only: all pairs of
// stages would be quadratic in the configuration.
type edge struct {
	from, to int32
	max      int32 // unlimited without an edge limit
}

// unlimited is the max of an edge that may be taken any number of times.
const unlimited = -1

// indexEdges collects the edges of all stages, once their targets are resolved.
func (p *Pipeline) indexEdges() {
	var targets []int32
	for i := range p.stages {
		s := &p.stages[i]
		targets = append(targets[:0], s.defaultNext, s.errorNext)
		for k := range s.rules {
			targets = append(targets, s.rules[k].target)
		}
		slices.Sort(targets)
		s.edgesFrom = int32(len(p.edges))
		for _, to := range slices.Compact(targets) {
			if to >= 0 {
				p.edges = append(p.edges, edge{int32(i), to, unlimited})
			}
		}
		s.edgesTo = int32(len(p.edges))
	}
	p.edges = slices.Clone(p.edges)
}

// limitEdge sets the limit of an edge. The first one counts; one for a pair that is no edge has
// nothing to limit.
func (p *Pipeline) limitEdge(from, to int, limit int32) {
	if i := p.edgeIndex(from, to); i >= 0 && p.edges[i].max == unlimited {
		p.edges[i].max = limit
	}
}

func (p *Pipeline) edgeIndex(from, to int) int {
	s := &p.stages[from]
	edges := p.edges[s.edgesFrom:s.edgesTo]
	i, found := slices.BinarySearchFunc(edges, int32(to), func(e edge, to int32) int { return cmp.Compare(e.to, to) })
	if !found {
		return -1
	}
	return int(s.edgesFrom) + i
}

// edge returns the index of the edge between two stages, -1 if no routing takes it, and its limit:
// the number of times it may be taken, 0 for never. It does not allocate.
func (p *Pipeline) edge(from, to int) (index int, limit int64, limited bool) {
	if index = p.edgeIndex(from, to); index < 0 || p.edges[index].max == unlimited {
		return index, 0, false
	}
	return index, int64(p.edges[index].max), true
}

// ends returns the names of the stages of the edge with that index.
func (p *Pipeline) ends(index int) (from, to string) {
	e := &p.edges[index]
	return p.stages[e.from].Name, p.stages[e.to].Name
}
