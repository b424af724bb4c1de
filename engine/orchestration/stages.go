package orchestration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"trunkline/codec/mpack"
)

// draft is a stage as listed whose targets are not resolved yet.
type draft struct {
	members object
	name    string
	agent   []byte
	order   int64 // stage_order, 0 without
	index   int32 // of the stage in the order of execution
}

// name checks the pipeline's name; nothing in an answer needs it later.
func (c *configParser) name(top *object) {
	if name, _ := c.identifier(top, "name"); len(name) == 0 {
		c.refuse("Pipeline name is required")
	}
}

// stages reads the names, agents and order of the stages.
func (c *configParser) stages(top *object) {
	list := c.list(top, "agents", maxStages, maxStages, "entries")
	if list.Len() == 0 {
		c.refuse("Pipeline must have at least one stage")
		return
	}
	c.drafts = make([]draft, 0, list.Len())
	c.p.byName = make(map[string]int32, list.Len())
	ordered := false
	for raw, ok := list.Next(); ok && c.fault == ""; raw, ok = list.Next() {
		d, hasOrder := c.draft(raw)
		if _, known := c.p.byName[d.name]; known {
			c.refuse("Duplicate stage name: " + d.name)
		}
		c.p.byName[d.name] = int32(len(c.drafts))
		c.drafts = append(c.drafts, d)
		ordered = ordered || hasOrder
	}
	if c.fault == "" {
		c.order(ordered)
	}
}

// draft reads what concerns a stage alone.
func (c *configParser) draft(raw []byte) (d draft, hasOrder bool) {
	d.members = c.object(place{list: "agents", i: len(c.drafts)}, raw, stageKeys)
	o := &d.members
	if d.name = string(c.required(o, "name")); d.name == "" {
		c.misfit(o.at, "name", "cannot be empty")
	}
	d.agent, _ = c.identifier(o, "agent")
	d.order, hasOrder = c.integer(o, "stage_order", "i64")
	return d, hasOrder
}

// order gives every draft its place in the order of execution and makes the stages.
func (c *configParser) order(ordered bool) {
	at := make([]int, len(c.drafts))
	for i := range at {
		at[i] = i
	}
	if ordered {
		slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(c.drafts[a].order, c.drafts[b].order) })
	}
	p := c.p
	p.stages = make([]Stage, len(c.drafts))
	for i, listed := range at {
		d := &c.drafts[listed]
		d.index = int32(i)
		s := &p.stages[i]
		s.Name, s.Agent = d.name, d.name
		if len(d.agent) > 0 {
			s.Agent = string(d.agent)
		}
		p.byName[s.Name] = int32(i)
		p.texts += int64(len(d.name) + len(d.agent))
		p.arrows = p.arrows || strings.Contains(d.name, arrow)
	}
}

// routing reads the rules and next stages, now that all names are known.
func (c *configParser) routing() {
	for i := range c.drafts {
		if c.fault != "" {
			return
		}
		d := &c.drafts[i]
		s := &c.p.stages[d.index]
		c.rulesOf(d, s)
		s.defaultNext = c.nextOf(d, s, "default_next")
		s.errorNext = c.nextOf(d, s, "error_next")
	}
	c.p.indexEdges()
}

// nextOf reads default_next or error_next; "" counts as missing.
func (c *configParser) nextOf(d *draft, s *Stage, k string) int32 {
	name, _ := c.identifier(&d.members, k)
	if len(name) == 0 {
		return unset
	}
	return c.target(s, k, name)
}

// target resolves the name of a stage to go to. A stage may be called end; then that name means it.
func (c *configParser) target(s *Stage, what string, name []byte) int32 {
	if i, ok := c.p.byName[string(name)]; ok {
		return i
	}
	if string(name) != "end" {
		c.refuse(fmt.Sprintf("Stage '%s' has %s '%s' which does not exist in pipeline", s.Name, what, name))
	}
	return end
}

