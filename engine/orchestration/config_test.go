package orchestration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trunkline/codec/mpack"
)

// pack writes JSON text as MessagePack, repeated keys and the order of keys included; integers
// within 64 bits as integers, other numbers as float64.
func pack(text string) []byte {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	return packNext(dec, nil)
}

func packNext(dec *json.Decoder, dst []byte) []byte {
	token, err := dec.Token()
	if err != nil {
		panic(err)
	}
	switch token := token.(type) {
	case json.Delim:
		n, members := 0, []byte(nil)
		for ; dec.More(); n++ {
			members = packNext(dec, members)
		}
		if _, err := dec.Token(); err != nil {
			panic(err)
		}
		if token == '{' {
			return append(mpack.AppendMap(dst, n/2), members...)
		}
		return append(mpack.AppendArray(dst, n), members...)
	case string:
		return mpack.AppendStr(dst, token)
	case json.Number:
		if n, err := strconv.ParseInt(string(token), 10, 64); err == nil {
			return mpack.AppendInt(dst, n)
		}
		if n, err := strconv.ParseUint(string(token), 10, 64); err == nil {
			return mpack.AppendUint(dst, n)
		}
		f, _ := token.Float64()
		return mpack.AppendFloat(dst, f)
	case bool:
		return mpack.AppendBool(dst, token)
	}
	return mpack.AppendNil(dst)
}

// mustParse returns the pipeline of a configuration in JSON.
func mustParse(t testing.TB, text string) *Pipeline {
	t.Helper()
	p, refusal := ParsePipeline(pack(text))
	if refusal != "" {
		t.Fatalf("%.200s: %s", text, refusal)
	}
	return p
}

// stagesOf is a configuration of just these stages.
func stagesOf(stages string) string { return `{"name":"n","agents":[` + stages + `]}` }

// repeat joins n texts made of a format with the numbers from 0.
func repeat(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		if parts[i] = format; strings.Contains(format, "%") {
			parts[i] = fmt.Sprintf(format, i)
		}
	}
	return strings.Join(parts, ",")
}

