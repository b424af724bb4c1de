package orchtest

import (
	"math"
	"testing"
)

// TestRuleValues: deep JSON equality with one kind of number (envelope §3.9, D34).
func TestRuleValues(t *testing.T) {
	k := newTalk(t)
	f := func(value, given any, want bool) {
		t.Helper()
		config := obj{"name": "n", "agents": arr{
			obj{"name": "a", "routing": arr{obj{"condition": "k", "value": value, "target": "yes"}}, "default_next": "no"}, obj{"name": "yes"}, obj{"name": "no"},
		}}
		target := "no"
		if want {
			target = "yes"
		}
		for _, v := range []obj{{"k": given}, {"a": 1, "k": given, "z": arr{}}} {
			k.body(k.initialize("p", config, flat("e"), true))
			k.runs(k.report("p", giving("a", v)), target)
		}
	}
	same := func(values ...any) {
		t.Helper()
		for _, a := range values {
			for _, b := range values {
				f(a, b, true)
			}
		}
	}
	differ := func(values ...any) {
		t.Helper()
		for i, a := range values {
			for j, b := range values {
				f(a, b, i == j)
			}
		}
	}
	same(1, 1.0, rawMsg{0xd3, 0, 0, 0, 0, 0, 0, 0, 1}, rawMsg{0xcf, 0, 0, 0, 0, 0, 0, 0, 1}, rawMsg{0xca, 0x3f, 0x80, 0, 0})
	same(0, 0.0, math.Copysign(0, -1))
	same(-1, -1.0, rawMsg{0xd1, 0xff, 0xff})
	same(uint64(1)<<63, float64(1<<63))
	same(int64(math.MinInt64), -math.Ldexp(1, 63))
	f(int64(math.MinInt64), -math.Ldexp(1, 63)-2048, false)
	same(int64(1)<<62, float64(1<<62), rawMsg{0xca, 0x5e, 0x80, 0, 0})
	same("text", rawMsg("\xd9\x04text"))
	same(0.5, rawMsg{0xca, 0x3f, 0, 0, 0})
	same(arr{1, arr{2.0}}, arr{1.0, arr{2}}, rawMsg{0xdc, 0, 2, 1, 0x91, 2})
	same(obj{"a": 1, "b": obj{"c": nil}}, rawMsg("\x82\xa1b\x81\xa1c\xc0\xa1a\x01"), rawMsg("\xde\x00\x02\xa1b\x81\xa1c\xc0\xa1a\xcc\x01"))
	differ(nil, false, true, 0, 1, "", "0", "true", arr{}, obj{}, arr{nil}, arr{0}, arr{0, 0}, obj{"a": nil}, obj{"b": nil}, obj{"a": nil, "b": nil}, 0.1, "nil")
	differ(int64(1)<<53, int64(1)<<53+1, int64(math.MaxInt64), uint64(1)<<63, uint64(math.MaxUint64), int64(math.MinInt64), -0.5)
	f(int64(1)<<53+1, float64(1<<53), false)
	f(float64(1<<53), int64(1)<<53+1, false)
	f(int64(math.MaxInt64), float64(1<<63), false)
	f(uint64(math.MaxUint64), math.Ldexp(1, 64), false)
	f(1, 1.0000000000000002, false)
}

// TestRuleOrder: the first rule that matches wins; a missing key matches nothing, a present nil
// equals nil; no condition always matches, whatever its value.
func TestRuleOrder(t *testing.T) {
	k := newTalk(t)
	f := func(rules arr, output obj, want string) {
		t.Helper()
		config := obj{"name": "n", "agents": arr{
			obj{"name": "a", "routing": rules, "default_next": "d"}, obj{"name": "b"}, obj{"name": "c"}, obj{"name": "d"},
		}}
		k.body(k.initialize("p", config, flat("e"), true))
		k.runs(k.report("p", giving("a", output)), want)
	}
	when := func(key, value, target any) obj { return obj{"condition": key, "value": value, "target": target} }
	f(arr{when("x", 1, "b"), when("x", 1, "c")}, obj{"x": 1}, "b")
	f(arr{when("x", 2, "b"), when("x", 1, "c")}, obj{"x": 1}, "c")
	f(arr{when(nil, 5, "b"), when("x", 1, "c")}, obj{"x": 1}, "b")
	f(arr{when("x", 1, "c"), when(nil, nil, "b")}, obj{}, "b")
	f(arr{when("x", nil, "b")}, obj{}, "d")
	f(arr{when("x", nil, "b")}, nil, "d")
	f(arr{when("x", nil, "b")}, obj{"x": nil}, "b")
	f(arr{obj{"condition": "x", "target": "b"}}, obj{"x": nil}, "b")
	f(arr{obj{"condition": "x", "target": "b"}}, obj{"x": false}, "d")
	f(arr{obj{"target": "b"}}, obj{}, "b")
	f(arr{when("x.y", 1, "b")}, obj{"x": obj{"y": 1}}, "d")
	f(arr{when("x", 1, "b")}, obj{"in": obj{"x": 1}}, "d")
	f(arr{}, obj{"clarification_needed": true, "approval": "denied", "status": "error"}, "d") // D47
}

// TestOldOutputsDoNotRoute: only this report's output is looked at (envelope §5.2 step 5).
func TestOldOutputsDoNotRoute(t *testing.T) {
	k := newTalk(t)
	k.start("p", obj{"name": "n", "max_iterations": 9, "agents": arr{
		obj{"name": "a", "routing": arr{obj{"condition": "go", "value": true, "target": "b"}}},
		obj{"name": "b", "routing": arr{obj{"condition": "go", "value": true, "target": "a"}}},
	}}, flat("e", obj{"outputs": obj{"b": obj{"go": true}}}))
	k.runs(k.report("p", giving("a", obj{"go": true})), "b")
	k.terminates(k.report("p", giving("b", obj{"gone": true})), "COMPLETED", "Pipeline completed")
}

// TestFailureRoutes: error_next before the rules; without it a failed report goes where a good one
// goes (D30).
func TestFailureRoutes(t *testing.T) {
	k := newTalk(t)
	f := func(over obj, want string) {
		t.Helper()
		config := obj{"name": "n", "agents": arr{with(obj{"name": "a"}, over), obj{"name": "b"}, obj{"name": "c"}, obj{"name": "d"}}}
		k.body(k.initialize("p", config, nested("e"), true))
		r := failing("a", "bad")
		r.output = obj{"x": 1}
		got := k.report("p", r)
		if want == "" {
			k.terminates(got, "TOOL_FAILED_FATALLY", "Agent a failed: bad")
			return
		}
		k.runs(got, want)
	}
	rule := arr{obj{"condition": "x", "value": 1, "target": "c"}}
	f(obj{"error_next": "b", "routing": rule, "default_next": "d"}, "b")
	f(obj{"routing": rule, "default_next": "d"}, "c")
	f(obj{"default_next": "d"}, "d")
	f(obj{"error_next": nil, "default_next": "d"}, "d")
	f(obj{"error_next": "end", "routing": rule, "default_next": "d"}, "")
	f(obj{"default_next": "end"}, "")
	f(obj{}, "")
	f(obj{"error_next": "a"}, "a")
}
