package orchestration

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/envelope"
	"trunkline/engine/table"
)

// state is what a session does (envelope §5.2).
type state uint8

const (
	running state = iota
	waiting
	terminated
)

// session is one pipeline on its way. The fields up to the atomics are guarded by mu.
type session struct {
	mu  sync.Mutex
	pid []byte
	seq uint64 // distinguishes the sessions of one process
	p   *Pipeline
	// source is the encoded configuration, kept only where a journal wants it.
	source []byte
	env    []byte // the envelope as replies show it
	state  state
	over   envelope.Reason // the bound that is met
	// reason is terminal_reason as replies show it, "" while there is none.
	reason []byte
	// envelopeID names the envelope, for the index of waiting sessions.
	envelopeID []byte
	edges      []int64
	edgeBytes  int // of edge_traversals in SessionState
	// reasonBytes is what a reason that came with the envelope takes: it may be any text, and
	// stays.
	reasonBytes int

	stage atomic.Int32
	history
	// gone is set once the session is in the table no more.
	gone atomic.Bool
	// cancelled is set when the process was terminated, for the next request to end the session
	// before anything else.
	cancelled atomic.Bool
	// answer is what the interrupt came to while no request asked for the session.
	answer atomic.Pointer[answer]
	// idle and expires determine when a waiting session may be dropped: how long it must have been
	// untouched, in nanoseconds, and the wall clock in milliseconds that must have come. Zero for
	// the others.
	idle, expires atomic.Int64
}

// sessionOverhead is about what a session costs beside its bytes, edges and pipeline.
const sessionOverhead = 640

// size is what the session is accounted with once its envelope takes envBytes.
func (s *session) size(envBytes int) int64 {
	return int64(envBytes+2*len(s.pid)+len(s.envelopeID)+s.reasonBytes+len(s.source)+8*len(s.edges)) + s.p.bytes() + sessionOverhead
}

func newSession(p *Pipeline, pid []byte, seq uint64, source []byte) *session {
	return &session{p: p, source: source, pid: bytes.Clone(pid), seq: seq, edges: make([]int64, len(p.edges))}
}

// current returns the stage that is next.
func (s *session) current() *Stage { return &s.p.stages[s.stage.Load()] }

func (s *session) class() table.Class { return classOf(s.state == terminated) }

// adopt makes the envelope e the session's first; encoded is its encoding.
func (s *session) adopt(e *envelope.Env, encoded []byte) {
	s.envelopeID = bytes.Clone(e.Text(envelope.EnvelopeID))
	s.read(e)
	s.reasonBytes = len(s.reason)
	s.hold(encoded)
}

// read takes what decides the next requests from an envelope that the session is about to hold.
func (s *session) read(e *envelope.Env) {
	s.over = e.Exhausted()
	s.state, s.reason = running, s.reason[:0]
	s.idle.Store(0)
	s.expires.Store(0)
	switch {
	case e.Bool(envelope.Terminated):
		s.state = terminated
		if r := e.Reason(); r == envelope.OtherReason {
			s.reason = append(s.reason, e.Text(envelope.TerminalReason)...)
		} else {
			s.reason = append(s.reason, r.Wire()...)
		}
	case e.Bool(envelope.InterruptPending):
		s.state = waiting
		k, _ := e.InterruptKindOf()
		s.idle.Store(int64(k.Retention()))
		at, _ := e.Str(e.Get(e.Value(envelope.Interrupt).Raw, "expires_at"))
		if t, ok := envelope.ParseTime(at); ok {
			s.expires.Store(t.UnixMilli())
		}
	}
}

// hold makes encoded the session's envelope. It copies it into the room of the last one where that
// is enough.
func (s *session) hold(encoded []byte) {
	if room := s.held(len(encoded)); room != cap(s.env) {
		s.env = make([]byte, 0, room)
	}
	s.env = append(s.env[:0], encoded...)
}

// held is how many bytes hold will take for an envelope of n bytes.
func (s *session) held(n int) int {
	if cap(s.env) < n || cap(s.env) > 4*n+4096 {
		return n + n/8
	}
	return cap(s.env)
}