func TestRefusals(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if p, got := ParsePipeline(pack(text)); got != want || (p == nil) != (want != "") {
			t.Errorf("%.200s\n got %q, pipeline %v\nwant %q", text, got, p != nil, want)
		}
	}
	// bad: a type fault; one: of a single stage a; rule: of its second rule; limit: of its edge
	// limit.
	const p = "Invalid pipeline_config: "
	bad := func(text, want string) { t.Helper(); f(text, p+want) }
	one := func(members, want string) { t.Helper(); f(stagesOf(`{"name":"a",`+members+`}`), want) }
	rule := func(rule, want string) { t.Helper(); one(`"routing":[{"target":"end"},`+rule+`]`, want) }
	limit := func(entry, want string) {
		t.Helper()
		f(`{"name":"n","agents":[{"name":"a"}],"edge_limits":[`+entry+`]}`, want)
	}
	long := strings.Repeat("x", 1025)

	bad(`[]`, "must be an object")
	bad(`7`, "must be an object")
	f(`{}`, "Pipeline name is required")
	f(`{"name":null,"agents":5}`, "Pipeline name is required")
	f(`{"name":"","agents":[]}`, "Pipeline name is required")
	bad(`{"name":7}`, "name must be a string")
	bad(`{"name":"`+long+`"}`, "name exceeds 1024 bytes")

	f(`{"name":"n"}`, "Pipeline must have at least one stage")
	f(`{"name":"n","agents":null}`, "Pipeline must have at least one stage")
	f(`{"name":"n","agents":[]}`, "Pipeline must have at least one stage")
	bad(`{"name":"n","agents":{}}`, "agents must be an array")
	bad(stagesOf(`{"name":"a"},"b"`), "agents[1] must be an object")
	bad(stagesOf(`null`), "agents[0] must be an object")
	bad(stagesOf(`{"name":"a"},{"agent":"b"}`), "agents[1].name is required")
	bad(stagesOf(`{"name":null}`), "agents[0].name is required")
	bad(stagesOf(`{"name":""}`), "agents[0].name cannot be empty")
	bad(stagesOf(`{"name":true}`), "agents[0].name must be a string")
	bad(stagesOf(`{"name":"`+long+`"}`), "agents[0].name exceeds 1024 bytes")
	f(stagesOf(`{"name":"a"},{"name":"b"},{"name":"a"}`), "Duplicate stage name: a")
	one(`"agent":7`, p+"agents[0].agent must be a string")
	one(`"agent":"`+long+`"`, p+"agents[0].agent exceeds 1024 bytes")
	one(`"stage_order":"1"`, p+"agents[0].stage_order must be an integer")
	one(`"stage_order":1.0`, p+"agents[0].stage_order must be an integer")
	one(`"stage_order":9223372036854775808`, p+"agents[0].stage_order value 9223372036854775808 exceeds i64 range")

	bad(stagesOf(`{"name":"a"},{"name":"b","routing":{}}`), "agents[1].routing must be an array")
	one(`"routing_rules":"x"`, p+"agents[0].routing_rules must be an array")
	one(`"routing":[{"target":"end"}],"routing_rules":5`, p+"agents[0].routing_rules must be an array")
	one(`"routing_rules":[7]`, p+"agents[0].routing_rules[0] must be an object")
	rule(`[]`, p+"agents[0].routing[1] must be an object")
	rule(`{"condition":7,"target":"end"}`, p+"agents[0].routing[1].condition must be a string")
	rule(`{"condition":"k"}`, p+"agents[0].routing[1].target is required")
	rule(`{"target":null}`, p+"agents[0].routing[1].target is required")
	rule(`{"target":1}`, p+"agents[0].routing[1].target must be a string")
	rule(`{"target":"`+long+`"}`, p+"agents[0].routing[1].target exceeds 1024 bytes")
	rule(`{"target":"zz"}`, "Stage 'a' has routing target 'zz' which does not exist in pipeline")
	rule(`{"target":""}`, "Stage 'a' has routing target '' which does not exist in pipeline")
	rule(`{"target":"End"}`, "Stage 'a' has routing target 'End' which does not exist in pipeline")
	one(`"default_next":5`, p+"agents[0].default_next must be a string")
	one(`"default_next":"zz"`, "Stage 'a' has default_next 'zz' which does not exist in pipeline")
	one(`"error_next":[]`, p+"agents[0].error_next must be a string")
	one(`"error_next":"zz"`, "Stage 'a' has error_next 'zz' which does not exist in pipeline")
	one(`"error_next":"`+long+`"`, p+"agents[0].error_next exceeds 1024 bytes")

	for _, key := range []string{"max_iterations", "max_llm_calls", "max_agent_hops"} {
		bound := func(value, want string) {
			t.Helper()
			bad(`{"name":"n","agents":[{"name":"a"}],"`+key+`":`+value+`}`, key+" "+want)
		}
		bound(`-1`, "must be non-negative, got -1")
		bound(`2147483648`, "value 2147483648 exceeds i32 range")
		bound(`18446744073709551615`, "value 18446744073709551615 exceeds i32 range")
		bound(`5.0`, "must be an integer")
		bound(`true`, "must be an integer")
		bound(`"5"`, "must be an integer")
	}

	bad(`{"name":"n","agents":[{"name":"a"}],"edge_limits":{}}`, "edge_limits must be an array")
	limit(`7`, p+"edge_limits[0] must be an object")
	limit(`{"to_stage":"a","max_count":1}`, p+"edge_limits[0].from_stage is required")
	limit(`{"from_stage":"a","to_stage":5,"max_count":1}`, p+"edge_limits[0].to_stage must be a string")
	limit(`{"from_stage":"`+long+`"}`, p+"edge_limits[0].from_stage exceeds 1024 bytes")
	limit(`{"from_stage":"a","to_stage":"a"}`, p+"edge_limits[0].max_count is required")
	limit(`{"from_stage":"a","to_stage":"a","max_count":1},{"from_stage":"a","to_stage":"a","max_count":-1}`,
		p+"edge_limits[1].max_count must be non-negative, got -1")
	limit(`{"from_stage":"a","to_stage":"a","max_count":3000000000}`, p+"edge_limits[0].max_count value 3000000000 exceeds i32 range")
	limit(`{"from_stage":"zz","to_stage":"a","max_count":1}`, "Edge limit from_stage 'zz' does not exist")
	limit(`{"from_stage":"a","to_stage":"zz","max_count":1}`, "Edge limit to_stage 'zz' does not exist")
	limit(`{"from_stage":"a","to_stage":"end","max_count":1}`, "Edge limit to_stage 'end' does not exist")
}

// filled is a configuration with an array of n elements, made of a format as repeat does it, where
// the text HERE stands.
func filled(config string, n int, element string) []byte {
	array := mpack.AppendArray(nil, n)
	if strings.Contains(element, "%") {
		for i := range n {
			array = append(array, pack(fmt.Sprintf(element, i))...)
		}
	} else {
		array = append(array, bytes.Repeat(pack(element), n)...)
	}
	return bytes.Replace(pack(config), []byte("\xa4HERE"), array, 1)
}

