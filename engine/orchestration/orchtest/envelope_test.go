package orchtest

import (
	"slices"
	"strings"
	"testing"

	"trunkline/codec/wire"
)

// everyDoor calls f with each operation that takes an envelope, as a function of the envelope.
func everyDoor(k *talk, f func(name string, call func(env obj) reply)) {
	f("CheckBounds", func(env obj) reply { return k.checkBounds(env) })
	f("CheckBounds wrapped", func(env obj) reply { return k.checkBounds(obj{"envelope": env}) })
	f("UpdateEnvelope", func(env obj) reply { return k.update(env) })
	f("CloneEnvelope", func(env obj) reply { return k.clone(env) })
	f("ExecutePipeline", func(env obj) reply { return k.execute(env, line(1)) })
	f("InitializeSession", func(env obj) reply { return k.initialize("p", line(1), env, true) })
	f("CheckBounds text", func(env obj) reply { return k.checkBounds(obj{"envelope": jsonText(env)}) })
	f("UpdateEnvelope text", func(env obj) reply { return k.update(jsonText(env)) })
	f("ExecutePipeline text", func(env obj) reply { return k.execute(jsonText(env), line(1)) })
}

// TestNoEnvelopes: what is an envelope of neither shape (envelope §3.1, §8).
func TestNoEnvelopes(t *testing.T) {
	k := newTalk(t)
	everyDoor(k, func(name string, call func(obj) reply) {
		f := func(env obj, format string, args ...any) {
			t.Helper()
			got := call(env)
			if want := "Invalid envelope: " + format; format != "" && (got.code != wire.InvalidArgument || got.msg != want) {
				t.Errorf("%s %s: got %s %q, want %q", name, show(env), got.code, got.msg, want)
			}
			k.invalid(got, "Invalid envelope: ")
		}
		f(obj{}, "missing field `identity`")
		f(obj{"foo": 1}, "missing field `identity`")
		f(obj{"user_id": "u", "terminated": false, "stage_order": arr{}}, "missing field `identity`")
		f(without(nested("e"), "bounds"), "missing field `bounds`")
		f(without(nested("e"), "pipeline"), "missing field `pipeline`")
		f(with(nested("e"), obj{"identity": obj{}}), "")
		f(with(nested("e"), obj{"identity": obj{"envelope_id": ""}}), "")
		f(with(nested("e"), obj{"identity": obj{"envelope_id": nil}}), "")
		f(with(nested("e"), obj{"identity": obj{"envelope_id": 5}}), "")
		f(with(nested("e"), obj{"bounds": 5}), "")
		f(with(nested("e"), obj{"pipeline": arr{}}), "")
	})
	if k.e.Active() != 0 {
		t.Error("a session came of what is no envelope")
	}
}

// TestEnvelopeTypes: known members are of their types, and the message names the path (envelope
// §3.3, kernel-ipc §3.4).
func TestEnvelopeTypes(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		everyDoor(k, func(name string, call func(obj) reply) {
			if strings.HasSuffix(name, "text") {
				return // in text 1.0 may be an integer
			}
			f := func(key string, wrong any, tail string) {
				t.Helper()
				env := make("e", obj{key: wrong})
				got, want := call(env), "Invalid envelope: "+path(key)
				if tail != "" {
					want += " " + tail
				}
				if got.code != wire.InvalidArgument || got.msg != want && (tail != "" || !strings.HasPrefix(got.msg, want)) {
					t.Errorf("%s %s = %s: got %s %q, want %q", name, path(key), show(wrong), got.code, got.msg, want)
				}
			}
			for _, key := range []string{"iteration", "max_iterations", "llm_call_count", "max_llm_calls", "tool_call_count", "agent_hop_count", "max_agent_hops"} {
				counters(f, key, maxCounter+1, "i32")
			}
			counters(f, "tokens_in", uint64(1)<<63, "i64")
			counters(f, "tokens_out", uint64(1)<<63, "i64")
			for _, key := range []string{"request_id", "user_id", "session_id", "raw_input", "current_stage", "termination_reason", "terminal_reason"} {
				f(key, 5, "must be a string")
				f(key, arr{}, "must be a string")
			}
			for _, key := range []string{"terminated", "interrupt_pending"} {
				f(key, 1, "must be a boolean")
				f(key, "true", "must be a boolean")
			}
			f("outputs", arr{}, "must be an object")
			f("outputs", "x", "must be an object")
			f("metadata", 5, "must be an object")
			f("interrupt", "x", "must be an object")
			f("failed_stages", true, "")
			f("stage_order", "x", "")
			f("stage_order", arr{1}, "")
			f("errors", obj{}, "")
			f("completed_stage_set", 5, "")
			for _, key := range []string{"received_at", "created_at", "completed_at"} {
				f(key, 12, "")
				f(key, "yesterday", "")
				f(key, "2025-13-01T00:00:00Z", "")
				f(key, "2025-12-10", "")
				f(key, "2025-12-10T24:00:00Z", "")
				f(key, "2025-12-10T10:00:00.1234567890Z", "")
				f(key, "2025-12-10T10:00:00Z ", "")
			}
		})
		k.invalid(k.clone(make("e", obj{"outputs": obj{"plan": "x"}})), "Invalid envelope: outputs.plan")
	})
}