// rulesOf reads the rules of a stage from routing, or where that is missing or empty from the
// worker's routing_rules.
func (c *configParser) rulesOf(d *draft, s *Stage) {
	const units = "rules in all stages"
	room := MaxRules - c.rules
	k, list := "routing", c.list(&d.members, "routing", room, MaxRules, units)
	if worker := c.list(&d.members, "routing_rules", room, MaxRules, units); list.Len() == 0 {
		k, list = "routing_rules", worker
	}
	if list.Len() == 0 {
		return
	}
	c.rules += list.Len()
	s.rules = make([]rule, 0, list.Len())
	at := d.members.at
	at.inner = k
	for raw, ok := list.Next(); ok && c.fault == ""; raw, ok = list.Next() {
		at.j = len(s.rules)
		o := c.object(at, raw, ruleKeys)
		s.rules = append(s.rules, c.rule(&o, s))
	}
	s.conditions = slices.Clone(s.conditions)
}

func (c *configParser) rule(o *object, s *Stage) (r rule) {
	r.condition = always
	if name, set := c.str(o, "condition"); set {
		r.condition, r.value = c.condition(o, s, name), c.value(o)
		if isContainer(o.raw("value")) && c.fault == "" {
			s.conditions[r.condition].structured = true
		}
	}
	if name := c.required(o, "target"); c.fault == "" {
		r.target = c.target(s, "routing target", name)
	}
	return r
}

// condition returns the place of a condition among those of s.
func (c *configParser) condition(o *object, s *Stage, name []byte) int32 {
	if i := s.findCondition(name); i >= 0 {
		return int32(i)
	}
	if len(s.conditions) == maxConditions {
		c.exceeds(place{list: o.at.list, i: o.at.i}, o.at.inner, maxConditions, "different conditions")
		return 0
	}
	c.p.texts += int64(len(name))
	return s.addCondition(string(name))
}

// value makes the value of a rule known to the pipeline; an absent one is nil.
func (c *configParser) value(o *object) valueID {
	raw := o.raw("value")
	if raw == nil {
		raw = mpack.AppendNil(nil)
	}
	id := c.p.values.add(raw, MaxRuleMembers)
	if id == unknownID {
		c.exceeds(o.at, "value", MaxRuleMembers, "list elements and map pairs in all rules")
	}
	return id
}

func (c *configParser) bounds(top *object) {
	p := c.p
	p.MaxIterations, p.MaxLLMCalls, p.MaxAgentHops = defaultMaxIterations, defaultMaxLLMCalls, defaultMaxAgentHops
	for _, b := range [...]struct {
		k  string
		to *int64
	}{{"max_iterations", &p.MaxIterations}, {"max_llm_calls", &p.MaxLLMCalls}, {"max_agent_hops", &p.MaxAgentHops}} {
		if n, set := c.counter(top, b.k); set {
			*b.to = n
		}
	}
}

// edgeLimits reads the edge limits. One for an edge that no routing takes is checked like the
// others and then forgotten.
func (c *configParser) edgeLimits(top *object) {
	list := c.list(top, "edge_limits", maxEdgeLimits, maxEdgeLimits, "entries")
	at := place{list: "edge_limits"}
	for raw, ok := list.Next(); ok && c.fault == ""; raw, ok = list.Next() {
		o := c.object(at, raw, limitKeys)
		c.edgeLimit(&o)
		at.i++
	}
}

func (c *configParser) edgeLimit(o *object) {
	from, to := c.required(o, "from_stage"), c.required(o, "to_stage")
	limit, set := c.counter(o, "max_count")
	if !set {
		c.misfit(o.at, "max_count", "is required")
	}
	if c.fault != "" {
		return
	}
	f, t := c.p.find(from), c.p.find(to)
	switch {
	case f < 0:
		c.refuse(fmt.Sprintf("Edge limit from_stage '%s' does not exist", from))
	case t < 0:
		c.refuse(fmt.Sprintf("Edge limit to_stage '%s' does not exist", to))
	default:
		// The first limit of an edge counts.
		if i := c.p.edgeIndex(f, t); i >= 0 && c.p.edges[i].max == unlimited {
			c.p.edges[i].max = int32(limit)
		}
	}
}