// find returns the session of a process, locked; nil and a refusal if there is none. touch means
// that the request counts as activity.
func (o *Engine) find(c *Call, pid []byte, touch bool) (*session, wire.Code) {
	for {
		entry := o.sessions.Acquire(pid)
		if entry == nil {
			return nil, c.refuse(wire.NotFound, "Unknown process: ", pid, "")
		}
		if touch {
			entry.Touch(c.Now.Mono)
		}
		s := entry.Value()
		entry.Release()
		s.mu.Lock()
		if !s.gone.Load() {
			o.settle(c, s)
			return s, wire.OK
		}
		s.mu.Unlock() // it was replaced or dropped in between
	}
}

// entry returns the entry of the session, locked; nil once the table has another one or none.
func (o *Engine) entry(s *session) *table.Entry[session] {
	e := o.sessions.Acquire(s.pid)
	if e != nil && e.Value() != s {
		e.Release()
		return nil
	}
	return e
}

// account has the table count the session, which is locked, with an envelope of n bytes.
func (o *Engine) account(c *Call, s *session, n int) bool {
	return o.resize(c, s, s.size(s.held(n)), 0)
}

// grow has the table count n bytes more for the session, which need not be locked, until account
// counts it again.
func (o *Engine) grow(c *Call, s *session, n int) bool { return o.resize(c, s, 0, int64(n)) }

// resize has the table count the session with a size, or for 0 with that many bytes more; ended
// ones make room. One that is gone counts for nothing.
func (o *Engine) resize(c *Call, s *session, size, more int64) bool {
	for {
		entry := o.entry(s)
		if entry == nil {
			return true
		}
		if size > 0 {
			more = size - entry.Size()
		}
		ok := entry.Resize(entry.Size() + more)
		entry.Release()
		if ok {
			return true
		}
		if !o.sessions.MakeRoom(s.pid, more, c.Now.Mono, sessionPolicy) {
			return false
		}
	}
}

// end ends a session that has not ended (envelope §5.2): its envelope is decoded, overlaid and
// encoded again. It is let through even when the table's bytes are used up.
func (o *Engine) end(c *Call, s *session, r envelope.Reason, text string) {
	if o.journals() {
		c.change = Change{Kind: ChangeEnd, PID: s.pid, Seq: s.seq, Reason: r, Text: []byte(text)}
		s.advance(o.recordChange(c, &c.change))
	}
	o.finish(c, s, r, text)
}

// finish is end for an end that was recorded.
func (o *Engine) finish(c *Call, s *session, r envelope.Reason, text string) {
	e := &c.env
	if e.Reopen(envelope.MsgPack, s.env) != nil {
		return
	}
	e.Terminate(r, text, c.wall())
	if e.Bool(envelope.InterruptPending) {
		e.SetBool(envelope.InterruptPending, false)
	}
	o.encode(c)
	o.account(c, s, len(c.buf))
	o.commit(s, c)
}

// commit makes c.env, encoded in c.buf, the session's envelope.
func (o *Engine) commit(s *session, c *Call) {
	was := s.state
	s.read(&c.env)
	s.hold(c.buf)
	if s.state != was {
		if was == waiting {
			o.waiting.remove(s)
		}
		if entry := o.entry(s); entry != nil {
			entry.SetClass(s.class())
			entry.Release()
		}
	}
}

// forget is called for a session that is no longer in the table.
func (o *Engine) forget(s *session) {
	s.gone.Store(true)
	o.waiting.remove(s)
	o.bury(&s.history, &Change{Kind: ChangeSessionDrop, PID: s.pid, Seq: s.seq})
}

type instruction struct {
	kind, agent string
	env         []byte
	reason      []byte
	message     []byte
	interrupt   []byte // encoded; nil: nil
	waits       bool
}

const (
	runAgent      = "RUN_AGENT"
	waitInterrupt = "WAIT_INTERRUPT"
	terminate     = "TERMINATE"
)

func (i *instruction) append(dst []byte) []byte {
	dst = mpack.AppendStr(mpack.AppendStr(mpack.AppendMap(dst, 7), "kind"), i.kind)
	dst = mpack.AppendStr(mpack.AppendStr(dst, "agent_name"), i.agent)
	dst = append(mpack.AppendStr(dst, "envelope"), i.env...)
	dst = mpack.AppendStr(mpack.AppendStr(dst, "terminal_reason"), i.reason)
	dst = mpack.AppendStr(mpack.AppendStr(dst, "termination_message"), i.message)
	dst = mpack.AppendBool(mpack.AppendStr(dst, "interrupt_pending"), i.waits)
	dst = mpack.AppendStr(dst, "interrupt")
	if i.interrupt == nil {
		return mpack.AppendNil(dst)
	}
	return append(dst, i.interrupt...)
}

