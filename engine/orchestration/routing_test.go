package orchestration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNext is the worked example of envelope §9.15 and its neighbourhood.
func TestNext(t *testing.T) {
	p := mustParse(t, stagesOf(`{"name":"s1","routing":[{"condition":"v","value":1,"target":"s3"}],"default_next":"s2","error_next":"s4"},
		{"name":"s2","error_next":"end","default_next":"s3"},{"name":"s3","routing":[{"condition":"v","value":1,"target":"end"}],"default_next":"s1"},{"name":"s4"}`))
	f := func(stage int, success bool, output string, want int) {
		t.Helper()
		if got := p.Next(stage, success, pack(output)); got != want {
			t.Errorf("stage %d, success %v, %s leads to %d, want %d", stage, success, output, got, want)
		}
	}
	f(0, true, `{"v":1}`, 2)
	f(0, true, `{"v":1.0}`, 2)
	f(0, true, `{"v":true}`, 1)
	f(0, true, `{"v":"1"}`, 1)
	f(0, true, `{"v":[1]}`, 1)
	f(0, true, `{"V":1,"vv":1,"":1}`, 1)
	f(0, true, `{}`, 1)
	f(0, false, `{"v":1}`, 3)
	f(1, false, `{}`, end) // error_next end: over, default_next or not
	f(1, true, `{}`, 2)
	f(2, true, `{"v":1}`, end)
	f(2, false, `{"v":1}`, end) // no error_next: as a success
	f(2, false, `{}`, 0)
	f(3, true, `{}`, end)
	f(3, false, `{}`, end)
	// The last of a repeated key counts.
	f(0, true, `{"v":2,"v":1}`, 2)
	f(0, true, `{"v":1,"w":1,"v":2}`, 1)
	f(0, true, `{"v":1,"v":[1]}`, 1)
	if got := p.Next(0, true, nil); got != 1 {
		t.Errorf("no output leads to %d", got)
	}
}

// TestRuleOrder: the first rule that matches wins, whatever the order of the output's keys.
func TestRuleOrder(t *testing.T) {
	p := mustParse(t, stagesOf(`{"name":"s0","routing":[{"condition":"a","value":1,"target":"s1"},{"condition":"b","value":1,"target":"s2"},
		{"condition":"a","value":2,"target":"s3"},{"condition":"c","target":"s4"},{"condition":"","value":"","target":"s5"},
		{"value":"unused","target":"s6"},{"condition":"d","value":1,"target":"s1"}]},
		{"name":"s1"},{"name":"s2"},{"name":"s3"},{"name":"s4"},{"name":"s5"},{"name":"s6","routing":[{"target":"s0"},{"condition":"a","value":1,"target":"s1"}]}`))
	f := func(output string, want int) {
		t.Helper()
		if got := p.Next(0, true, pack(output)); got != want {
			t.Errorf("%s leads to %d, want %d", output, got, want)
		}
	}
	f(`{"b":1,"a":1}`, 1)
	f(`{"b":1,"a":2}`, 2)
	f(`{"b":2,"a":2}`, 3)
	f(`{"a":3,"c":null}`, 4)
	f(`{"a":3,"c":false}`, 6)
	f(`{"":""}`, 5)
	f(`{"d":1}`, 6)
	if got := p.Next(6, true, pack(`{"a":1}`)); got != 0 {
		t.Errorf("a rule without condition lets a later one win: %d", got)
	}
}

// TestManyConditions takes each way of finding a condition, around the numbers where they change.
func TestManyConditions(t *testing.T) {
	for _, n := range []int{1, fewConditions, fewConditions + 1, 3 * fewConditions, maxConditions} {
		p := mustParse(t, stagesOf(`{"name":"s0","routing":[`+repeat(n, `{"condition":"c%d","value":7,"target":"s1"}`)+
			`,{"condition":"c0","value":8,"target":"s2"}]},{"name":"s1"},{"name":"s2"}`))
		f := func(output string, want int) {
			t.Helper()
			if got := p.Next(0, true, pack(output)); got != want {
				t.Errorf("%d conditions, %.60s leads to %d, want %d", n, output, got, want)
			}
		}
		for i := range n {
			f(fmt.Sprintf(`{"x":7,"c%d":7,"y":7}`, i), 1)
			f(fmt.Sprintf(`{"c%d":6}`, i), end)
		}
		f(`{"c0":8}`, 2)
		f(fmt.Sprintf(`{"c0":8,"c%d":7}`, n-1), 1)
		f(fmt.Sprintf(`{"c%d":7}`, n), end)
	}
}

