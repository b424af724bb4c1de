package fuzz

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// pipelineSession is a session of envelope §5.2.
type pipelineSession struct {
	pid     string
	p       *pipeline
	e       *envelope
	stage   int
	edges   map[[2]int]int64
	touched int64 // ms
}

func (s *pipelineSession) ended() bool { return s.e.flag("terminated") }

func (s *pipelineSession) waits() bool { return !s.ended() && s.e.flag("interrupt_pending") }

func (m *model) session(pid string) *pipelineSession {
	if at := slices.IndexFunc(m.sessions, func(s *pipelineSession) bool { return s.pid == pid }); at >= 0 {
		return m.sessions[at]
	}
	return nil
}

func (m *model) dropSession(pid string) {
	m.sessions = slices.DeleteFunc(m.sessions, func(s *pipelineSession) bool { return s.pid == pid })
}

// stageOf is current_stage of a PCB.
func (m *model) stageOf(pid string) string {
	if s := m.session(pid); s != nil {
		return s.p.stages[s.stage].name
	}
	return ""
}

// initializeSession is envelope §4.10.
func initializeSession(k *call) object {
	pid := k.requiredID("process_id")
	config, env := k.document("pipeline_config"), k.document("envelope")
	force := k.flag("force", false)
	if s := k.begin(pid, config, env, force); s != nil {
		return s.state()
	}
	return nil
}

// begin makes a session, or refuses and changes nothing. A nil pid stands for the envelope's
// identifier.
func (k *call) begin(pid, config, env any, force bool) *pipelineSession {
	m := k.model
	s := &pipelineSession{p: k.config(config), e: k.envelope(env), edges: map[[2]int]int64{}, touched: m.ms}
	if k.bad != nil {
		return nil
	}
	if s.pid, _ = pid.(string); pid == nil {
		if s.pid = s.e.text("envelope_id"); s.pid == "" {
			k.invalid("envelope_id cannot be empty")
		}
	}
	if m.session(s.pid) != nil && !force {
		k.invalid("Session already exists for process: %s (use force=true to replace)", s.pid)
	}
	k.enterAt(s)
	if k.bad == nil && m.narrow() {
		k.refuse("RESOURCE_EXHAUSTED", "Envelope too large")
	}
	if k.bad == nil && !m.seat(s.pid) {
		k.refuse("RESOURCE_EXHAUSTED", "Session table is full")
		k.bad.with("retryable", true)
	}
	if k.bad != nil {
		return nil
	}
	m.complete(s.e)
	m.dropSession(s.pid)
	m.sessions = append(m.sessions, s)
	return s
}

// narrow reports whether the frames are too small for any envelope (envelope D40). In between are
// none of the sizes in use.
func (m *model) narrow() bool { return m.set.maxFrame <= 4096+256 }

// enterAt sets what the configuration gives (envelope §4.10, D27).
func (k *call) enterAt(s *pipelineSession) {
	stage, isText := s.e.get("current_stage").(string)
	if s.stage = s.p.find(stage); s.stage < 0 {
		s.stage = 0
		if isText && stage != "" && stage != "start" && stage != "end" {
			k.invalid("Stage not found in pipeline: %s", stage)
		}
	}
	s.e.set("current_stage", s.p.stages[s.stage].name)
	s.e.set("stage_order", s.p.order())
	s.e.set("max_iterations", s.p.iterations)
	s.e.set("max_llm_calls", s.p.llm)
	s.e.set("max_agent_hops", s.p.hops)
}

// seat makes room for a session of pid (envelope §5.3). The limits in use leave no choice of whom
// to drop.
func (m *model) seat(pid string) bool {
	if m.session(pid) != nil || len(m.sessions) < m.set.maxSessions {
		return true
	}
	if len(m.sessions) != 1 || !m.sessions[0].ended() {
		return false
	}
	m.sessions = nil
	return true
}

// reasonShown is terminal_reason of a reply.
func (s *pipelineSession) reasonShown() string {
	if !s.ended() {
		return ""
	}
	return s.e.reason()
}

// state is SessionState (envelope §3.10).
func (s *pipelineSession) state() object {
	edges := object{}
	for e, n := range s.edges {
		edges = append(edges, member{s.p.stages[e[0]].name + "->" + s.p.stages[e[1]].name, n})
	}
	return object{{"process_id", s.pid}, {"current_stage", s.p.stages[s.stage].name}, {"stage_order", s.p.order()}, {"envelope", s.e.shown()},
		{"edge_traversals", edges}, {"terminated", s.ended()}, {"terminal_reason", s.reasonShown()}}
}

// instruction is Instruction (envelope §3.10); text goes with an end.
func (s *pipelineSession) instruction(text string) object {
	kind, agent, pending, interrupt := "RUN_AGENT", s.p.stages[s.stage].agent, false, any(nil)
	switch {
	case s.ended():
		kind, agent = "TERMINATE", ""
	case s.waits():
		kind, agent, pending, text = "WAIT_INTERRUPT", "", true, ""
		if v := s.e.get("interrupt"); v != nil {
			interrupt = lastOf{copied(v)}
		}
	default:
		text = ""
	}
	return object{{"kind", kind}, {"agent_name", agent}, {"envelope", s.e.shown()}, {"terminal_reason", s.reasonShown()},
		{"termination_message", text}, {"interrupt_pending", pending}, {"interrupt", interrupt}}
}

const endedBefore = "Session already terminated"

// next is what GetNextInstruction does with a session.
func (m *model) next(s *pipelineSession) object {
	text := endedBefore
	if over := s.e.exhausted(); over != "" && !s.ended() && !s.waits() {
		text = "Bounds exceeded: " + over
		m.terminate(s.e, over, text)
	}
	return s.instruction(text)
}

