package orchtest

import (
	"fmt"
	"math"
	"strings"
	"time"

	"trunkline/codec/wire"
	"trunkline/engine/connection"
)

// model is the sessions of envelope §5.2 and the stored envelopes written plainly.
type model struct {
	now      connection.Instant
	sessions map[string]*sessionModel
	stored   map[string]bool
}

type sessionModel struct {
	env   envelope
	plan  *planModel
	edges map[edge]int64
	// What the random runs check besides: they follow from the rules, but not from one of them
	// alone.
	reports, start, startHops int64
}

func newModel() *model {
	return &model{now: clock(), sessions: map[string]*sessionModel{}, stored: map[string]bool{}}
}

// answer is what a call must return: a refusal, or a body that matches want.
type answer struct {
	code wire.Code
	msg  string
	want any
}

func no(code wire.Code, format string, args ...any) answer {
	return answer{code: code, msg: fmt.Sprintf(format, args...)}
}

func (m *model) initialize(pid string, config, env obj, force bool) answer {
	if m.sessions[pid] != nil && !force {
		return no(wire.InvalidArgument, "Session already exists for process: %s (use force=true to replace)", pid)
	}
	s := &sessionModel{env: received(env, stamp(m.now)), plan: planOf(config), edges: map[edge]int64{}}
	current := ""
	if e := (envelope{isNested(env), env}); e.get("current_stage") != nil {
		current = e.text("current_stage")
	}
	entry := s.plan.entry(current)
	if entry == "" {
		return no(wire.InvalidArgument, "Stage not found in pipeline: %s", current)
	}
	s.env.set("current_stage", entry)
	s.env.set("stage_order", s.plan.names())
	s.env.set("max_iterations", s.plan.maxIterations)
	s.env.set("max_llm_calls", s.plan.maxLLMCalls)
	s.env.set("max_agent_hops", s.plan.maxHops)
	s.start, s.startHops = s.env.count("iteration"), s.env.count("agent_hop_count")
	m.sessions[pid] = s
	return m.state(pid)
}

func (m *model) state(pid string) answer {
	s := m.sessions[pid]
	if s == nil {
		return unknown(pid)
	}
	edges := obj{}
	for e, n := range s.edges {
		edges[e.from+"->"+e.to] = n
	}
	return answer{want: obj{
		"process_id": pid, "current_stage": s.env.text("current_stage"), "stage_order": s.plan.names(), "envelope": s.env.m,
		"edge_traversals": edges, "terminated": s.env.is("terminated"), "terminal_reason": s.reason(),
	}}
}

func unknown(pid string) answer { return no(wire.NotFound, "Unknown process: %s", pid) }

// reason is the session's terminal reason in the spelling of the wire (envelope §3.4).
func (s *sessionModel) reason() string {
	r := strings.ToUpper(s.env.text("terminal_reason"))
	switch r {
	case "COMPLETED_SUCCESSFULLY":
		return "COMPLETED"
	case "DENIED_BY_POLICY":
		return "POLICY_VIOLATION"
	}
	return r
}

func (s *sessionModel) instruction(kind, agent, reason, text string, pending bool, interrupt any) answer {
	return answer{want: obj{
		"kind": kind, "agent_name": agent, "envelope": s.env.m, "terminal_reason": reason, "termination_message": text,
		"interrupt_pending": pending, "interrupt": interrupt,
	}}
}

func (s *sessionModel) terminate(now connection.Instant, reason, text string) {
	s.env.set("terminated", true)
	s.env.set("terminal_reason", reason)
	s.env.set("termination_reason", text)
	if s.env.get("completed_at") == nil {
		s.env.set("completed_at", stamp(now))
	}
}

// bound is the first bound that is met (envelope §4.6), "" for none.
func bound(e envelope) string {
	switch {
	case e.count("llm_call_count") >= e.count("max_llm_calls"):
		return "MAX_LLM_CALLS_EXCEEDED"
	case e.count("iteration") >= e.count("max_iterations"):
		return "MAX_ITERATIONS_EXCEEDED"
	case e.count("agent_hop_count") >= e.count("max_agent_hops"):
		return "MAX_AGENT_HOPS_EXCEEDED"
	}
	return ""
}

const endedBefore = "Session already terminated"

