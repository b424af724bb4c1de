package envelopetest_test

import (
	"flag"
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"trunkline/fuzz/rounds"
)

// check runs a property many times, in its long form; a small part of that usually. A failure
// prints the seed that repeats it and leaves no file.
func check(t *testing.T, times int, property func(*rapid.T)) {
	t.Helper()
	times = max(1, rounds.Pick(times/24, rounds.Of(times/10, times/8))/raceSlowdown)
	defer overlay(t, "rapid.checks", strconv.Itoa(times))()
	defer overlay(t, "rapid.nofailfile", "true")()
	rapid.Check(t, property)
}

// overlay sets a flag that the command line left alone, and gives the way back.
func overlay(t *testing.T, name, value string) func() {
	t.Helper()
	f := flag.Lookup(name)
	if f == nil || f.Value.String() != f.DefValue {
		return func() {}
	}
	set := func(value string) {
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
	}
	set(value)
	return func() { set(f.DefValue) }
}

// TestModel: the engine and the model mean the same by every envelope.
func TestModel(t *testing.T) {
	check(t, 20000, func(t *rapid.T) {
		text := envelopes().Draw(t, "envelope")
		expect, fault := spec().process(parse(t, text))
		if fault != nil {
			t.Fatalf("the generator made an invalid envelope: %s in %s", fault.field, text)
		}
		_, got := process(t, text)
		want(t, text, expect, got)
		properties(t, parse(t, text), got)
	})
}

// TestModelRefuses: engine and model refuse the same ill-typed envelopes, and name the same member.
func TestModelRefuses(t *testing.T) {
	values := []string{"null", "0", "-1", "2.5", "3.0", "2147483648", "true", `""`, `"x"`, "[]", `["x","x"]`, "[{}]", "{}", `{"x":1}`, `{"x":{}}`}
	check(t, 5000, func(t *rapid.T) {
		d := draws{t}
		m := parse(t, envelopes().Draw(t, "envelope"))
		doc := document{root: m, nested: m["identity"] != nil, model: spec()}
		row := rows[d.small(0, len(rows)-1)]
		if doc.nested && flagOnly(row.key) || row.dialect && row.key != "interrupt" && row.key != "interrupt_pending" {
			return
		}
		doc.set(row.key, parse(t, `{"v":`+pick(d, values...)+`}`)["v"])
		text := print(t, m)
		_, fault := spec().open(parse(t, text))
		switch {
		case fault == nil:
			process(t, text)
		case fault.field == "":
			if out, err := step(t, text); err == nil {
				t.Errorf("accepted %s: %s", text, out)
			}
		default:
			invalid(t, text, fault.field)
		}
	})
}

// properties are those at the end of envelope §9, and its table of resulting states.
func properties(t reporter, in, out object) {
	t.Helper()
	before, after := view(in), view(out)
	reason := canonical(after.text("terminal_reason"))
	waiting := after.flag("interrupt_pending") || after.flag("clarification_pending") || after.flag("confirmation_pending")
	switch {
	case after.flag("terminated"):
		if !before.flag("terminated") && (reason == "" || after.get("completed_at") == nil) {
			t.Errorf("ended without reason or time: %v", out)
		}
		if reason == "completed_successfully" && !before.flag("terminated") && before.text("terminal_reason") == "" &&
			after.text("current_stage") != "end" {
			t.Errorf("completed at %s", after.text("current_stage"))
		}
	case waiting:
		if reason != "" && reason != "clarification_required" && reason != "confirmation_required" {
			t.Errorf("waiting for %s", reason)
		}
	default:
		order, cs := after.order(), after.text("current_stage")
		if reason != "" || slices.Contains(order, cs) && after.key(cs) != "" {
			t.Errorf("runnable, but reason %q and output %q of %q", reason, after.key(cs), cs)
		}
	}
	for _, key := range []string{"iteration", "llm_call_count", "agent_hop_count", "tool_call_count"} {
		if after.number(key) < before.number(key) {
			t.Errorf("%s went from %d to %d", key, before.number(key), after.number(key))
		}
	}
	keptKeys(t, before, after)
}

func view(m object) document {
	_, nested := m["identity"].(object)
	return document{root: clone(m).(object), nested: nested, model: spec()}
}

// keptKeys: every key of the input is in the reply, moved outputs under metadata.prior_outputs.
func keptKeys(t reporter, before, after document) {
	t.Helper()
	prior, _ := after.object("metadata")["prior_outputs"].(object)
	for key, v := range before.object("outputs") {
		_, stayed := after.object("outputs")[key]
		_, moved := prior[key]
		if v != nil && !stayed && !moved {
			t.Errorf("output %s is lost", key)
		}
	}
	leftovers := before.root["error"] == true && is[string](before.root["code"])
	for key, v := range before.root {
		if leftovers && (key == "error" || key == "code" || key == "message") {
			continue
		}
		if _, ok := after.root[key]; !ok {
			t.Errorf("key %s is lost", key)
		}
		if before.nested && group(key) == "" && groups[key] != nil {
			members, _ := v.(object)
			kept := after.root[key].(object)
			for name := range maps.Keys(members) {
				if _, ok := kept[name]; !ok && !omitted(name, members[name]) {
					t.Errorf("member %s.%s is lost", key, name)
				}
			}
		}
	}
}

// omitted: what the nested shape leaves out, though it came in: reasons that are cleared, and
// members without content.
func omitted(name string, v any) bool {
	members, _ := v.(object)
	list, _ := v.([]any)
	switch name {
	case "terminal_reason":
		return true
	case "termination_reason", "interrupt", "completed_at":
		return v == nil || v == ""
	case "active_stages", "completed_stage_set", "failed_stages":
		return len(members)+len(list) == 0
	}
	return false
}