func counters(f func(key string, wrong any, tail string), key string, over any, kind string) {
	f(key, "1", "must be an integer")
	f(key, 1.0, "must be an integer")
	f(key, 2.5, "must be an integer")
	f(key, true, "must be an integer")
	f(key, arr{}, "must be an integer")
	f(key, -1, "must be non-negative, got -1")
	f(key, over, "value "+show(over)+" exceeds "+kind+" range")
}

// TestSpecRows are the two rows of envelope §8 with their exact texts.
func TestSpecRows(t *testing.T) {
	k := newTalk(t)
	k.refuse(k.checkBounds(obj{}), wire.InvalidArgument, "Invalid envelope: missing field `identity`")
	f := func(wrong any, tail string) {
		t.Helper()
		k.refuse(k.checkBounds(nested("e", obj{"llm_call_count": wrong})), wire.InvalidArgument, "Invalid envelope: bounds.llm_call_count %s", tail)
	}
	f("1", "must be an integer")
	f(1.0, "must be an integer")
	f(-1, "must be non-negative, got -1")
	f(int64(3000000000), "value 3000000000 exceeds i32 range")
}

// TestTimesAreKept: every accepted spelling comes back as it was (envelope §3.6).
func TestTimesAreKept(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		for _, s := range []string{
			"2025-12-10T10:00:00Z", "2025-12-10t10:00:00z", "2025-12-10 10:00", "2025-12-10T10:00:00.123456", "2025-12-10T10:00:00,1Z",
			"2025-12-10T10:00:00.123456789+02:00", "2025-12-10T10:00-0530", "2025-12-10T10:00:59+01", "2024-02-29T00:00:00Z",
		} {
			times := obj{"received_at": s, "created_at": s, "completed_at": s}
			k.start("p", line(1), make("e", times))
			k.has(k.report("p", by("a1")), obj{"envelope." + path("received_at"): s, "envelope." + path("created_at"): s, "envelope." + path("completed_at"): s})
			k.removed("p")
		}
	})
}

// TestMissingMembers: what is added to a small envelope of each shape (envelope §3.1, §3.3), and
// that it stays as it is.
func TestMissingMembers(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		config := obj{"name": "n", "agents": arr{obj{"name": "a"}}}
		e := received(make("e"), stamp(k.now))
		e.set("current_stage", "a")
		e.set("stage_order", arr{"a"})
		body := k.body(k.initialize("p", config, make("e"), false))
		k.want(k.state("p"), body)
		if _, diff := match(pack(nil, body["envelope"]), e.m); diff != "" {
			t.Errorf("envelope%s", diff)
		}
		k.now = after(k.now, 1e12)
		k.want(k.state("p"), body)
		k.has(k.next("p"), obj{"envelope": body["envelope"]})
	})
}

// TestGoalDefaults: goals that are not listed as remaining are those that are not done (envelope
// §3.2, §3.3).
func TestGoalDefaults(t *testing.T) {
	k := newTalk(t)
	f := func(status any, want arr) {
		t.Helper()
		k.has(k.clone(nested("e", obj{"all_goals": arr{"g", "h", "i"}, "goal_completion_status": status})), obj{"execution.remaining_goals": want})
	}
	f(obj{"g": "satisfied"}, arr{"h", "i"})
	f(obj{"g": "pending", "h": "complete", "i": "failed"}, arr{"g", "i"})
	f(obj{"x": "pending", "g": "satisfied", "h": "satisfied", "i": "complete"}, arr{})
	f(nil, arr{"g", "h", "i"})
}