func TestStageCalledEnd(t *testing.T) {
	p := mustParse(t, `{"name":"n","agents":[{"name":"s1","default_next":"end","error_next":"end","routing":[{"condition":"v","value":1,"target":"end"}]},{"name":"end"}],
		"edge_limits":[{"from_stage":"s1","to_stage":"end","max_count":4}]}`)
	for _, success := range []bool{true, false} {
		for _, output := range []string{`{}`, `{"v":1}`} {
			if got := p.Next(0, success, pack(output)); got != 1 {
				t.Errorf("success %v, %s leads to %d", success, output, got)
			}
		}
	}
	if index, limit, limited := p.edge(0, 1); index != 0 || limit != 4 || !limited {
		t.Errorf("edge %d, limit %d %v", index, limit, limited)
	}
	if got := p.Next(1, true, nil); got != end {
		t.Errorf("the stage called end leads to %d", got)
	}
}

func TestEdges(t *testing.T) {
	p := mustParse(t, `{"name":"n","agents":[
		{"name":"s1","routing":[{"condition":"a","target":"s3"},{"target":"s2"},{"target":"s3"},{"target":"end"}],"default_next":"s2","error_next":"s1"},
		{"name":"s2","default_next":"s1"},{"name":"s3","default_next":"end"}],
		"edge_limits":[{"from_stage":"s2","to_stage":"s1","max_count":2},{"from_stage":"s2","to_stage":"s1","max_count":9},
		{"from_stage":"s1","to_stage":"s2","max_count":0},{"from_stage":"s1","to_stage":"s2","max_count":1},{"from_stage":"s3","to_stage":"s1","max_count":5}]}`)
	type edge struct {
		From, To, Index int
		Limit           int64
		Limited         bool
	}
	var got []edge
	for from := range len(p.stages) {
		for to := range len(p.stages) {
			if i, limit, limited := p.edge(from, to); i >= 0 {
				got = append(got, edge{from, to, i, limit, limited})
			} else if limited {
				t.Errorf("%d -> %d is no edge and limited", from, to)
			}
		}
	}
	want := []edge{{0, 0, 0, 0, false}, {0, 1, 1, 0, true}, {0, 2, 2, 0, false}, {1, 0, 3, 2, true}}
	if d := cmp.Diff(want, got); d != "" || len(p.edges) != len(want) {
		t.Errorf("%d edges\n%s", len(p.edges), d)
	}
	for _, e := range want {
		if from, to := int(p.edges[e.Index].from), int(p.edges[e.Index].to); from != e.From || to != e.To {
			t.Errorf("edge %d is %d -> %d", e.Index, from, to)
		}
	}
}

// TestStageOrderMovesIndexes: targets and edges follow the stages where stage_order puts them.
func TestStageOrderMovesIndexes(t *testing.T) {
	p := mustParse(t, `{"name":"n","agents":[{"name":"c","stage_order":3,"default_next":"a"},{"name":"a","stage_order":1,"default_next":"b"},
		{"name":"b","stage_order":2,"default_next":"c"}],"edge_limits":[{"from_stage":"c","to_stage":"a","max_count":1}]}`)
	var way []string
	for stage, i := 0, 0; i < 4; i++ {
		way = append(way, p.stages[stage].Name)
		stage = p.Next(stage, true, nil)
	}
	if got := strings.Join(way, ""); got != "abca" {
		t.Errorf("the way is %s", got)
	}
	if _, limit, limited := p.edge(2, 0); limit != 1 || !limited {
		t.Errorf("c -> a: %d %v", limit, limited)
	}
}