// sessionOf finds the session once all fields are read.
func (k *call) sessionOf(pid string) *pipelineSession {
	if k.bad != nil {
		return nil
	}
	s := k.model.session(pid)
	if s == nil {
		k.refuse("NOT_FOUND", "Unknown process: %s", pid)
	}
	return s
}

// getNextInstruction is envelope §4.11.
func getNextInstruction(k *call) object {
	s := k.sessionOf(k.requiredID("process_id"))
	if s == nil {
		return nil
	}
	s.touched = k.model.ms
	return k.model.next(s)
}

// getSessionState is envelope §4.13.
func getSessionState(k *call) object {
	if s := k.sessionOf(k.requiredID("process_id")); s != nil {
		return s.state()
	}
	return nil
}

// result is a report (envelope §4.12).
type result struct {
	agent, err string
	success    bool
	output     object
	counts     map[string]int64
}

func reportAgentResult(k *call) object {
	pid := k.requiredID("process_id")
	r := result{agent: k.requiredID("agent_name"), success: k.flag("success", true), err: k.text("error")}
	r.output = k.object("output")
	metrics := object{}
	for _, m := range k.object("metrics") {
		metrics = append(metrics, member{"metrics." + m.key, m.val})
	}
	read := args{body: metrics, bad: k.bad}
	r.counts = map[string]int64{"llm_call_count": read.i32("metrics.llm_calls"), "tool_call_count": read.i32("metrics.tool_calls"),
		"tokens_in": read.i64("metrics.tokens_in"), "tokens_out": read.i64("metrics.tokens_out")}
	read.i64("metrics.duration_ms")
	k.bad = read.bad
	s := k.sessionOf(pid)
	if s == nil {
		return nil
	}
	s.touched = k.model.ms
	at := s.p.stages[s.stage]
	switch {
	case s.ended():
		return s.instruction(endedBefore)
	case s.waits():
		k.refuse("FAILED_PRECONDITION", "Process %s is waiting on an interrupt", pid)
		return nil
	case r.agent != at.agent && r.agent != at.name:
		k.refuse("FAILED_PRECONDITION", "Expected result from agent '%s', got '%s'", at.agent, r.agent)
		return nil
	}
	return s.instruction(k.model.take(s, &r))
}

// object is an optional map.
func (a *args) object(name string) object {
	v := a.field(name)
	o, ok := v.(object)
	if !ok && v != nil {
		a.invalid("%s must be an object", name)
	}
	return slices.Clone(o)
}

// take is the atomic step of envelope §5.2; text is the text of an end.
func (m *model) take(s *pipelineSession, r *result) (text string) {
	e := s.e
	outputs, metadata := e.objectAt("outputs"), e.objectAt("metadata")
	if !r.success {
		r.output = lastOnly(r.output)
		r.output.set("success", false)
		r.output.set("error", r.err)
		metadata.set("last_agent_failure", object{{"agent_name", r.agent}, {"error", r.err}})
		e.set("metadata", metadata)
	}
	if r.output == nil {
		r.output = object{}
	}
	outputs.set(r.agent, r.output)
	e.set("outputs", outputs)
	for name, n := range r.counts {
		add(e, name, n)
	}
	add(e, "iteration", 1)
	s.note(r)
	reason, text := m.move(s, r)
	if reason != "" {
		m.terminate(e, reason, text)
	}
	m.complete(e)
	return text
}

// add adds to a counter, saturating (envelope D41).
func add(e *envelope, name string, n int64) {
	limit := int64(math.MaxInt32)
	if strings.HasPrefix(name, "tokens_") {
		limit = math.MaxInt64
	}
	if have := e.count(name); have > limit-n {
		e.set(name, limit)
	} else {
		e.set(name, have+n)
	}
}

// note is step 4.
func (s *pipelineSession) note(r *result) {
	name := s.p.stages[s.stage].name
	failed := s.e.objectAt("failed_stages")
	if !r.success {
		failed.set(name, r.err)
		s.e.set("failed_stages", failed)
		return
	}
	if failed.has(name) {
		failed.del(name)
		s.e.set("failed_stages", failed)
	}
	done, isList := s.e.get("completed_stage_set").([]any)
	if isList || s.e.nested && !isObject(s.e.get("completed_stage_set")) {
		if !slices.Contains(done, any(name)) {
			s.e.set("completed_stage_set", append(slices.Clone(done), name))
		}
		return
	}
	set := s.e.objectAt("completed_stage_set")
	set.set(name, true)
	s.e.set("completed_stage_set", set)
}

// move is steps 5 to 10: it names the reason of an end.
func (m *model) move(s *pipelineSession, r *result) (reason, text string) {
	from, to := s.stage, s.p.next(s.stage, r.success, r.output)
	edge := [2]int{from, to}
	limit, limited := s.p.limits[edge]
	over := s.e.exhausted()
	switch {
	case to < 0 && r.success:
		return "COMPLETED", "Pipeline completed"
	case to < 0:
		return "TOOL_FAILED_FATALLY", fmt.Sprintf("Agent %s failed: %s", r.agent, r.err)
	case over != "":
		return over, "Bounds exceeded: " + over
	case limited && s.edges[edge] >= limit:
		return "MAX_AGENT_HOPS_EXCEEDED", fmt.Sprintf("Edge limit exceeded: %s -> %s", s.p.stages[from].name, s.p.stages[to].name)
	}
	s.edges[edge]++
	s.stage = to
	s.e.set("current_stage", s.p.stages[to].name)
	add(s.e, "agent_hop_count", 1)
	if over = s.e.exhausted(); over != "" {
		text = "Bounds exceeded: " + over
	}
	return over, text
}
