package orchtest

import "fmt"

// makeEnvelope makes an envelope for a pipeline of either shape, with any part of what may be
// missing missing.
func makeEnvelope(d dice, config obj) obj {
	e := envelope{nested: d(2) == 1, m: obj{}}
	e.set("envelope_id", "")
	if e.nested {
		e.m["pipeline"], e.m["bounds"] = obj{}, obj{}
	}
	stages := config["agents"].(arr)
	some := func() string { return stages[d(len(stages))].(obj)["name"].(string) }
	maybe := func(n int, key string, v any) {
		if d.one(n) {
			e.set(key, v)
		}
	}
	switch d(8) {
	case 0, 1, 2:
		e.set("current_stage", "start")
	case 3:
		e.set("current_stage", pick(d, "end", ""))
	case 4, 5:
		e.set("current_stage", some())
	case 6:
		e.set("current_stage", pick(d, some(), some(), "zzz"))
	}
	for _, key := range []string{"request_id", "user_id", "session_id", "raw_input"} {
		maybe(2, key, "given "+key)
	}
	maybe(3, "received_at", pick(d, "2025-12-10T10:00:00Z", "2025-12-10 10:00:00.123456", "2025-12-10T10:00+0200"))
	maybe(3, "outputs", pick(d, obj{}, obj{"a0": obj{"n": 12345678901234567}, "old": obj{"f": 0.5, "l": arr{nil, obj{"x": true}}}}))
	maybe(3, "metadata", pick(d, obj{}, obj{"k": arr{1}, "last_agent_failure": obj{"agent_name": "q", "error": "r"}}))
	maybe(6, "stage_order", arr{"other"})
	maybe(6, "max_iterations", 99)
	for _, key := range []string{"iteration", "llm_call_count", "agent_hop_count"} {
		maybe(4, key, pick(d, 0, 0, 1, 2, maxCounter, maxCounter-1))
	}
	for _, key := range []string{"tool_call_count", "tokens_in", "tokens_out"} {
		maybe(4, key, pick(d, 0, 7, maxCounter, maxCounter-1))
	}
	e.sets(d, some, maybe)
	e.ends(d, maybe)
	if d.one(8) {
		e.set("interrupt_pending", true)
		if i := makeInterrupt(d, e.nested); i != nil || !e.nested {
			e.set("interrupt", i)
		}
	} else {
		maybe(8, "interrupt_pending", false)
		if i := makeInterrupt(d, e.nested); d.one(6) && (i != nil || !e.nested) {
			e.set("interrupt", i)
		}
	}
	if d.one(3) {
		e.m["request_context"] = obj{"request_id": "r", "deep": arr{obj{}, 1.25}}
		if e.nested {
			e.m["pipeline"].(obj)["strange"] = fmt.Sprint("kept")
			e.m["bounds"].(obj)["max_dollars"] = 2.5
		}
	}
	return e.m
}

// sets adds the three keys that name stages.
func (e envelope) sets(d dice, some func() string, maybe func(int, string, any)) {
	for _, key := range []string{"active_stages", "completed_stage_set"} {
		if list := e.nested != d.one(6); list {
			maybe(6, key, arr{some()})
		} else {
			maybe(6, key, obj{some(): true, "gone": key == "active_stages"})
		}
	}
	maybe(5, "failed_stages", pick(d, obj{some(): "old error"}, obj{some(): "old error", "other": "e"}))
}

// ends adds what a finished envelope has, sometimes to one that is not finished.
func (e envelope) ends(d dice, maybe func(int, string, any)) {
	maybe(6, "completed_at", "2025-12-11T00:00:00Z")
	if !e.nested {
		maybe(4, "terminal_reason", nil)
		maybe(4, "termination_reason", nil)
		maybe(4, "completed_at", nil)
	}
	if d.one(16) {
		e.set("terminated", true)
		maybe(2, "terminal_reason", pick(d, "completed", "COMPLETED", "completed_successfully", "denied_by_policy", "User_Cancelled", "llm_failed_fatally"))
		maybe(2, "termination_reason", "because")
	} else {
		maybe(3, "terminated", false)
	}
}

func makeInterrupt(d dice, nested bool) any {
	i := obj{"kind": pick(d, "clarification", "CONFIRMATION", "agent_review", "critic_review", "checkpoint", "timeout", "strange"), "id": "int_0000000000000001"}
	if !nested && d.one(2) {
		i["question"], i["message"], i["data"], i["response"], i["expires_at"] = nil, "", obj{}, nil, nil
		i["kind"], i["extra"] = "unspecified", arr{1}
	}
	if d.one(8) {
		return nil
	}
	return i
}
