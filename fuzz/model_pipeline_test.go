package fuzz

import (
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strings"
)

// pipeline is a configuration of envelope §3.9. Stages are named by their places; the end is -1.
type pipeline struct {
	stages                    []stage
	iterations, llm, hops     int64
	limits                    map[[2]int]int64
	defaultNext, defaultError map[int]int
}

type stage struct {
	name, agent string
	rules       []rule
	listed      object
	order       int64
}

type rule struct {
	condition any // string, or nil: always
	value     string
	target    int
}

const badConfig = "Invalid pipeline_config: "

// config reads a pipeline_config; nil after a refusal, whose text is not reported here.
func (k *call) config(v any) *pipeline {
	o := k.parsed(v, badConfig)
	if k.bad != nil {
		return nil
	}
	c := &configReader{p: &pipeline{limits: map[[2]int]int64{}, defaultNext: map[int]int{}, defaultError: map[int]int{}}}
	c.read(o)
	if c.bad {
		k.bad = &refusal{code: "INVALID_ARGUMENT", message: anyOf{""}}
		return nil
	}
	return c.p
}

type configReader struct {
	p   *pipeline
	bad bool
}

func (c *configReader) need(ok bool) { c.bad = c.bad || !ok }

func (c *configReader) read(o object) {
	c.need(c.text(o, "name") != "")
	c.stages(c.maps(o, "agents"))
	for i := range c.p.stages {
		c.routing(i)
	}
	c.p.iterations = c.counter(o, "max_iterations", 3)
	c.p.llm = c.counter(o, "max_llm_calls", 10)
	c.p.hops = c.counter(o, "max_agent_hops", 21)
	for _, l := range c.maps(o, "edge_limits") {
		from, to := c.p.find(c.text(l, "from_stage")), c.p.find(c.text(l, "to_stage"))
		v, _ := l.get("max_count")
		c.need(from >= 0 && to >= 0 && v != nil)
		n := c.counter(l, "max_count", 0)
		if _, before := c.p.limits[[2]int{from, to}]; !before {
			c.p.limits[[2]int{from, to}] = n
		}
	}
}

// text is a member that may be absent, which counts as "".
func (c *configReader) text(o object, name string) string {
	v, _ := o.get(name)
	s, ok := v.(string)
	c.need((ok || v == nil) && len(s) <= 1024)
	return s
}

func (c *configReader) counter(o object, name string, def int64) int64 {
	v, _ := o.get(name)
	if v == nil {
		return def
	}
	n, _ := v.(int64)
	c.need(isI32(v))
	return n
}

// maps is a list of maps that may be absent.
func (c *configReader) maps(o object, name string) (list []object) {
	v, _ := o.get(name)
	items, ok := v.([]any)
	c.need(ok || v == nil)
	for _, item := range items {
		m, ok := item.(object)
		c.need(ok)
		list = append(list, m)
	}
	return list
}

func (c *configReader) stages(list []object) {
	c.need(len(list) > 0)
	ordered := false
	for _, o := range list {
		s := stage{name: c.text(o, "name"), agent: c.text(o, "agent"), listed: o}
		c.need(s.name != "" && c.p.find(s.name) < 0)
		if s.agent == "" {
			s.agent = s.name
		}
		if v, _ := o.get("stage_order"); v != nil {
			n, ok := v.(int64)
			c.need(ok)
			s.order, ordered = n, true
		}
		c.p.stages = append(c.p.stages, s)
	}
	if ordered {
		sort.SliceStable(c.p.stages, func(i, j int) bool { return c.p.stages[i].order < c.p.stages[j].order })
	}
}

func (c *configReader) routing(i int) {
	s := &c.p.stages[i]
	rules, worker := c.maps(s.listed, "routing"), c.maps(s.listed, "routing_rules")
	if len(rules) == 0 {
		rules = worker
	}
	for _, o := range rules {
		condition, _ := o.get("condition")
		c.need(condition == nil || isText(condition))
		value, _ := o.get("value")
		s.rules = append(s.rules, rule{condition, canonical(value), c.target(c.text(o, "target"))})
	}
	if name := c.text(s.listed, "default_next"); name != "" {
		c.p.defaultNext[i] = c.target(name)
	}
	if name := c.text(s.listed, "error_next"); name != "" {
		c.p.defaultError[i] = c.target(name)
	}
}

func (c *configReader) target(name string) int {
	at := c.p.find(name)
	c.need(at >= 0 || name == "end")
	return at
}

func (p *pipeline) find(name string) int {
	return slices.IndexFunc(p.stages, func(s stage) bool { return s.name == name })
}

func (p *pipeline) order() []any {
	names := []any{}
	for _, s := range p.stages {
		names = append(names, s.name)
	}
	return names
}

// next is step 5 of envelope §5.2.
func (p *pipeline) next(at int, success bool, output object) int {
	if to, set := p.defaultError[at]; set && !success {
		return to
	}
	for _, r := range p.stages[at].rules {
		name, conditional := r.condition.(string)
		v, there := output.get(name)
		if !conditional || there && canonical(v) == r.value {
			return r.target
		}
	}
	if to, set := p.defaultNext[at]; set {
		return to
	}
	return -1
}

// canonical spells equal values equally (envelope §3.9).
func canonical(v any) string {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v).String()
	case uint64:
		return new(big.Rat).SetInt(new(big.Int).SetUint64(v)).String()
	case float64:
		return new(big.Rat).SetFloat64(v).String()
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = canonical(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case object:
		var parts []string
		for _, m := range lastOnly(v) {
			parts = append(parts, fmt.Sprintf("%q:%s", m.key, canonical(m.val)))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	}
	return fmt.Sprintf("%#v", v)
}
