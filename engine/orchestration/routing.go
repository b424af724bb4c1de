package orchestration

import (
	"cmp"
	"slices"

	"trunkline/codec/mpack"
)

// unset is the default_next or error_next of a stage that has none.
const unset = -2

// rule is one routing rule of a stage: go to target if the output's member matches.
type rule struct {
	condition int32   // index in Stage.conditions, or always
	value     valueID // what the member must equal
	target    int32   // a stage or End
}

// always is the condition of a rule without one.
const always = -1

// condition is a key of the output that rules of a stage ask for.
type condition struct {
	name       string
	structured bool // some rule compares it with a list or map
}

// fewConditions is up to how many conditions looking at each is faster than a map.
const fewConditions = 8

// findCondition returns the place of the condition called name, -1 if no rule of s asks for it.
func (s *Stage) findCondition(name []byte) int {
	if s.byCondition != nil {
		if i, ok := s.byCondition[string(name)]; ok {
			return int(i)
		}
		return -1
	}
	for i := range s.conditions {
		if s.conditions[i].name == string(name) {
			return i
		}
	}
	return -1
}

// addCondition appends a condition that is not there yet.
func (s *Stage) addCondition(name string) int32 {
	s.conditions = append(s.conditions, condition{name: name})
	switch n := len(s.conditions); {
	case s.byCondition != nil:
		s.byCondition[name] = int32(n - 1)
	case n > fewConditions:
		s.byCondition = make(map[string]int32, 2*n)
		for i := range s.conditions {
			s.byCondition[s.conditions[i].name] = int32(i)
		}
	}
	return int32(len(s.conditions) - 1)
}

// Next returns where a report of the agent of a stage leads: to a stage, or to End (envelope §5.2
// step 5). output is the encoded map of the report, which passed the Scanner; nil is an empty one.
// The time it takes is linear in the output and the rules of the stage. It does not allocate unless
// the output has a list or map where a rule compares with one.
func (p *Pipeline) Next(stage int, success bool, output []byte) (target int) {
	s := &p.stages[stage]
	if !success && s.errorNext != unset {
		return int(s.errorNext)
	}
	if r := p.match(s, output); r != nil {
		return int(r.target)
	}
	if s.defaultNext != unset {
		return int(s.defaultNext)
	}
	return end
}

// match returns the first rule of s that output satisfies.
func (p *Pipeline) match(s *Stage, output []byte) *rule {
	switch n := len(s.conditions); {
	case n == 0 || s.rules[0].condition == always:
		return firstRule(s.rules, nil)
	case n <= fewConditions:
		var at [fewConditions]valueID
		p.identify(s, output, at[:n])
		return firstRule(s.rules, at[:n])
	}
	return p.matchMany(s, output)
}

// matchMany is match with a stack frame for as many conditions as there may be.
func (p *Pipeline) matchMany(s *Stage, output []byte) *rule {
	var at [maxConditions]valueID
	n := len(s.conditions)
	p.identify(s, output, at[:n])
	return firstRule(s.rules, at[:n])
}

// identify sets at[i] to the id of the output's member that condition i asks for. The output is
// walked once, whatever the number of rules; of a repeated key the last one counts.
func (p *Pipeline) identify(s *Stage, output []byte, at []valueID) {
	m := mpack.OpenMap(output)
	for _, key, value, ok := m.Next(); ok; _, key, value, ok = m.Next() {
		i := s.findCondition(key)
		switch {
		case i < 0:
		case isContainer(value) && !s.conditions[i].structured:
			at[i] = unknownID
		default:
			at[i] = p.values.find(value)
		}
	}
}

// firstRule returns the first rule that always matches or whose value is the one its condition has.
// No rule has unknownID: a missing key matches nothing.
func firstRule(rules []rule, at []valueID) *rule {
	for i := range rules {
		if r := &rules[i]; r.condition == always || at[r.condition] == r.value {
			return r
		}
	}
	return nil
}

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
