package orchtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// dice is where a program's choices come from: a seeded generator, or the bytes of a fuzzer.
type dice func(n int) int

func seeded(seed, run uint64) dice {
	r := rand.New(rand.NewPCG(seed, run))
	return func(n int) int { return r.IntN(n) }
}

// fromBytes draws from data and then always 0, which ends every choice soon.
func fromBytes(data []byte) dice {
	return func(n int) int {
		if len(data) == 0 {
			return 0
		}
		c := data[0]
		data = data[1:]
		return int(c) % n
	}
}

// one chance in n.
func (d dice) one(n int) bool { return d(n) == n-1 }

func pick[T any](d dice, from ...T) T { return from[d(len(from))] }

// opKind is what a step of a program does.
type opKind uint8

const (
	opReport opKind = iota
	opNext
	opState
	opInit
	opBadInit
	opUpdate
	opEnded
	opRemoved
	opStranger // calls that name a process no one knows
)

var opNames = [...]string{"report", "next", "state", "initialize", "refused initialize", "update", "ended", "removed", "stranger"}

// Who reports; written relative to the current stage, so that a shortened program still means
// something.
const (
	rightAgent = iota
	stageName
	otherAgent
	nobody
)

type op struct {
	kind   opKind
	second bool // of the program's two processes, the other one
	who    int
	report report
	config int // of program.configs
	env    obj // its envelope_id is put in when the program runs
	bad    int // of badInits
	force  bool
	asText bool // config and envelope are given as JSON text
	wait   time.Duration
}

// program is one random run: it begins with an initialize and knows nothing of what happens.
type program struct {
	stored  bool // the envelope is created in the store first
	configs []obj
	ops     []op
}