// TestEcho: unknown members at any depth and opaque values come back as they were, in their very
// encoding.
func TestEcho(t *testing.T) {
	odd := map[string][]byte{
		"an integer in a wide class": {0xd3, 0, 0, 0, 0, 0, 0, 0, 7},
		"an unsigned wide integer":   {0xcf, 0, 0, 0, 0, 0, 0, 0, 9},
		"a float of 32 bits":         {0xca, 0x3d, 0xcc, 0xcc, 0xcd},
		"a text in a wide class":     {0xda, 0, 3, 'a', 'b', 'c'},
		"a map in a wide class":      {0xdf, 0, 0, 0, 1, 0xd9, 1, 'k', 0xdd, 0, 0, 0, 0},
		"twice the same key":         {0x82, 0xa1, 'z', 1, 0xa1, 'z', 2},
	}
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		for what, raw := range odd {
			k := newTalk(t)
			env := make("e", obj{"outputs": obj{"one": obj{"in": rawMsg(raw)}}, "metadata": obj{"m": rawMsg(raw)}, "errors": arr{obj{"e": rawMsg(raw)}}})
			env["top"] = rawMsg(raw)
			if p, ok := env["pipeline"].(obj); ok {
				p["group"] = rawMsg(raw)
			}
			want := strings.Count(string(pack(nil, env)), string(raw))
			f := func(name string, got reply, more int) {
				t.Helper()
				if got.code != wire.OK {
					t.Fatalf("%s: %s %s", name, got.code, got.msg)
				}
				if n := strings.Count(string(got.body), string(raw)); n != want+more {
					t.Errorf("%s keeps %s %d times, want %d", name, what, n, want+more)
				}
			}
			f("InitializeSession", k.initialize("p", line(2), env, false), 0)
			f("GetNextInstruction", k.next("p"), 0)
			r := by("a1")
			r.output = obj{"out": rawMsg(raw)}
			f("ReportAgentResult", k.report("p", r), 1)
			f("GetSessionState", k.state("p"), 1)
			r = failing("a2", "no")
			r.output = obj{"out": rawMsg(raw)}
			f("failed ReportAgentResult", k.report("p", r), 2)
			f("CloneEnvelope", k.clone(env), 0)
		}
	})
}

// TestDialectKeys: keys of the flat shape that B does not know how to add stay out until the engine
// sets them, and stay as they are when they came in.
func TestDialectKeys(t *testing.T) {
	k := newTalk(t)
	k.start("p", line(2), flat("e"))
	env := k.runs(k.report("p", by("a1")), "a2")["envelope"].(obj)
	for _, key := range []string{
		"interrupt", "active_stages", "failed_stages", "parallel_mode", "dag_mode", "loop_feedback", "created_at", "clarification_pending",
		"clarification_question", "confirmation_pending", "confirmation_id", "critic_feedback", "_ext", "request_id", "received_at", "all_goals", "completed_at",
	} {
		if v, ok := env[key]; ok {
			t.Errorf("%s = %s came from nowhere", key, show(v))
		}
	}
	given := obj{
		"dag_mode": true, "loop_feedback": arr{"x"}, "critic_feedback": arr{"y"}, "clarification_pending": false, "clarification_question": nil,
		"confirmation_response": nil, "confirmation_id": "conf_1", "active_stages": obj{"s1": true}, "all_goals": arr{"g"}, "remaining_goals": arr{"g"},
		"goal_completion_status": obj{"g": "pending"}, "prior_plans": arr{obj{"p": 1}}, "completed_stages": arr{}, "current_stage_number": 2, "max_stages": 4,
		"processing_history": arr{obj{"agent": "x", "duration_ms": 1.5}}, "errors": arr{obj{"agent": "x"}}, "request_context": obj{"a": arr{}}, "_ext": obj{"bounds": obj{"x": 1}},
	}
	k.start("q", line(2), flat("e", given))
	k.has(k.report("q", by("a1")), obj{"envelope.loop_feedback": given["loop_feedback"]})
	env = k.body(k.state("q"))["envelope"].(obj)
	for key, v := range given {
		if _, diff := match(pack(nil, env[key]), v); diff != "" {
			t.Errorf("%s%s", key, diff)
		}
	}
}

// TestBothFormsOfStageSets: either form of a set of stages is read in either shape (envelope §3.1).
func TestBothFormsOfStageSets(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		for _, form := range []any{arr{"x", "s1"}, obj{"x": true, "s1": true}, arr{"x"}, obj{"x": true, "s1": false}} {
			k := newTalk(t)
			k.start("p", line(2), make("e", obj{"completed_stage_set": form}))
			body := k.runs(k.report("p", by("a1")), "a2")
			got, _ := at(body, "envelope."+path("completed_stage_set"))
			var names []string
			switch got := got.(type) {
			case arr:
				for _, n := range got {
					names = append(names, n.(string))
				}
			case obj:
				for n, in := range got {
					if in == true {
						names = append(names, n)
					}
				}
			}
			slices.Sort(names)
			if !slices.Equal(names, []string{"s1", "x"}) {
				t.Errorf("from %s came %s", show(form), show(got))
			}
		}
	})
}