func TestLimits(t *testing.T) {
	f := func(config string, limit int, element, want string) {
		t.Helper()
		if _, got := ParsePipeline(filled(config, limit, element)); got != "" {
			t.Errorf("at the limit: %s", got)
		}
		if _, got := ParsePipeline(filled(config, limit+1, element)); got != "Invalid pipeline_config: "+want {
			t.Errorf("above the limit: %s", got)
		}
	}
	f(`{"name":"n","agents":"HERE"}`, maxStages, `{"name":"s%d"}`, "agents exceeds 1024 entries")
	f(stagesOf(`{"name":"a","routing":[{"target":"end"}]},{"name":"b","routing":"HERE"}`), MaxRules-1, `{"target":"end","value":1}`,
		"agents[1].routing exceeds 65536 rules in all stages")
	f(stagesOf(`{"name":"a","routing_rules":"HERE"},{"name":"b","routing":[{"target":"end","condition":"other"}]}`), maxConditions,
		`{"target":"end","condition":"c%d"}`, "agents[0].routing_rules exceeds 1024 different conditions")
	f(stagesOf(`{"name":"a","routing":[{"target":"end","condition":"c","value":{"k":[1]}},{"target":"end","condition":"c","value":["HERE"]}]}`),
		MaxRuleMembers-3, `7`, "agents[0].routing[1].value exceeds 65536 list elements and map pairs in all rules")
	f(`{"name":"n","agents":[{"name":"a"}],"edge_limits":"HERE"}`, maxEdgeLimits, `{"from_stage":"a","to_stage":"a","max_count":1}`,
		"edge_limits exceeds 65536 entries")
	long := strings.Repeat("x", 1024)
	mustParse(t, strings.ReplaceAll(`{"name":"LONG","agents":[{"name":"LONG","agent":"LONG","default_next":"LONG","routing":[{"target":"LONG"}]}],
		"edge_limits":[{"from_stage":"LONG","to_stage":"LONG","max_count":2147483647}],"max_iterations":2147483647}`, "LONG", long))
}

// shape is what a test compares of a pipeline.
type shape struct {
	Stages, Agents     []string
	Iterations, LLM, A int64
}

func shapeOf(p *Pipeline) (s shape) {
	for i := range len(p.stages) {
		s.Stages, s.Agents = append(s.Stages, p.stages[i].Name), append(s.Agents, p.stages[i].Agent)
	}
	s.Iterations, s.LLM, s.A = p.MaxIterations, p.MaxLLMCalls, p.MaxAgentHops
	return s
}

func TestShapes(t *testing.T) {
	f := func(text string, want shape) {
		t.Helper()
		p := mustParse(t, text)
		if d := cmp.Diff(want, shapeOf(p)); d != "" {
			t.Errorf("%s\n%s", text, d)
		}
		order := mpack.AppendArray(nil, len(want.Stages))
		for i, name := range want.Stages {
			order = mpack.AppendStr(order, name)
			if got := p.find([]byte(name)); got != i {
				t.Errorf("%s is stage %d, want %d", name, got, i)
			}
		}
		if got := p.appendStageOrder([]byte("x")); !bytes.Equal(got[1:], order) {
			t.Errorf("stage order %x, want %x", got[1:], order)
		}
	}
	l := func(names ...string) []string { return names }
	f(stagesOf(`{"name":"a"},{"name":"b","agent":"x"},{"name":"c","agent":""},{"name":"d","agent":null}`),
		shape{l("a", "b", "c", "d"), l("a", "x", "c", "d"), 3, 10, 21})
	f(`{"max_iterations":0,"max_llm_calls":2147483647,"max_agent_hops":null,"name":"n","agents":[{"name":"a"}],"edge_limits":null,"zz":{"a":[1]}}`,
		shape{l("a"), l("a"), 0, 2147483647, 21})
	// stage_order: missing counts as 0, equal ones stay as listed, negative ones are allowed.
	f(stagesOf(`{"name":"a","stage_order":2},{"name":"b"},{"name":"c","stage_order":1},{"name":"d","stage_order":0},{"name":"e","stage_order":-1}`),
		shape{l("e", "b", "d", "c", "a"), l("e", "b", "d", "c", "a"), 3, 10, 21})
	f(stagesOf(`{"name":"b","stage_order":null},{"name":"a","stage_order":null}`), shape{l("b", "a"), l("b", "a"), 3, 10, 21})
	// Of a repeated key the last one counts, also when it is nil.
	f(`{"name":"","name":"n","agents":5,"agents":[{"name":"a","name":"b","agent":"x","agent":null}],"max_iterations":5,"max_iterations":null}`,
		shape{l("b"), l("b"), 3, 10, 21})
	if p := mustParse(t, stagesOf(`{"name":"a"}`)); p.find([]byte("zz")) != -1 || p.find(nil) != -1 {
		t.Error("found a stage that is not there")
	}
}

