package toolhost

import (
	"sync/atomic"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/connection"
	"trunkline/handlers/toolhost/selector"
	"trunkline/handlers/toolhost/tool"
)

// Event is something that happened (toolhost §4.12). It never holds a token.
type Event struct {
	// Name is the type, for example "toolhost.tool.finished".
	Name string
	// Payload is a JSON object. The receiver may keep it.
	Payload []byte
}

// emit emits the event name with the members of add. Nothing is built without a subscriber.
func (s *Server) emit(name string, add func(jsonx.Builder) jsonx.Builder) {
	if s.hasSubscriber(name) {
		s.cfg.Events(Event{name, add(jsonx.Build(nil)).End()})
	}
}

func (s *Server) hasSubscriber(name string) bool {
	return s.cfg.Events != nil && (s.cfg.EventsWanted == nil || s.cfg.EventsWanted(name))
}

const toolFinished = "toolhost.tool.finished"

// finished emits the end of a tool request. It does not allocate without a subscriber.
func (s *Server) finished(e *Entry, o *outcome, took time.Duration, id requestID) {
	s.emit(toolFinished, func(b jsonx.Builder) jsonx.Builder {
		kind, _ := member(o.dispatch, "type").Text() // none without a dispatch error
		b = b.Text("aid", e.AID).Text("status", o.status.String()).Int("duration_us", took.Microseconds()).
			Bool("idempotent_hit", o.hit).Bytes("error_type", kind)
		if id.raw == nil {
			id.quoted = true
		}
		return id.append(b.Name("request_id"))
	})
}

func (s *Server) leaseIssued(token, aid string, tier int, ttl int64, principal []byte) {
	s.emit("toolhost.lease.issued", func(b jsonx.Builder) jsonx.Builder {
		return b.Text("token_fp", fingerprint([]byte(token))).Text("tool_aid", aid).
			Int("tier", int64(tier)).Int("ttl_ms", ttl).Bytes("principal", principal)
	})
}

func (s *Server) leaseUsed(name string, token []byte, e *Entry, no *rejection) {
	s.emit(name, func(b jsonx.Builder) jsonx.Builder {
		b = b.Text("token_fp", fingerprint(token)).Text("tool_aid", e.AID).Int("tier", int64(e.Tier)).Text("aid", e.AID)
		if no != nil {
			b = b.Bytes("reason", no.append(nil))
		}
		return b
	})
}

func (s *Server) runOpened(run *selector.Run, goal string) {
	s.emit("toolhost.run.opened", func(b jsonx.Builder) jsonx.Builder {
		return jsonx.Builder(run.AppendHeader(b.Name("run_header"))).Text("goal_id", goal)
	})
}

func (s *Server) runClosed(run *selector.Run, how string) {
	s.emit("toolhost.run.closed", func(b jsonx.Builder) jsonx.Builder {
		return b.Text("run_id", run.ID()).Int("steps", int64(run.Steps())).Text("ended", how)
	})
}

func (s *Server) selected(run *selector.Run, step *selector.Step) {
	if step.ShadowRaw == "" {
		return
	}
	s.emit("toolhost.selector.shadow", func(b jsonx.Builder) jsonx.Builder {
		return b.Text("run_id", run.ID()).Int("step", int64(step.Number)).Text("raw", step.ShadowRaw)
	})
}

// wall is the clock of timestamps.
func (s *Server) wall() time.Time { return time.UnixMilli(s.now(connection.Now()).Wall) }

func (s *Server) timeoutOf(e *Entry) time.Duration {
	if e != nil && e.Timeout > 0 {
		return min(e.Timeout, MaxToolTimeout)
	}
	return s.cfg.ToolTimeout
}

// Stats is what _stats returns (toolhost §4.5), and the counters of the tools.
type Stats struct {
	Sessions, InFlight, IdempotencyEntries, IdempotencyHits, LeaseActive, BreakersOpen, Workers int64
	// Unfinished is the bytes of unfinished lines, UnfinishedRefused the connections without room.
	Unfinished, UnfinishedRefused int64
	Tools                         []ToolStats
}

