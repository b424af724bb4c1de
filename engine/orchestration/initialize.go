package orchestration

import (
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/envelope"
	"trunkline/engine/table"
)

// sessionPolicy: only sessions that ended make room for others (envelope §5.3).
var sessionPolicy = table.Policy{Ended: true}

// InitArgs are the fields of InitializeSession.
type InitArgs struct {
	ProcessID        []byte
	Config, Envelope mpack.Value // a map, or JSON text of one
	Force            bool
}

// Initialize starts a session and appends its SessionState (envelope §4.10). On any refusal a
// session that is there stays as it was.
func (o *Engine) Initialize(c *Call, a *InitArgs, out []byte) ([]byte, wire.Code) {
	s, code := o.prepare(c, a)
	if code != wire.OK {
		return out, code
	}
	if code = o.enter(c, s, a.Force); code != wire.OK {
		return out, code
	}
	defer s.mu.Unlock()
	return s.appendState(out), wire.OK
}

// ExecutePipeline starts a session named by its envelope and appends its first instruction
// (envelope §4.8).
func (o *Engine) ExecutePipeline(c *Call, env, config mpack.Value, out []byte) ([]byte, wire.Code) {
	s, code := o.prepare(c, &InitArgs{Config: config, Envelope: env})
	if code != wire.OK {
		return out, code
	}
	if code = o.enter(c, s, false); code != wire.OK {
		return out, code
	}
	defer s.mu.Unlock()
	return o.next(c, s, out), wire.OK
}

// prepare makes the session that the arguments describe. Without a process identifier the
// envelope's takes its place.
func (o *Engine) prepare(c *Call, a *InitArgs) (*session, wire.Code) {
	if code := c.haveFields(a); code != wire.OK {
		return nil, code
	}
	p, source, code := c.pipelineField(a.Config, o.journals())
	if code != wire.OK {
		return nil, code
	}
	if code = c.envelopeField(a.Envelope); code != wire.OK {
		return nil, code
	}
	pid := a.ProcessID
	if pid == nil {
		if pid = c.env.Text(envelope.EnvelopeID); len(pid) == 0 {
			return nil, c.invalid("envelope_id cannot be empty")
		}
	}
	s := newSession(p, pid, o.seq.Add(1), source)
	if _, there := o.sessions.Get(s.pid); there && !a.Force {
		return nil, c.exists(s.pid)
	}
	return s, o.adopt(c, s)
}

// haveFields looks at both fields before either is read, in the order of the method's table: what
// is missing is reported first.
func (c *Call) haveFields(a *InitArgs) wire.Code {
	for i := range 2 {
		v, name := a.Config, "pipeline_config"
		if (i == 0) == (a.ProcessID == nil) {
			v, name = a.Envelope, "envelope"
		}
		if v.Kind != mpack.Map && v.Kind != mpack.Str {
			_, code := c.mapField(v, name, "", &c.text)
			return code
		}
	}
	return wire.OK
}

func (c *Call) exists(pid []byte) wire.Code {
	return c.refuse(wire.InvalidArgument, "Session already exists for process: ", pid, " (use force=true to replace)")
}

// adopt makes the envelope in c.env the session's own.
func (o *Engine) adopt(c *Call, s *session) wire.Code {
	e := &c.env
	entry, ok := 0, true
	if e.Value(envelope.CurrentStage).Kind == envelope.String {
		entry, ok = s.p.entry(e.Text(envelope.CurrentStage))
	}
	if !ok {
		return c.refuse(wire.InvalidArgument, "Stage not found in pipeline: ", e.Text(envelope.CurrentStage), "")
	}
	s.stage.Store(int32(entry))
	e.SetText(envelope.CurrentStage, []byte(s.p.stages[entry].Name))
	c.output = s.p.appendStageOrder(c.output[:0])
	e.SetRaw(envelope.StageOrder, envelope.List, c.output)
	e.SetInt(envelope.MaxIterations, s.p.MaxIterations)
	e.SetInt(envelope.MaxLLMCalls, s.p.MaxLLMCalls)
	e.SetInt(envelope.MaxAgentHops, s.p.MaxAgentHops)
	o.encode(c)
	s.adopt(e, c.buf)
	more := len(s.reason) + wire.MaxIdentifier + len(e.Value(envelope.Interrupt).Raw)
	if s.stateSize(len(c.buf)) > o.cfg.MaxReply || instructionSize(len(c.buf), more) > o.cfg.MaxReply {
		return c.tooLarge()
	}
	return c.shallow()
}

// entry finds the stage to begin with (envelope D27).
func (p *Pipeline) entry(stage []byte) (index int, ok bool) {
	if at := p.find(stage); at >= 0 {
		return at, true
	}
	switch string(stage) {
	case "", "start", "end":
		return 0, true
	}
	return 0, false
}

// enter puts the session into the table; it is locked then, so that no other request comes before
// the one that made it.
func (o *Engine) enter(c *Call, s *session, force bool) wire.Code {
	s.mu.Lock()
	size, class := s.size(cap(s.env)), s.class()
	var old *session
	outcome := table.Full
	if force {
		old, outcome = o.sessions.Put(s.pid, s, size, class, c.Now.Mono, sessionPolicy)
	} else {
		outcome = o.sessions.Insert(s.pid, s, size, class, c.Now.Mono, sessionPolicy)
	}
	if outcome == table.Inserted || outcome == table.Replaced {
		if o.journals() {
			c.change = Change{Kind: ChangeSession, PID: s.pid, Seq: s.seq, Pipeline: s.source, Envelope: s.env, To: int(s.stage.Load())}
			o.bear(c, &s.history, &c.change, &Change{Kind: ChangeSessionDrop, PID: s.pid, Seq: s.seq})
		}
		o.await(s)
		if old != nil {
			o.forget(old)
		}
		return wire.OK
	}
	s.mu.Unlock()
	if outcome == table.Exists {
		return c.exists(s.pid)
	}
	return c.full(tableFull)
}

// await lets updates find a session that waits; only now, so that its beginning is recorded before
// its answer. It may have been dropped in between.
func (o *Engine) await(s *session) {
	if s.state != waiting {
		return
	}
	o.waiting.add(s)
	if s.gone.Load() {
		o.waiting.remove(s)
	}
}
