package envelopetest_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestMutants: envelopes with a few odd values anywhere in them. Whatever the model takes the
// engine takes and means the same by; whatever it refuses the engine refuses too.
func TestMutants(t *testing.T) {
	check(t, 20000, func(t *rapid.T) {
		text := mutants().Draw(t, "mutant")
		expect, fault := spec().process(parse(t, text))
		if fault == nil {
			_, got := process(t, text)
			want(t, text, expect, got)
			properties(t, parse(t, text), got)
			return
		}
		if out, err := step(t, text); err == nil {
			t.Errorf("accepted, want a refusal of %q\ninput: %s\nreply: %s", fault.field, text, out)
		}
	})
}

func mutants() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		d := draws{t}
		m := d.envelope()
		for range d.small(1, 3) {
			d.mutate(m)
		}
		return print(t, m)
	})
}

// mutate changes one member of one map somewhere in v.
func (d draws) mutate(m object) {
	keys := slices.Sorted(maps.Keys(m))
	for len(keys) > 0 {
		v := m[pick(d, keys...)]
		if list, ok := v.([]any); ok && len(list) > 0 {
			v = list[d.small(0, len(list)-1)]
		}
		inner, ok := v.(object)
		if !ok || d.chance(30) {
			break
		}
		m, keys = inner, slices.Sorted(maps.Keys(inner))
	}
	key := pick(d, append(keys, mutantKeys...)...)
	if d.chance(10) {
		delete(m, key)
		return
	}
	m[key] = d.oddity()
}

var mutantKeys = []string{"status", "verdict", "approval", "goals", "agent", "recoverable", "kind", "response", "text", "approved", "plan",
	"critic", "intent", "planner", "prior_outputs", "interrupt", "loop_feedback", "error", "code", "identity", "x"}

func (d draws) oddity() any {
	return pick[any](d, nil, true, false, "", "x", "error", "reintent", "next_stage", "denied", "clarification", "intent", "critic",
		json.Number("0"), json.Number("1"), json.Number("-1"), json.Number("2.5"), json.Number("1e9"), json.Number("1e400"),
		[]any{}, []any{"x"}, []any{nil}, []any{object{}}, []any{"x", "x", "y"}, object{}, object{"x": "y"}, object{"x": object{}},
		object{"status": "error"}, object{"satisfied": []any{"g1"}}, object{"text": "t", "approved": true})
}
