package orchestration

import (
	"math"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/envelope"
)

// Report are the fields of ReportAgentResult, checked (envelope §4.12).
type Report struct {
	ProcessID, AgentName []byte
	// Failed is the opposite of success.
	Failed bool
	Error  []byte
	// Output is the encoded map of the agent's output; nil: an empty one.
	Output []byte
	// What the agent used; none is negative, and tokens that are not known are 0.
	LLMCalls, ToolCalls       int64
	TokensIn, TokensOut       int64
	HasTokensIn, HasTokensOut bool
}

// Report takes an agent's result, moves the session on and appends the next instruction (envelope
// §5.2).
func (o *Engine) Report(c *Call, r *Report, out []byte) ([]byte, wire.Code) {
	s, code := o.find(c, r.ProcessID, true)
	if code != wire.OK {
		return out, code
	}
	defer s.mu.Unlock()
	switch s.state {
	case terminated:
		i := s.instruct(c, []byte(alreadyEnd))
		return i.append(out), wire.OK
	case waiting:
		return out, c.refuse(wire.FailedPrecondition, "Process ", r.ProcessID, " is waiting on an interrupt")
	}
	stage := s.current()
	if string(r.AgentName) != stage.Agent && string(r.AgentName) != stage.Name {
		c.refuse(wire.FailedPrecondition, "Expected result from agent '", []byte(stage.Agent), "', got '")
		c.Msg = append(append(c.Msg, r.AgentName...), '\'')
		return out, wire.FailedPrecondition
	}
	if !c.scan.Fits(r.Output, aroundOutput) {
		return out, c.refuse(wire.InvalidArgument, "output", nil, tooDeep)
	}
	if c.env.Reopen(envelope.MsgPack, s.env) != nil {
		return out, c.refuse(wire.Internal, "Internal error", nil, "")
	}
	c.take(s, r)
	st := s.decide(c, r)
	c.follow(s, &st)
	o.encode(c)
	if code := o.fits(c, s, &st); code != wire.OK {
		return out, code
	}
	if o.journals() {
		c.change = Change{Kind: ChangeReport, PID: s.pid, Seq: s.seq, Report: *r, To: st.to, Edge: st.edge, Reason: st.reason}
		if st.reason != envelope.NoReason {
			c.change.Text = c.failure
		}
		s.advance(o.recordChange(c, &c.change))
	}
	o.moved(c, s, &st)
	i := s.instruct(c, c.failure)
	return i.append(out), wire.OK
}

// moved makes what a report came to, encoded in c.buf, the session's state.
func (o *Engine) moved(c *Call, s *session, st *step) {
	s.stage.Store(int32(st.to))
	if st.edge >= 0 {
		if s.edges[st.edge]++; s.edges[st.edge] == 1 {
			s.edgeBytes += s.p.edgeRoom(st.edge)
		}
	}
	o.commit(s, c)
}

// step is where a report leads.
type step struct {
	to     int             // the stage after it
	edge   int             // the edge taken, -1: none
	reason envelope.Reason // of the end, NoReason if it goes on; the text of the end is in Call.failure
}

// take writes the content of a report into c.env.
func (c *Call) take(s *session, r *Report) {
	e := &c.env
	c.record(r)
	e.SetInt(envelope.LLMCallCount, add(e.Int(envelope.LLMCallCount), r.LLMCalls, math.MaxInt32))
	e.SetInt(envelope.ToolCallCount, add(e.Int(envelope.ToolCallCount), r.ToolCalls, math.MaxInt32))
	e.SetInt(envelope.TokensIn, add(e.Int(envelope.TokensIn), r.TokensIn, math.MaxInt64))
	e.SetInt(envelope.TokensOut, add(e.Int(envelope.TokensOut), r.TokensOut, math.MaxInt64))
	e.SetInt(envelope.Iteration, add(e.Int(envelope.Iteration), 1, math.MaxInt32))
	if stage := s.current(); r.Failed {
		e.SetFailed(stage.Name, r.Error)
	} else {
		e.SetCompleted(stage.Name)
	}
}

// add adds without going over limit (envelope D41).
func add(a, b, limit int64) int64 {
	if b > limit-a {
		return limit
	}
	return a + b
}