// TestBothDialects mixes the kernel's and the worker's way of writing stages.
func TestBothDialects(t *testing.T) {
	p := mustParse(t, `{"name":"n","agents":[
		{"name":"plan","stage_order":1,"output_key":"p","routing_rules":[{"condition":"ok","value":true,"target":"run"}],"default_next":"end"},
		{"name":"run","agent":"runner","stage_order":2,"routing":[{"condition":null,"value":null,"target":"check"}],"error_next":null},
		{"name":"check","stage_order":3,"routing":[],"routing_rules":[{"target":"plan"}]},
		{"name":"both","stage_order":4,"routing":[{"target":"run"}],"routing_rules":[{"target":"plan"}]},
		{"name":"empty","stage_order":5,"default_next":"","error_next":"","routing":null,"routing_rules":null}]}`)
	f := func(stage int, output string, want int) {
		t.Helper()
		if got := p.Next(stage, true, pack(output)); got != want {
			t.Errorf("stage %d with %s leads to %d, want %d", stage, output, got, want)
		}
	}
	f(0, `{"ok":true}`, 1)
	f(0, `{"ok":1}`, end)
	f(1, `{}`, 2)
	f(2, `{}`, 0)
	f(3, `{}`, 1)
	f(4, `{}`, end)
}

// TestKeepsNothing: the pipeline is whole after the bytes it came from are gone.
func TestKeepsNothing(t *testing.T) {
	text := `{"name":"n","agents":[{"name":"s1","agent":"a1","routing":[{"condition":"key","value":{"list":["text",2.5]},"target":"s2"}]},
		{"name":"s2","stage_order":3}],"edge_limits":[{"from_stage":"s1","to_stage":"s2","max_count":2}]}`
	raw := pack(text)
	p, refusal := ParsePipeline(raw)
	if refusal != "" {
		t.Fatal(refusal)
	}
	for i := range raw {
		raw[i] = 0xcc
	}
	if got := p.Next(0, true, pack(`{"key":{"list":["text",2.5]}}`)); got != 1 {
		t.Errorf("leads to %d", got)
	}
	if d := cmp.Diff(shape{[]string{"s1", "s2"}, []string{"a1", "s2"}, 3, 10, 21}, shapeOf(p)); d != "" {
		t.Error(d)
	}
	if p.find([]byte("s2")) != 1 {
		t.Error("s2 is gone")
	}
}

// TestDamage changes and cuts a configuration at each place: never a crash, never a pipeline with a
// loose end.
func TestDamage(t *testing.T) {
	raw := pack(`{"name":"n","agents":[{"name":"a","routing":[{"condition":"c","value":[{"k":1.5}],"target":"b"}]},{"name":"b"}],
		"edge_limits":[{"from_stage":"a","to_stage":"b","max_count":2}]}`)
	for i := range raw {
		ParsePipeline(raw[:i])
		for _, b := range []byte{0x00, 0x80, 0x81, 0x91, 0xa1, 0xc0, 0xc1, 0xc4, 0xcb, 0xdb, 0xdd, 0xdf, 0xff} {
			damaged := slices.Clone(raw)
			damaged[i] = b
			if p, _ := ParsePipeline(damaged); p != nil {
				checkPipeline(t, p)
			}
		}
	}
}

// checkPipeline walks all of a pipeline.
func checkPipeline(t testing.TB, p *Pipeline) {
	t.Helper()
	edges := 0
	for i := range len(p.stages) {
		for _, success := range []bool{true, false} {
			to := p.Next(i, success, nil)
			if to < end || to >= len(p.stages) {
				t.Fatalf("stage %d leads to %d of %d", i, to, len(p.stages))
			}
			if index, _, _ := p.edge(i, max(to, 0)); to != end && (index < 0 || index >= len(p.edges)) {
				t.Fatalf("the edge from %d to %d has index %d of %d", i, to, index, len(p.edges))
			}
		}
		for k := range p.stages[i].rules {
			if to := int(p.stages[i].rules[k].target); to != end && p.edgeIndex(i, to) < 0 {
				t.Fatalf("no edge for rule %d of stage %d", k, i)
			}
		}
		if got := p.find([]byte(p.stages[i].Name)); got != i {
			t.Fatalf("stage %d is found at %d", i, got)
		}
	}
	for i := range len(p.edges) {
		from, to := int(p.edges[i].from), int(p.edges[i].to)
		if index, limit, limited := p.edge(from, to); index != i || limited != (p.edges[i].max >= 0) || limit < 0 {
			t.Fatalf("edge %d is %d, limit %d %v", i, index, limit, limited)
		}
		edges++
	}
	if p.bytes() <= 0 || edges > MaxRules+2*maxStages {
		t.Fatalf("%d bytes, %d edges", p.bytes(), edges)
	}
}
