// Package threads runs the methods of agent threads (threads §4) on engine/threadstore. It is the
// method.Dispatcher of all surfaces:
//
//	handlers/threads/method      the table of methods, fields, faults
//	handlers/threads/token       who asks
//	handlers/threads/rest         HTTP
//	handlers/threads/lines       lines of JSON on the event loops
//	handlers/threads             gates G3 to G10 and the answers
package threads

import (
	"cmp"
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"trunkline/engine/threadstore"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// Config is what a Service is made of.
type Config struct {
	Engine *threadstore.Engine
	// Await returns once the journal is durable up to an index.
	Await func(ctx context.Context, index uint64) error
	// Busy reports whether a person is known to use a runtime.
	Busy func(runtime string) bool
	// Resume and Spawn are the commands that wake an agent without a runtime, with placeholders.
	Resume, Spawn []string
	// MaxDefer is how long a delivery is deferred.
	MaxDefer time.Duration
	// Now is the wall clock; nil: time.Now.
	Now    func() time.Time
	Logger *slog.Logger
}

// Service runs methods. It implements method.Dispatcher.
type Service struct {
	cfg      Config
	engine   *threadstore.Engine
	calls    sync.Pool // of *call
	handlers []handler // by the number of their row
}

// handler runs a method whose input passed the gates up to G6. It appends the result.
type handler func(c *call, dst []byte) []byte

// call is one call of a method.
type call struct {
	s      *Service
	caller *method.Caller
	row    *method.Row
	actor  threadstore.Actor
	known  *token.Claims // those that actor has; they are never written
	last   threadstore.Last
	in     method.Input
	digest digester
	now    int64 // milliseconds since 1970
	shown  clock
	out    method.Outcome
}

// New returns a service.
func New(cfg Config) *Service {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	s := &Service{cfg: cfg, engine: cfg.Engine}
	s.calls.New = func() any { return new(call) }
	all := handlers()
	for i := range method.Rows {
		s.handlers = append(s.handlers, all[method.Rows[i].Name])
	}
	return s
}

// handlers returns the functions of the methods.
func handlers() map[string]handler {
	return map[string]handler{
		method.AckRead: (*call).ack, method.Create: (*call).create, method.Get: (*call).get, method.Heartbeat: (*call).heartbeat,
		method.List: (*call).list, method.Members: (*call).members,
		method.Post: (*call).post, method.Read: (*call).read, method.Summarize: (*call).summarize, method.Trigger: (*call).trigger,
		method.UpdateState: (*call).update, method.Schedule: (*call).schedule, method.Schedules: (*call).schedules,
		method.Cancel: (*call).change, method.Unschedule: (*call).change, method.Reschedule: (*call).change,
	}
}

// Call implements method.Dispatcher.
func (s *Service) Call(dst []byte, caller *method.Caller, row *method.Row, doc []byte) (out []byte, o method.Outcome) {
	c := s.calls.Get().(*call)
	start := len(dst)
	defer func() {
		if r := recover(); r != nil { // c is not used again: what it holds is not known
			s.cfg.Logger.Error("a method panicked", "method", row.Name, "panic", r, "stack", string(debug.Stack()))
			out, o = dst[:start], method.Outcome{Fault: &method.Fault{Condition: method.Defect, Message: "the request could not be served"}}
		}
	}()
	c.s, c.caller, c.row, c.out = s, caller, row, method.Outcome{}
	if c.now = caller.Now; c.now == 0 {
		c.now = s.cfg.Now().UnixMilli()
	}
	out, o = c.run(dst, doc), c.out
	o.Index = max(o.Index, s.engine.Confirm())
	if o.Fault != nil || o.Waits || o.Wait != nil {
		out = out[:start]
	}
	c.caller, c.row, c.out = nil, nil, method.Outcome{}
	s.calls.Put(c)
	return out, o
}

// run takes a document through the gates from G3 on (threads §2.1).
func (c *call) run(dst, doc []byte) []byte {
	var f *method.Fault
	if p := c.caller.Picked; p != nil {
		f = c.row.Take(&c.in, p)
	} else {
		f = c.row.Parse(&c.in, doc, c.caller.Checked)
	}
	if f == nil && c.row.Name == method.Trigger && c.caller.BadRequestID {
		f = &method.Fault{Condition: method.Invalid, Message: "x-request-id is not 1 to 200 visible ASCII characters"}
	}
	if f == nil {
		f = c.authorize()
	}
	if f == nil {
		f = c.in.CheckClaims(c.caller.Claims)
	}
	if c.out.Fault = f; f != nil {
		return dst
	}
	c.identify()
	return c.s.handlers[c.row.Number()](c, dst)
}

// authorize applies gate G5. A participant that asks to close a thread lacks authority, whatever
// the thread is (threads §4.6).
func (c *call) authorize() *method.Fault {
	if c.row.Name == method.UpdateState && c.caller.Claims.Role == token.Participant && threadstore.Status(c.in.Status()) == threadstore.Closed {
		return &method.Fault{Condition: method.NoAuthority, Message: "only a coordinator or an operator may close a thread"}
	}
	return c.row.Authorize(c.caller.Claims)
}

// identify makes the claims an actor.
func (c *call) identify() {
	claims := c.caller.Claims
	if c.known == claims {
		c.actor.Seen, c.actor.Request = c.caller.Seen, ""
		return
	}
	c.known = claims
	c.actor = threadstore.Actor{Workspace: claims.Workspace, Agent: claims.Agent, Session: claims.Session, Role: claims.Role.String(), Seen: c.caller.Seen, Last: &c.last}
	switch claims.Role {
	case token.Coordinator, token.Operator:
		c.actor.Rank = threadstore.Coordinator
	case token.Auditor:
		c.actor.Rank = threadstore.Auditor
	}
}

// audited is identify for a method whose audit event names the request.
func (c *call) audited() {
	if len(c.caller.RequestID) == 0 {
		c.caller.RequestID = c.s.engine.AppendRequestID(nil)
	}
	c.actor.Request = string(c.caller.RequestID)
}

// confirmed returns nil once nothing that was read can be older than what another owner of the
// journal has answered.
func (s *Service) confirmed() *method.Fault {
	if err := s.Await(s.engine.Confirm()); err != nil {
		return &method.Fault{Condition: method.Unavailable, Message: "the server does not own the journal any more"}
	}
	return nil
}

// Await implements method.Dispatcher.
func (s *Service) Await(index uint64) error {
	return s.cfg.Await(context.Background(), index)
}

// Refused implements method.Dispatcher.
func (s *Service) Refused(caller *method.Caller, operation string, f *method.Fault) {
	var a *threadstore.Actor
	if c := caller.Claims; c != nil {
		a = &threadstore.Actor{Workspace: c.Workspace, Agent: c.Agent, Session: c.Session, Role: c.Role.String()}
	}
	s.engine.Rejected(a, operation, string(caller.RequestID), f.Condition.Codes().Spec, s.cfg.Now().UnixMilli())
}

// refuse sets the fault of a refusal by the engine. It reports whether there is one.
func (c *call) refuse(r threadstore.Refusal) bool {
	if r.Code == threadstore.OK {
		return false
	}
	c.out.Fault, c.out.Index = c.s.fault(&r), r.Index
	return true
}

// fault returns how a refusal of the engine is answered.
func (s *Service) fault(r *threadstore.Refusal) *method.Fault {
	if r.Code == threadstore.Failed {
		s.cfg.Logger.Error("cannot read a message", "error", r.Err)
	}
	return method.Refused(r)
}