func (p program) String() string {
	var b strings.Builder
	for i, c := range p.configs {
		fmt.Fprintf(&b, "config %d %s\n", i, jsonText(c))
	}
	fmt.Fprintf(&b, "envelope stored first: %v\n", p.stored)
	for _, o := range p.ops {
		b.WriteString(opNames[o.kind])
		if o.second {
			b.WriteString(" of the second process")
		}
		switch o.kind {
		case opReport:
			fmt.Fprintf(&b, " by %d %+v", o.who, o.report)
		case opInit:
			fmt.Fprintf(&b, " config %d force %v text %v envelope %s", o.config, o.force, o.asText, jsonText(o.env))
		case opBadInit:
			fmt.Fprintf(&b, " fault %d", o.bad)
		case opUpdate:
			fmt.Fprintf(&b, " text %v envelope %s", o.asText, jsonText(o.env))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func makeProgram(d dice) program {
	p := program{stored: d.one(4)}
	for range 1 + d(5)/4 {
		p.configs = append(p.configs, makeConfig(d))
	}
	p.ops = append(p.ops, op{kind: opInit, env: makeEnvelope(d, p.configs[0]), asText: d.one(8)})
	if d.one(3) {
		p.ops = append(p.ops, op{kind: opInit, second: true, env: makeEnvelope(d, p.configs[0])})
	}
	for range 4 + d(12) {
		p.ops = append(p.ops, makeOp(d, p))
	}
	return p
}

func makeOp(d dice, p program) op {
	o := op{wait: time.Duration(d(3)) * time.Millisecond, second: d.one(6)}
	switch n := d(40); {
	case n < 24:
		o.kind, o.who, o.report = opReport, pick(d, rightAgent, rightAgent, rightAgent, rightAgent, rightAgent, stageName, otherAgent, nobody), makeReport(d)
	case n < 30:
		o.kind = opNext
	case n < 32:
		o.kind = opState
	case n < 34:
		o.kind, o.config, o.force, o.asText = opInit, d(len(p.configs)), !d.one(3), d.one(8)
		o.env = makeEnvelope(d, p.configs[o.config])
	case n < 35:
		o.kind, o.bad, o.force = opBadInit, d(len(badInits)), d(2) == 1
	case n < 37:
		o.kind, o.env, o.asText = opUpdate, makeEnvelope(d, p.configs[0]), d.one(8)
	case n < 38:
		o.kind = opEnded
	case n < 39:
		o.kind = opStranger
	default:
		o.kind = pick(d, opNext, opRemoved)
	}
	return o
}

func makeConfig(d dice) obj {
	n := 1 + d(6)
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("s", i)
	}
	if d.one(12) {
		names[d(n)] = "end"
	}
	anywhere := func() any { return pick(d, append([]string{"end"}, names...)...) }
	c := obj{"name": "n"}
	agents := arr{}
	ordered := d.one(4)
	for i, name := range names {
		agents = append(agents, makeStage(d, name, i, ordered, anywhere))
	}
	c["agents"] = agents
	for _, key := range []string{"max_iterations", "max_llm_calls", "max_agent_hops"} {
		if !d.one(4) {
			c[key] = d(9)
		}
	}
	limits := arr{}
	for range d(4) {
		limits = append(limits, obj{"from_stage": pick(d, names...), "to_stage": pick(d, names...), "max_count": d(4)})
	}
	if len(limits) > 0 || d(2) == 0 {
		c["edge_limits"] = limits
	}
	if d.one(10) {
		c["max_iterations"], c["max_llm_calls"], c["max_agent_hops"], c["unknown"] = 12, maxCounter, maxCounter, obj{"a": 1}
	}
	return c
}

func makeStage(d dice, name string, i int, ordered bool, anywhere func() any) obj {
	s := obj{"name": name}
	switch d(5) {
	case 0, 1:
		s["agent"] = fmt.Sprint("a", i)
	case 2:
		s["agent"] = pick(d, "a0", "s0", "s1")
	case 3:
		s["agent"] = pick[any](d, "", nil)
	}
	rules := arr{}
	for range d(4) {
		r := obj{"condition": pick[any](d, nil, "v", "v", "v", "w"), "target": anywhere()}
		if v := makeValue(d); !d.one(6) {
			r["value"] = v
		}
		rules = append(rules, r)
	}
	if len(rules) > 0 || d(2) == 0 {
		s[pick(d, "routing", "routing_rules")] = rules
	}
	for _, key := range []string{"default_next", "error_next"} {
		switch d(4) {
		case 0, 1:
			s[key] = anywhere()
		case 2:
			s[key] = nil
		}
	}
	if ordered && !d.one(4) {
		s["stage_order"] = d(4)
	}
	return s
}

// makeValue draws from few values, so that rules match often.
func makeValue(d dice) any {
	switch d(10) {
	case 0, 1:
		return 1
	case 2:
		return pick[any](d, 1.0, 1.5, 0, -1, -1.0)
	case 3:
		return pick[any](d, true, false)
	case 4:
		return pick[any](d, "a", "1", "")
	case 5:
		return nil
	case 6:
		return pick[any](d, arr{}, arr{1, 2}, arr{1.0, 2}, arr{2, 1})
	case 7:
		return pick[any](d, obj{}, obj{"a": 1, "b": arr{nil}}, obj{"a": 1.0, "b": arr{nil}}, obj{"a": 1}, obj{"a": 1, "c": arr{nil}})
	case 8:
		return pick[any](d, int64(1)<<53+1, float64(1<<53), int64(1)<<53, uint64(1)<<63, float64(1<<63), int64(maxTokens))
	}
	return pick[any](d, obj{"a": obj{"b": arr{1, obj{"c": true}}}}, obj{"a": obj{"b": arr{1.0, obj{"c": true}}}}, arr{arr{}, obj{}})
}

func makeReport(d dice) report {
	r := report{tokensIn: -1, tokensOut: -1, failed: d.one(4)}
	r.err = pick(d, "", "boom", "it's ☂ bad")
	if !d.one(5) {
		r.output = obj{}
		for _, key := range []string{"v", "w", "x"} {
			if d(3) > 0 {
				r.output[key] = makeValue(d)
			}
		}
		if d.one(8) {
			r.output["success"], r.output["error"] = true, arr{"mine"}
		}
	}
	r.llm, r.tool = int64(d(3)/2), int64(d(3))
	if d.one(3) {
		r.tokensIn, r.tokensOut = int64(d(1000)), int64(d(1000))
	}
	if d.one(30) {
		r.llm, r.tool, r.tokensIn, r.tokensOut = pick(d, int64(0), maxCounter), maxCounter, maxTokens, pick(d, int64(-1), maxTokens)
	}
	return r
}