// record keeps the agent's output.
func (c *Call) record(r *Report) {
	e := &c.env
	if r.Failed {
		c.output = appendFailed(c.output[:0], r)
		c.failure = mpack.AppendStr(mpack.AppendStr(mpack.AppendMap(c.failure[:0], 2), "agent_name"), r.AgentName)
		c.failure = mpack.AppendStr(mpack.AppendStr(c.failure, "error"), r.Error)
		e.SetMember(envelope.Metadata, "last_agent_failure", c.failure)
	} else if c.output = append(c.output[:0], r.Output...); r.Output == nil {
		c.output = mpack.AppendMap(c.output, 0)
	}
	e.SetOutput(r.AgentName, c.output)
}

// appendFailed appends the output of a failed report: success and error are set in it, also over
// ones of its own.
func appendFailed(dst []byte, r *Report) []byte {
	n, it := 2, mpack.OpenMap(r.Output)
	for _, key, _, ok := it.Next(); ok; _, key, _, ok = it.Next() {
		if !isVerdict(key) {
			n++
		}
	}
	dst, it = mpack.AppendMap(dst, n), mpack.OpenMap(r.Output)
	for rawKey, key, raw, ok := it.Next(); ok; rawKey, key, raw, ok = it.Next() {
		if !isVerdict(key) {
			dst = append(append(dst, rawKey...), raw...)
		}
	}
	dst = mpack.AppendBool(mpack.AppendStr(dst, "success"), false)
	return mpack.AppendStr(mpack.AppendStr(dst, "error"), r.Error)
}

func isVerdict(key []byte) bool { return string(key) == "success" || string(key) == "error" }

// decide returns where a report that was taken leads: steps 5 to 10 of envelope §5.2. It changes
// nothing but c.failure.
func (s *session) decide(c *Call, r *Report) step {
	e := &c.env
	from := int(s.stage.Load())
	to := s.p.Next(from, !r.Failed, c.output)
	if to == end {
		if r.Failed {
			return c.stop(from, envelope.ToolFailedFatally, "Agent ", r.AgentName, " failed: ", r.Error)
		}
		return c.stop(from, envelope.CompletedSuccessfully, "Pipeline completed", nil, "", nil)
	}
	if over := e.Exhausted(); over != envelope.NoReason {
		return c.stopAtBound(from, over)
	}
	edge, limit, limited := s.p.edge(from, to)
	if limited && s.edges[edge] >= limit {
		return c.stop(from, envelope.MaxAgentHopsExceeded, "Edge limit exceeded: ", []byte(s.p.stages[from].Name), " -> ", []byte(s.p.stages[to].Name))
	}
	st := step{to: to, edge: edge}
	if hop(e) >= e.Int(envelope.MaxAgentHops) {
		st.reason = c.stopAtBound(to, envelope.MaxAgentHopsExceeded).reason
	}
	return st
}

// hop is agent_hop_count after one more.
func hop(e *envelope.Env) int64 { return add(e.Int(envelope.AgentHopCount), 1, math.MaxInt32) }

// follow writes where a report leads into c.env.
func (c *Call) follow(s *session, st *step) {
	e := &c.env
	if st.edge >= 0 {
		e.SetText(envelope.CurrentStage, []byte(s.p.stages[st.to].Name))
		e.SetInt(envelope.AgentHopCount, hop(e))
	}
	if st.reason != envelope.NoReason {
		e.Terminate(st.reason, string(c.failure), c.wall())
	}
}

// stop is the step that ends the session where it stands; the text of the end is left in c.failure.
func (c *Call) stop(at int, r envelope.Reason, a string, b []byte, d string, f []byte) step {
	c.failure = append(append(append(append(c.failure[:0], a...), b...), d...), f...)
	return step{to: at, edge: -1, reason: r}
}

func (c *Call) stopAtBound(at int, r envelope.Reason) step {
	return c.stop(at, r, boundsExceeded, []byte(r.Wire()), "", nil)
}

const boundsExceeded = "Bounds exceeded: "

// fits applies the size rule of envelope §4.5 to the envelope in c.buf, and has the table count it.
func (o *Engine) fits(c *Call, s *session, st *step) wire.Code {
	more := wire.MaxIdentifier
	if c.env.Bool(envelope.Terminated) {
		more += len(c.failure)
	}
	room := 0
	if st.edge >= 0 {
		room = s.p.edgeRoom(st.edge)
	}
	if instructionSize(len(c.buf), more) > o.cfg.MaxReply || s.stateSize(len(c.buf))+room > o.cfg.MaxReply {
		return c.tooLarge()
	}
	if !o.account(c, s, len(c.buf)) {
		return c.full(tableFull)
	}
	return wire.OK
}