func (m *model) next(pid string) answer {
	s := m.sessions[pid]
	if s == nil {
		return unknown(pid)
	}
	switch {
	case s.env.is("terminated"):
		return s.instruction("TERMINATE", "", s.reason(), endedBefore, false, nil)
	case s.env.is("interrupt_pending"):
		return s.instruction("WAIT_INTERRUPT", "", "", "", true, s.env.get("interrupt"))
	}
	if r := bound(s.env); r != "" {
		s.terminate(m.now, r, "Bounds exceeded: "+r)
		return s.instruction("TERMINATE", "", r, "Bounds exceeded: "+r, false, nil)
	}
	return s.instruction("RUN_AGENT", s.plan.find(s.env.text("current_stage")).agent, "", "", false, nil)
}

func (m *model) report(pid string, r report) answer {
	s := m.sessions[pid]
	if s == nil {
		return unknown(pid)
	}
	if s.env.is("terminated") {
		return m.next(pid)
	}
	if s.env.is("interrupt_pending") {
		return no(wire.FailedPrecondition, "Process %s is waiting on an interrupt", pid)
	}
	stage := s.plan.find(s.env.text("current_stage"))
	if r.agent != stage.agent && r.agent != stage.name {
		return no(wire.FailedPrecondition, "Expected result from agent '%s', got '%s'", stage.agent, r.agent)
	}
	s.take(stage, r)
	if text := s.advance(m.now, stage, r); text != "" {
		return s.instruction("TERMINATE", "", s.reason(), text, false, nil)
	}
	return m.next(pid)
}

// take is steps 1 to 4 of envelope §5.2.
func (s *sessionModel) take(stage *stageModel, r report) {
	output := obj{}
	if r.output != nil {
		output = clone(r.output).(obj)
	}
	if r.failed {
		output["success"], output["error"] = false, r.err
		s.env.submap("metadata")["last_agent_failure"] = obj{"agent_name": r.agent, "error": r.err}
		s.env.fail(stage.name, r.err)
	} else {
		s.env.mark(stage.name)
		s.env.clearFailure(stage.name)
	}
	s.env.submap("outputs")[r.agent] = output
	s.add("llm_call_count", r.llm, math.MaxInt32)
	s.add("tool_call_count", r.tool, math.MaxInt32)
	s.add("tokens_in", max(r.tokensIn, 0), math.MaxInt64)
	s.add("tokens_out", max(r.tokensOut, 0), math.MaxInt64)
	s.add("iteration", 1, math.MaxInt32)
	s.reports++
}

func (s *sessionModel) add(key string, n, most int64) {
	have := s.env.count(key)
	s.env.set(key, have+min(n, most-have))
}

// advance is steps 5 to 9: the text of the end it came to, "" if the session goes on.
func (s *sessionModel) advance(now connection.Instant, stage *stageModel, r report) string {
	end := func(reason, text string) string {
		s.terminate(now, reason, text)
		return text
	}
	target := s.plan.after(stage, !r.failed, r.output)
	if target == "" {
		if r.failed {
			return end("TOOL_FAILED_FATALLY", fmt.Sprintf("Agent %s failed: %s", r.agent, r.err))
		}
		return end("COMPLETED", "Pipeline completed")
	}
	if b := bound(s.env); b != "" {
		return end(b, "Bounds exceeded: "+b)
	}
	e := edge{stage.name, target}
	if most, limited := s.plan.limits[e]; limited && s.edges[e] >= most {
		return end("MAX_AGENT_HOPS_EXCEEDED", fmt.Sprintf("Edge limit exceeded: %s -> %s", e.from, e.to))
	}
	s.edges[e]++
	s.env.set("current_stage", target)
	s.add("agent_hop_count", 1, math.MaxInt32)
	return ""
}

func (m *model) update(env obj) answer {
	e := received(env, stamp(m.now))
	id := e.text("envelope_id")
	if !m.stored[id] {
		return no(wire.NotFound, "Envelope %s not found", id)
	}
	for _, s := range m.sessions {
		held := s.env.text("envelope_id") == id
		if held && !s.env.is("terminated") && s.env.is("interrupt_pending") && !e.is("interrupt_pending") {
			s.env.set("interrupt_pending", false)
			s.env.set("interrupt", orAbsent{clone(e.get("interrupt"))})
		}
	}
	return answer{want: e.m}
}

func (m *model) ended(pid string) {
	if s := m.sessions[pid]; s != nil && !s.env.is("terminated") {
		s.terminate(m.now, "USER_CANCELLED", "Process terminated")
		s.env.set("interrupt_pending", false)
	}
}

func (m *model) stage(pid string) string {
	if s := m.sessions[pid]; s != nil {
		return s.env.text("current_stage")
	}
	return ""
}

func (m *model) pass(d time.Duration) { m.now = after(m.now, d) }
