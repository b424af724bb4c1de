package toolhost

import (
	"strconv"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/link"
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

// payload builds the members of an event.
type payload []byte

func (p payload) text(name, value string) payload {
	return jsonx.AppendString(p.name(name), value)
}

func (p payload) int(name string, value int64) payload {
	return strconv.AppendInt(p.name(name), value, 10)
}

func (p payload) name(name string) payload {
	if len(p) > 0 {
		p = append(p, ',')
	}
	return append(append(append(p, '"'), name...), `":`...)
}

// tell sends an event. Callers ask wanted first, so that nothing is built for nobody.
func (s *Server) tell(name string, p payload) {
	s.cfg.Events(event(name, p))
}

// told reports whether anybody is told the end of tool requests.
func (s *Server) told() bool { return s.wanted("toolhost.tool.finished") }

// wanted reports whether anybody is told events of that name.
func (s *Server) wanted(name string) bool {
	return s.cfg.Events != nil && (s.cfg.EventsWanted == nil || s.cfg.EventsWanted(name))
}

// finished tells the end of a tool request. It does not allocate where nobody is told.
func (s *Server) finished(e *Entry, o *outcome, took time.Duration, id requestID) {
	if !s.told() {
		return
	}
	p := payload(nil).text("aid", e.AID).text("status", o.status.String()).int("duration_us", took.Microseconds())
	p = appendBool(p.name("idempotent_hit"), o.hit)
	p = p.text("error_type", errorType(o.dispatch))
	p = p.name("request_id")
	if id.quoted {
		p = append(append(append(p, '"'), id.raw...), '"')
	} else if id.raw != nil {
		p = append(p, id.raw...)
	} else {
		p = append(p, `""`...)
	}
	s.tell("toolhost.tool.finished", p)
}

// errorType returns the type in a dispatch error, "" for none.
func errorType(dispatch []byte) string {
	if len(dispatch) == 0 {
		return ""
	}
	text, _ := stringMember(dispatch, "type")
	return string(text)
}

func (s *Server) leaseIssued(token, aid string, tier int, ttl int64, principal []byte) {
	if s.wanted("toolhost.lease.issued") {
		s.tell("toolhost.lease.issued", payload(nil).text("token_fp", fingerprint([]byte(token))).text("tool_aid", aid).
			int("tier", int64(tier)).int("ttl_ms", ttl).text("principal", string(principal)))
	}
}

func (s *Server) leaseConsumed(token []byte, e *Entry) {
	if s.wanted("toolhost.lease.consumed") {
		s.tell("toolhost.lease.consumed", payload(nil).text("token_fp", fingerprint(token)).text("tool_aid", e.AID).
			int("tier", int64(e.Tier)).text("aid", e.AID))
	}
}

func (s *Server) leaseRejected(token []byte, e *Entry, no *rejection) {
	if s.wanted("toolhost.lease.rejected") {
		s.tell("toolhost.lease.rejected", payload(nil).text("token_fp", fingerprint(token)).text("tool_aid", e.AID).
			int("tier", int64(e.Tier)).text("aid", e.AID).text("reason", string(no.append(nil))))
	}
}

func (s *Server) runOpened(run *selector.Run, goal string) {
	if s.wanted("toolhost.run.opened") {
		opened := run.AppendOpened(nil)
		header, _ := member(append(opened, '}'), "run_header")
		p := payload(nil)
		p = append(p.name("run_header"), header.Raw...)
		s.tell("toolhost.run.opened", p.text("goal_id", goal))
	}
}

func (s *Server) runClosed(run *selector.Run, how string) {
	if s.wanted("toolhost.run.closed") {
		closed := append(run.AppendClosed(nil), '}')
		steps, _ := member(closed, "steps")
		p := payload(nil).text("run_id", run.ID())
		p = append(p.name("steps"), steps.Raw...)
		s.tell("toolhost.run.closed", p.text("ended", how))
	}
}

func (s *Server) selected(run *selector.Run, step *selector.Step) {
	if s.wanted("toolhost.selector.shadow") && step.ShadowRaw != "" {
		s.tell("toolhost.selector.shadow", payload(nil).text("run_id", run.ID()).int("step", int64(step.Number)).text("raw", step.ShadowRaw))
	}
}

// wall is the clock of timestamps.
func (s *Server) wall() time.Time { return time.UnixMilli(s.now(link.Now()).Wall) }

func (s *Server) timeoutOf(e *Entry) time.Duration {
	if e != nil && e.Timeout > 0 {
		return min(e.Timeout, MaxToolTimeout)
	}
	return s.cfg.ToolTimeout
}

// Stats is what _stats tells (toolhost §4.5), and the counters of the tools.
type Stats struct {
	Sessions, InFlight, IdempotencyEntries, IdempotencyHits, LeaseActive, BreakersOpen, Workers int64
	// Unfinished is how many bytes connections hold of unfinished lines, link.OwnInput of each not counted, and UnfinishedRefused how
	// many connections were closed because there was no room for one.
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
	p := payload(nil).text("aid", aid).int("failures", int64(failures))
	return event("toolhost.breaker."+state.String(), p)
}

// WorkerStarted returns the event of a worker process that was started.
func WorkerStarted(aid string, pid int) Event {
	return event("toolhost.worker.started", payload(nil).text("aid", aid).int("pid", int64(pid)))
}

// WorkerExited returns the event of a worker process that has ended.
func WorkerExited(aid string, pid, code int, reason string) Event {
	return event("toolhost.worker.exited", payload(nil).text("aid", aid).int("pid", int64(pid)).int("exit_code", int64(code)).text("reason", reason))
}

func event(name string, p payload) Event {
	return Event{Name: name, Payload: append(append([]byte{'{'}, p...), '}')}
}