// instruct returns the instruction of the session, which is locked; message goes with its end.
func (s *session) instruct(c *Call, message []byte) instruction {
	switch s.state {
	case terminated:
		return instruction{kind: terminate, env: s.env, reason: s.reason, message: message}
	case waiting:
		i := instruction{kind: waitInterrupt, env: s.env, waits: true}
		if c.env.Reopen(envelope.MsgPack, s.env) == nil && c.env.Value(envelope.Interrupt).Kind == envelope.Map {
			i.interrupt = c.env.Value(envelope.Interrupt).Raw
		}
		return i
	}
	return instruction{kind: runAgent, agent: s.current().Agent, env: s.env}
}

// Bounds on what replies have beside their variable parts.
const (
	instructionRest = 256
	stateRest       = 192
)

// instructionSize bounds the size of an instruction with an envelope of n bytes and other texts
// that come to more bytes.
func instructionSize(n, more int) int { return instructionRest + n + more }

// stateSize bounds the size of SessionState with an envelope of n bytes.
func (s *session) stateSize(n int) int {
	return stateRest + n + len(s.pid) + s.p.order + s.edgeBytes + len(s.reason) + wire.MaxIdentifier
}

// appendState appends SessionState (envelope §3.10) of the session, which is locked.
func (s *session) appendState(dst []byte) []byte {
	dst = mpack.AppendStr(mpack.AppendStr(mpack.AppendMap(dst, 7), "process_id"), s.pid)
	dst = mpack.AppendStr(mpack.AppendStr(dst, "current_stage"), s.current().Name)
	dst = s.p.appendStageOrder(mpack.AppendStr(dst, "stage_order"))
	dst = append(mpack.AppendStr(dst, "envelope"), s.env...)
	dst = s.appendEdges(mpack.AppendStr(dst, "edge_traversals"))
	dst = mpack.AppendBool(mpack.AppendStr(dst, "terminated"), s.state == terminated)
	return mpack.AppendStr(mpack.AppendStr(dst, "terminal_reason"), s.reason)
}

// appendEdges appends how often each edge was taken.
func (s *session) appendEdges(dst []byte) []byte {
	if s.p.arrows {
		return s.appendSums(dst)
	}
	n := 0
	for _, count := range s.edges {
		if count > 0 {
			n++
		}
	}
	dst = mpack.AppendMap(dst, n)
	var buf [128]byte
	for i, count := range s.edges {
		if count > 0 {
			from, to := s.p.ends(i)
			name := append(append(append(buf[:0], from...), arrow...), to...)
			dst = mpack.AppendInt(mpack.AppendStr(dst, name), count)
		}
	}
	return dst
}

// appendSums is appendEdges for stages whose names hold the arrow themselves: two edges may then
// have one name.
func (s *session) appendSums(dst []byte) []byte {
	sums := make(map[string]int64)
	var names []string
	for i, count := range s.edges {
		if count == 0 {
			continue
		}
		from, to := s.p.ends(i)
		name := from + arrow + to
		if sums[name] == 0 {
			names = append(names, name)
		}
		sums[name] += count
	}
	dst = mpack.AppendMap(dst, len(names))
	for _, name := range names {
		dst = mpack.AppendInt(mpack.AppendStr(dst, name), sums[name])
	}
	return dst
}

// arrow stands between the names of an edge's stages.
const arrow = "->"

// edgeRoom bounds what one traversed edge takes in SessionState.
func (p *Pipeline) edgeRoom(index int) int {
	from, to := p.ends(index)
	return len(from) + len(to) + len(arrow) + 2*9
}

const processTerminated = "Process terminated"

// sweepSessions drops the sessions that no request touched for their retention.
func (o *Engine) sweepSessions(c *Call) int {
	cutoff := c.Now.Mono - int64(o.cfg.SessionRetention/time.Nanosecond)
	return o.sessions.Sweep(cutoff, func(s *session, _ table.Class, touched int64) bool {
		return !o.cfg.Overloaded() && c.Now.Mono-touched >= s.idle.Load() && c.Now.Wall >= s.expires.Load()
	})
}
