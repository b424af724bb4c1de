package orchestration

import (
	"trunkline/codec/mpack"
)

// end is the target that is no stage: the pipeline is over (envelope §5.2).
const end = -1

// Limits on what one configuration may hold, so that a session's memory and the time of a report
// are bounded whatever the frame size is. They are far above what people write; a configuration
// over one of them is refused by name.
const (
	// maxStages bounds the stages of a pipeline: with names of full length its stage_order, which
	// stands in every reply, takes a fifth of a frame.
	maxStages = 1024
	// MaxRules bounds the routing rules of all stages together.
	MaxRules = 65536
	// maxConditions bounds the different conditions of one stage: each needs a place on the stack
	// while a report is routed.
	maxConditions = 1024
	// MaxRuleMembers bounds the list elements and map pairs, at any depth, of all rule values
	// together.
	MaxRuleMembers = 65536
	// maxEdgeLimits bounds the entries of edge_limits.
	maxEdgeLimits = 65536
)

// The bounds of a pipeline whose configuration names none (envelope §3.9).
const (
	defaultMaxIterations = 3
	defaultMaxLLMCalls   = 10
	defaultMaxAgentHops  = 21
)

// Pipeline is a validated pipeline_config with all names resolved to indexes (envelope §3.9). It
// never changes once parsed and may be shared by sessions and goroutines; it holds nothing of the
// bytes it was parsed from.
type Pipeline struct {
	// The bounds a session takes over into its envelope; 0 means already exhausted.
	MaxIterations, MaxLLMCalls, MaxAgentHops int64

	stages []Stage // at least one, in the order of execution
	byName map[string]int32
	edges  []edge   // by from, then to
	values valueSet // of all rules
	texts  int64    // bytes of the names and conditions kept
	order  int      // bytes of appendStageOrder
	arrows bool     // a stage has an arrow in its name
}

// Stage is one step of a pipeline.
type Stage struct {
	// Name is unique in its pipeline; Agent is who runs the stage, the name itself if the
	// configuration sets nothing else.
	Name, Agent string

	errorNext, defaultNext int32 // a stage, End or unset
	edgesFrom, edgesTo     int32 // the stage's part of Pipeline.edges
	rules                  []rule
	conditions             []condition
	byCondition            map[string]int32 // nil while the conditions are few enough to look at each
}

// find returns the index of the stage called name, -1 if there is none. It does not allocate.
func (p *Pipeline) find(name []byte) int {
	if i, ok := p.byName[string(name)]; ok {
		return int(i)
	}
	return -1
}

func (p *Pipeline) appendStageOrder(dst []byte) []byte {
	dst = mpack.AppendArray(dst, len(p.stages))
	for i := range p.stages {
		dst = mpack.AppendStr(dst, p.stages[i].Name)
	}
	return dst
}

// What the parts of a pipeline weigh in bytes: their structures, and for what stands in a map its
// share of the map's places, which are not all taken.
const (
	pipelineWeight  = 512
	stageWeight     = 128
	ruleWeight      = 12
	edgeWeight      = 12
	conditionWeight = 24
	mapWeight       = 48
)

// bytes estimates the memory the pipeline keeps, in bytes.
func (p *Pipeline) bytes() int64 {
	n := pipelineWeight + p.texts + p.values.size + int64(len(p.edges))*edgeWeight
	for i := range p.stages {
		s := &p.stages[i]
		n += stageWeight + mapWeight + int64(len(s.rules))*ruleWeight + int64(len(s.conditions))*conditionWeight
		n += 2 * int64(len(s.byCondition)) * mapWeight
	}
	return n
}

// ParsePipeline reads the MessagePack map raw, which passed the Scanner, as a pipeline_config
// (envelope §3.9). It returns either the pipeline or the text of the refusal. The first fault
// answers, looked for in this order: name; the stages in the order listed, names first; their rules
// and next stages; the bounds; the edge limits. It takes time and memory linear in raw.
func ParsePipeline(raw []byte) (p *Pipeline, refusal string) {
	c := configParser{p: &Pipeline{}}
	top := c.object(place{}, raw, topKeys)
	c.name(&top)
	c.stages(&top)
	c.routing()
	c.bounds(&top)
	c.edgeLimits(&top)
	if c.fault != "" {
		return nil, c.fault
	}
	var buf [512]byte // enough for most, so that measuring takes no memory
	c.p.order = len(c.p.appendStageOrder(buf[:0]))
	return c.p, ""
}
