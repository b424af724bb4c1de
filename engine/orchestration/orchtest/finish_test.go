package orchtest

import (
	"fmt"

	"trunkline/codec/wire"
)

// finish brings a program's session to its end and checks there what must hold whatever happened
// (the properties of B at the end of envelope §9).
func (r *runner) finish() string {
	s := r.m.sessions[r.pid]
	if s == nil {
		return ""
	}
	if s.env.is("interrupt_pending") && !s.env.is("terminated") {
		r.m.ended(r.pid)
		r.d.ended(r.pid)
	}
	before := s.reports
	for s.reports <= before+s.plan.maxIterations+1 {
		if diff := r.compare(r.d.next(r.pid), r.m.next(r.pid)); diff != "" {
			return "at the end" + diff
		}
		if s.env.is("terminated") {
			return r.properties(s)
		}
		large := r.large
		if diff := r.report(r.pid, op{report: report{tokensIn: -1, tokensOut: -1}}); diff != "" {
			return "at the end" + diff
		}
		if r.large > large {
			return "" // nothing fits any more
		}
	}
	return fmt.Sprintf("the run does not end: %d reports, %d allowed", s.reports, s.plan.maxIterations)
}

// properties are read from the engine's own words, not from the model's state.
func (r *runner) properties(s *sessionModel) string {
	got := r.d.state(r.pid)
	if got.code != wire.OK {
		return "no state at the end: " + got.msg
	}
	v, _ := unpack(got.body)
	state := v.(obj)
	env := state["envelope"].(obj)
	e := envelope{isNested(env), env}
	iteration := e.count("iteration")
	if want := min(s.start+s.reports, maxCounter); iteration != want {
		return fmt.Sprintf("iteration %d after %d reports from %d", iteration, s.reports, s.start)
	}
	hops := int64(0)
	for name, n := range state["edge_traversals"].(obj) {
		hops += n.(int64)
		for edge, most := range s.plan.limits {
			if edge.from+"->"+edge.to == name && n.(int64) > most {
				return fmt.Sprintf("edge %s taken %d times, limit %d", name, n, most)
			}
		}
	}
	if want := min(s.startHops+hops, maxCounter); e.count("agent_hop_count") != want {
		return fmt.Sprintf("agent_hop_count %d after %d hops from %d", e.count("agent_hop_count"), hops, s.startHops)
	}
	if hops > s.reports {
		return fmt.Sprintf("%d hops in %d reports", hops, s.reports)
	}
	if most := e.count("max_agent_hops"); hops > 0 && e.count("agent_hop_count") > most {
		return fmt.Sprintf("agent_hop_count %d over %d", e.count("agent_hop_count"), most)
	}
	if e.text("completed_at") == "" && s.reports > 0 {
		return "ended without completed_at"
	}
	return ""
}
