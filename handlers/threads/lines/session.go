package lines

import (
	"sync/atomic"

	"trunkline/codec/jsonx"
	"trunkline/codec/ndjson"
	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// turnBytes and turnLines bound what one Feed takes.
const (
	turnBytes = 1 << 20
	turnLines = 1024
)

// awaited is what runs off the loop before a session takes the next line.
type awaited uint8

const (
	nothing awaited = iota
	aCall
	aMessage // a call of read_messages waits for it
	aToken   // is being verified; its line is read again afterwards
)

// session is one connection (threads §2.4). All but back belongs to its owner.
type session struct {
	srv  *Server
	port *connection.Port

	claims     *token.Claims // nil: none were shown, or they are void
	generation uint64        // of the verifier, when claims were verified
	bearer     string        // the token of claims
	known      *token.Claims // those of the first token: agent and workspace do not change
	until      int64         // when the connection ends without a valid token; 0: it has one
	void       *method.Fault // why claims are void

	scanned   int // of the line that is not complete
	undecoded int // lines in a row
	waiting   int // replies that are held
	held      connection.Deferral
	answered  obs.Pending // requests whose replies have not left
	row       int         // of the meter, for the request at hand
	failed    int64       // its reply is a fault
	came      int64       // when the line came that is away
	seen      uint64      // index of the last change that the replies show
	awaits    awaited
	verified  *away // the result of the verification, for the auth line that is read again
	phase     connection.Phase
	closing   bool // after the replies at hand
	strict    jsonx.Strict
	req       request
	picked    method.Picked
	requestID []byte
	caller    method.Caller // of the request at hand

	back atomic.Pointer[away] // what came back
	streams
}

// away is a call off the loop: what it needs, copied, and what it made.
type away struct {
	line       []byte
	req        request
	caller     method.Caller
	row        *method.Row
	bearer     string // of an auth line
	out        []byte
	outcome    method.Outcome
	claims     *token.Claims
	generation uint64
	err        error
}

// Feed implements connection.Session.
func (s *session) Feed(in, out []byte, now connection.Instant) (used int, outAfter []byte, v connection.Verdict) {
	out = s.release(out)
	if s.awaits != nothing || s.blocked() || s.closing && s.held.Len() > 0 {
		return 0, out, connection.Blocked
	}
	if s.closing {
		return 0, out, connection.Close
	}
	start := len(out)
	used, out, v = s.feed(in, out, now)
	out = s.hold(out, start)
	s.left()
	if v == connection.Close && s.held.Len() > 0 && len(in) > 0 {
		s.closing = true // a byte stays unread, so that the owner asks again
		return min(used, len(in)-1), out, connection.Blocked
	}
	return used, out, v
}

// blocked reports whether so many replies wait that no more requests are taken.
func (s *session) blocked() bool { return s.waiting >= maxUnanswered || s.held.Len() > unsentBytes }

// release appends the replies that were held, if they may leave.
func (s *session) release(out []byte) []byte {
	out = s.held.Append(s.port, s.srv.cfg.Gate, out)
	if s.held.Len() == 0 {
		s.waiting = 0
	}
	s.left()
	return out
}

// left takes the time of the replies that have left, unless the journal holds them.
func (s *session) left() {
	if s.held.Len() == 0 && !s.answered.Empty() {
		s.answered.Record(s.srv.cfg.Meter, connection.Mono(), s.port)
	}
}

// count notes that the request at hand, which came at that time, has its reply.
func (s *session) count(came int64) {
	s.srv.counts.Requests.Add(1)
	s.waiting++
	s.answered.Add(s.row, came, 1, s.failed)
}

// hold holds back the replies behind start until what they show is durable.
func (s *session) hold(out []byte, start int) []byte {
	return s.held.Hold(s.port, s.srv.cfg.Gate, out, start, s.seen)
}

func (s *session) feed(in, out []byte, now connection.Instant) (used int, _ []byte, v connection.Verdict) {
	start := len(out)
	for lines := 0; ; lines++ {
		if lines == turnLines || used >= turnBytes || len(out)-start > connection.DefaultUnsentBytes || s.waiting >= maxUnanswered {
			return used, out, connection.Yield
		}
		line, n, st, scanned := ndjson.Split(in[used:], s.scanned, s.maxLine())
		s.scanned = scanned
		switch st {
		case ndjson.More:
			return used, out, connection.More
		case ndjson.TooLong:
			s.req, s.requestID = request{}, s.requestID[:0]
			s.answered.Add(method.AsideInvalid.Number(), now.Mono, 1, 1)
			return used + n, s.refuse(out, &method.Fault{Condition: method.Invalid, Message: "the line is too long"}), connection.Close
		}
		if len(line) == 0 {
			used += n
			continue
		}
		came := now.Mono
		if s.verified != nil {
			came = s.came // the line that is read again
		}
		s.row, s.failed = method.AsideInvalid.Number(), 0
		out = s.serve(line, out, now)
		if s.awaits != aToken {
			used += n
		}
		if s.awaits != nothing {
			s.came = came
			return used, out, connection.Blocked
		}
		if s.count(came); s.closing {
			return used, out, connection.Close
		}
	}
}

func (s *session) maxLine() int {
	if s.known == nil {
		return MaxGuestLine
	}
	return maxLine
}

// serve answers a line, or sends it away.
func (s *session) serve(line, out []byte, now connection.Instant) []byte {
	s.requestID, line = s.requestID[:0], jsonx.TrimBOM(line)
	row := s.req.pick(line, s.srv.cfg.Lookup, &s.strict, &s.picked)
	if row != nil && s.known != nil && s.phase != connection.Draining && s.authorized(now) {
		s.undecoded = 0
		s.caller = method.Caller{Picked: &s.picked, Now: now.Wall}
		return s.call(out, line, row, s.req.params(), &s.caller)
	}
	f, decoded := s.req.parse(line, &s.strict)
	if decoded {
		s.undecoded = 0
	} else if s.undecoded++; s.undecoded >= maxUndecoded {
		s.closing = true
	}
	caller := &s.caller
	*caller = method.Caller{}
	if id, given := s.req.requestID(); given {
		s.requestID = append(s.requestID, id...)
		caller.FromClient, caller.BadRequestID = id != nil, id == nil
	}
	caller.RequestID = s.requestID
	name := s.req.members[atMethod].Text()
	switch {
	case s.known == nil && (f != nil || string(name) != "auth"):
		s.closing = true
		return s.unauthorized(out, &method.Fault{Condition: method.Unauthorized, Message: "the first line has to be an auth line", Details: method.BadToken("missing").Details})
	case f != nil:
		return s.refuse(out, f)
	case string(name) == "auth":
		s.row = method.AsideAuth.Number()
		return s.auth(out, line)
	case !s.authorized(now):
		return s.reject(out, caller, authOperation, s.void)
	case s.phase == connection.Draining:
		return s.refuse(out, &method.Fault{Condition: method.Unavailable, Message: "the server is stopping"})
	case string(name) == "ping":
		s.row = method.AsidePing.Number()
		return append(appendHead(out, &s.req, "true"), ",\"result\":{}}\n"...)
	}
	caller.Claims = s.claims
	row = s.srv.cfg.Lookup(name)
	params := s.req.params()
	switch {
	case string(name) == "subscribe":
		s.row = method.AsideStream.Number()
		return s.subscribe(out, orNone(params))
	case string(name) == "unsubscribe":
		s.row = method.AsideStream.Number()
		return s.unsubscribe(out, orNone(params))
	case row == nil:
		return s.refuse(out, &method.Fault{Condition: method.NotFound, Message: "there is no such method"})
	}
	caller.Now = now.Wall
	return s.call(out, line, row, params, caller)
}

// orNone returns the params of a request that may leave them out.
func orNone(params []byte) []byte {
	if params == nil {
		return []byte("{}")
	}
	return params
}

// call runs a method, on the loop if it need not wait.
func (s *session) call(out, line []byte, row *method.Row, params []byte, caller *method.Caller) []byte {
	s.row = row.Number()
	caller.Claims, caller.NoWait, caller.Checked, caller.Seen = s.claims, true, true, s.seen
	start := len(out)
	out = append(appendHead(out, &s.req, "true"), `,"result":`...)
	out, o := s.srv.cfg.Dispatcher.Call(out, caller, row, orNone(params))
	switch {
	case o.Waits:
		s.send(&away{line: append([]byte(nil), line...), caller: *caller, row: row})
		return out[:start]
	case o.Wait != nil:
		return s.wait(out[:start], line, row, caller, o.Wait)
	}
	return s.finish(out, start, &o, caller, row)
}

// finish ends the reply that begins at start.
func (s *session) finish(out []byte, start int, o *method.Outcome, caller *method.Caller, row *method.Row) []byte {
	if s.seen = max(s.seen, o.Index); o.Fault == nil {
		return append(out, "}\n"...)
	}
	return s.reject(out[:start], caller, "mcp."+row.Name, o.Fault)
}

// reject is refuse with a note for the audit, if authority is what is missing.
func (s *session) reject(out []byte, caller *method.Caller, operation string, f *method.Fault) []byte {
	if status := f.Condition.Codes().Status; status == 401 || status == 403 {
		s.nameRequest()
		caller.RequestID = s.requestID
		s.srv.cfg.Dispatcher.Refused(caller, operation, f)
	}
	return s.refuse(out, f)
}

// refuse answers the request at hand with a fault.
func (s *session) refuse(out []byte, f *method.Fault) []byte {
	s.srv.counts.Faults.Add(1)
	s.failed = 1
	s.nameRequest()
	return appendFault(out, &s.req, f, s.requestID)
}

// nameRequest makes an identifier for the request at hand, unless it has one.
func (s *session) nameRequest() {
	if len(s.requestID) == 0 {
		s.requestID = s.srv.cfg.NewRequestID(s.requestID)
	}
}

// keep has the request of a call, and its caller, be parts of the copy of its line.
func (s *session) keep(a *away) {
	a.req.parse(a.line, &s.strict)
	a.caller.RequestID = append([]byte(nil), s.requestID...)
	a.caller.Picked, a.caller.Now = nil, 0
}

// send has a call run off the loop.
func (s *session) send(a *away) {
	s.awaits = aCall
	s.keep(a)
	a.caller.NoWait = false
	srv := s.srv
	srv.run(func() {
		if a.row == nil {
			a.generation = srv.cfg.Verifier.Generation()
			a.claims, a.err = srv.cfg.Verifier.Verify(a.bearer)
			return
		}
		a.outcome.Fault = &method.Fault{Condition: method.Defect, Message: "the request could not be served"}
		a.out = append(appendHead(nil, &a.req, "true"), `,"result":`...)
		a.out, a.outcome = srv.cfg.Dispatcher.Call(a.out, &a.caller, a.row, orNone(a.req.params()))
	}, func() {
		s.back.Store(a)
		s.port.Wake()
	})
}

// Pump implements connection.Session.
func (s *session) Pump(out []byte, room int, now connection.Instant) (outAfter []byte, more bool) {
	out = s.release(out)
	if a := s.back.Swap(nil); a != nil {
		out = s.returned(out, a)
	}
	out = s.waited(out, now)
	return s.stream(out, room, now)
}

// returned answers a call that was made off the loop.
func (s *session) returned(out []byte, a *away) []byte {
	s.awaits = nothing
	if a.row == nil {
		s.verified = a
		return out
	}
	s.req, s.requestID = a.req, a.caller.RequestID
	start := len(out)
	s.row, s.failed = a.row.Number(), 0
	out = s.finish(append(out, a.out...), start, &a.outcome, &a.caller, a.row)
	if a.outcome.Wait != nil { // there was a message, which another call has taken away
		a.caller.NoWait = true
		if out = s.wait(out[:start], a.line, a.row, &a.caller, a.outcome.Wait); s.awaits != nothing {
			return out
		}
	}
	s.count(s.came)
	out = s.hold(out, start)
	s.left()
	return out
}

// EOF implements connection.Session: what was taken is answered.
func (s *session) EOF(connection.Instant) {
	s.phase = connection.Ended
	s.endAll(nil, nil)
	s.port.Wake()
}

// Drain implements connection.Session.
func (s *session) Drain(connection.Instant) {
	s.phase = max(s.phase, connection.Draining)
	s.port.Wake()
}

// Load implements connection.Session.
func (s *session) Load() connection.Load {
	busy, streams := s.awaits != nothing || s.held.Len() > 0, len(s.subs) > 0
	return connection.Load{Busy: busy || streams, Streams: streams, Done: s.phase != connection.Open && !busy && !streams, Until: s.until}
}

// Report implements connection.Reporter.
func (s *session) Report() (inFlight, streams int64) {
	inFlight = s.answered.Len()
	if s.awaits != nothing {
		inFlight++
	}
	return inFlight, int64(len(s.subs))
}

// Closed implements connection.Session. A call that runs goes on.
func (s *session) Closed() {
	s.closeStreams()
	s.answered.Record(s.srv.cfg.Meter, connection.Mono(), s.port)
	s.srv.counts.Sessions.Add(-1)
}
