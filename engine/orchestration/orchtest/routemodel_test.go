package orchtest

import (
	"cmp"
	"math"
	"math/big"
	"slices"
)

// stageModel, ruleModel and planModel are a valid pipeline as §3.9 of envelope reads it.
type stageModel struct {
	name, agent            string
	rules                  []ruleModel
	defaultNext, errorNext string // "": none
	order                  int
}

type ruleModel struct {
	always    bool
	condition string
	value     any
	target    string
}

type edge struct{ from, to string }

type planModel struct {
	stages                              []stageModel
	limits                              map[edge]int64
	maxIterations, maxLLMCalls, maxHops int64
	hasEnd                              bool // a stage is called end
}

// planOf reads a valid pipeline_config.
func planOf(config obj) *planModel {
	p := &planModel{limits: map[edge]int64{}}
	p.maxIterations = count(config["max_iterations"], 3)
	p.maxLLMCalls = count(config["max_llm_calls"], 10)
	p.maxHops = count(config["max_agent_hops"], 21)
	ordered := false
	for _, v := range config["agents"].(arr) {
		s, has := stageOf(v.(obj))
		p.stages = append(p.stages, s)
		p.hasEnd = p.hasEnd || s.name == "end"
		ordered = ordered || has
	}
	if ordered {
		slices.SortStableFunc(p.stages, func(a, b stageModel) int { return cmp.Compare(a.order, b.order) })
	}
	limits, _ := config["edge_limits"].(arr)
	for _, v := range limits {
		l := v.(obj)
		e := edge{l["from_stage"].(string), l["to_stage"].(string)}
		if _, twice := p.limits[e]; !twice {
			p.limits[e] = count(l["max_count"], 0)
		}
	}
	return p
}

func stageOf(m obj) (s stageModel, ordered bool) {
	s.name = m["name"].(string)
	if s.agent, _ = m["agent"].(string); s.agent == "" {
		s.agent = s.name
	}
	s.defaultNext, _ = m["default_next"].(string)
	s.errorNext, _ = m["error_next"].(string)
	if m["stage_order"] != nil {
		s.order, ordered = int(count(m["stage_order"], 0)), true
	}
	rules, ok := m["routing"].(arr)
	if !ok {
		rules, _ = m["routing_rules"].(arr)
	}
	for _, v := range rules {
		r := v.(obj)
		condition, ok := r["condition"].(string)
		s.rules = append(s.rules, ruleModel{always: !ok, condition: condition, value: r["value"], target: r["target"].(string)})
	}
	return s, ordered
}

func count(v any, missing int64) int64 {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int64:
		return v
	}
	return missing
}

func (p *planModel) find(name string) *stageModel {
	for i := range p.stages {
		if p.stages[i].name == name {
			return &p.stages[i]
		}
	}
	return nil
}

func (p *planModel) names() arr {
	names := arr{}
	for _, s := range p.stages {
		names = append(names, s.name)
	}
	return names
}

// entry is the stage a session starts with (envelope §4.10); "" for a stage that does not exist.
func (p *planModel) entry(current string) string {
	if p.find(current) != nil {
		return current
	}
	if current == "" || current == "start" || current == "end" {
		return p.stages[0].name
	}
	return ""
}

// after is step 5 of envelope §5.2: the stage after this report, "" for none.
func (p *planModel) after(s *stageModel, success bool, output obj) string {
	target := s.defaultNext
	if !success && s.errorNext != "" {
		target = s.errorNext
	} else {
		for _, r := range s.rules {
			if r.matches(output) {
				target = r.target
				break
			}
		}
	}
	if target == "end" && !p.hasEnd {
		return ""
	}
	return target
}

func (r *ruleModel) matches(output obj) bool {
	if r.always {
		return true
	}
	v, there := output[r.condition]
	return there && equal(v, r.value)
}

// equal is JSON equality with one kind of number (envelope §3.9).
func equal(a, b any) bool {
	if x, y := number(a), number(b); x != nil || y != nil {
		return x != nil && y != nil && x.Cmp(y) == 0
	}
	switch a := a.(type) {
	case arr:
		b, ok := b.(arr)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case obj:
		b, ok := b.(obj)
		if !ok || len(a) != len(b) {
			return false
		}
		for k := range a {
			if v, there := b[k]; !there || !equal(a[k], v) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case arr, obj:
		return false
	}
	return a == b
}

// number is a number's exact value, nil for anything else.
func number(v any) *big.Rat {
	switch v := v.(type) {
	case int:
		return new(big.Rat).SetInt64(int64(v))
	case int64:
		return new(big.Rat).SetInt64(v)
	case uint64:
		return new(big.Rat).SetUint64(v)
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return new(big.Rat).SetFloat64(v)
		}
	}
	return nil
}