// ToolStats are the counters of one registered tool; hits are not counted.
type ToolStats struct {
	AID      string
	OK, Fail int64
	Duration time.Duration
}

// Stats reads the counters. It allocates the list of tools.
func (s *Server) Stats() Stats {
	s.idem.Sweep()
	st := Stats{Sessions: s.sessions.Load(), IdempotencyEntries: int64(s.idem.Len()), IdempotencyHits: int64(s.idem.Hits()),
		LeaseActive: s.leases.active(s.mono()), Unfinished: s.unfinished.Used(), UnfinishedRefused: s.unfinished.Refused()}
	for _, e := range s.cfg.Registry.sorted {
		n := &s.counts[e.index]
		st.InFlight += n.inFlight.Load()
		st.Tools = append(st.Tools, ToolStats{AID: e.AID, OK: n.ok.Load(), Fail: n.fail.Load(), Duration: time.Duration(n.took.Load())})
		if e.Breaker != nil {
			if state, _ := e.Breaker.State(); state != tool.BreakerClosed {
				st.BreakersOpen++
			}
		}
		if w, ok := e.Tool.(interface{ Workers() int }); ok {
			st.Workers += int64(w.Workers())
		}
	}
	return st
}

// BreakerEvent returns the event of a breaker's change of state.
func BreakerEvent(aid string, state tool.BreakerState, failures int) Event {
	return Event{"toolhost.breaker." + state.String(), jsonx.Build(nil).Text("aid", aid).Int("failures", int64(failures)).End()}
}

// WorkerStarted returns the event of a worker process that was started.
func WorkerStarted(aid string, pid int) Event {
	return Event{"toolhost.worker.started", jsonx.Build(nil).Text("aid", aid).Int("pid", int64(pid)).End()}
}

// WorkerExited returns the event of a worker process that has ended.
func WorkerExited(aid string, pid, code int, reason string) Event {
	return Event{"toolhost.worker.exited", jsonx.Build(nil).Text("aid", aid).Int("pid", int64(pid)).
		Int("exit_code", int64(code)).Text("reason", reason).End()}
}

// toolCounts are the counters of one tool (toolhost §4.12).
type toolCounts struct {
	ok, fail atomic.Int64
	took     atomic.Int64 // ns
	inFlight atomic.Int64 // off the loop
	_        [32]byte     // a cache line of its own: loops count different tools at once
}

// failures returns how many of one outcome are failures.
func failures(o *outcome) int64 {
	if o.status == tool.OK {
		return 0
	}
	return 1
}

func (s *Server) count(e *Entry, o *outcome, took time.Duration) {
	n := &s.counts[e.index]
	if o.status == tool.OK {
		n.ok.Add(1)
	} else {
		n.fail.Add(1)
	}
	n.took.Add(int64(took))
}

// tally is what a tool on the loop did in a row of lines. It is added to the counters when another
// tool follows or the turn ends: two clock readings serve the whole row, unless events need more.
type tally struct {
	entry    *Entry
	ok, fail int64
	begun    int64 // ns of the monotonic clock
}

func (t *tally) begin(e *Entry, s *session) {
	if t.entry == e && !s.observed {
		return
	}
	t.flush(s)
	t.entry, t.begun = e, s.nowMono()
}

func (t *tally) end(c *call, o *outcome) {
	if o.status == tool.OK {
		t.ok++
	} else {
		t.fail++
	}
	if c.s.observed {
		c.srv.finished(c.entry, o, t.flush(c.s), c.id)
	}
}

// flush writes down what there is, and returns how long it took.
func (t *tally) flush(s *session) (took time.Duration) {
	if t.entry == nil {
		return 0
	}
	took = time.Duration(s.nowMono() - t.begun)
	if done := t.ok + t.fail; done > 0 {
		s.srv.steps.Record(stepToolRun, int64(took)/done, done, t.fail, nil)
	}
	n := &s.srv.counts[t.entry.index]
	n.ok.Add(t.ok)
	n.fail.Add(t.fail)
	n.took.Add(int64(took))
	*t = tally{}
	return took
}
