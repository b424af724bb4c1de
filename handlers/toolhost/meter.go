package toolhost

import (
	"trunkline/engine/link"
	"trunkline/engine/obs"
)

// The rows of Server.steps.
const (
	stepQueueWait = iota
	stepToolRun
)

// meters makes those of the requests, by Entry.index, operation.row and one row for what is none,
// and those of what is done for them.
func (s *Server) meters(rec *obs.Recorder) {
	tools := s.cfg.Registry.sorted
	names := make([]string, len(tools)+len(operations)+1)
	for i, e := range tools {
		names[i] = e.AID
	}
	for name, op := range operations {
		names[len(tools)+op.row] = name
	}
	names[len(names)-1] = obs.InvalidMethod
	s.invalid = len(names) - 1
	s.meter = rec.Meter("toolhost", names)
	s.steps = rec.Meter(obs.StepProtocol, []string{stepQueueWait: "tool_queue_wait", stepToolRun: "tool_run"})
}

// okAt is where a reply shows whether it went well: the first letter of true or false.
const okAt = len(`{"ok":`)

// failed returns how many of one reply are no success.
func failed(reply []byte) int64 {
	if len(reply) > okAt && reply[okAt] == 't' {
		return 0
	}
	return 1
}

// left takes the time of the replies that have left.
func (s *session) left() {
	if !s.answered.Empty() {
		s.answered.Record(s.srv.meter, link.Mono(), s.port)
	}
}

// lose takes the time of a call whose reply has no connection any more.
func (s *session) lose(c *call) { s.srv.meter.Record(c.row, link.Mono()-c.came, 1, 1, s.port) }

// Report implements link.Reporter.
func (s *session) Report() (inFlight, streams int64) {
	if s.blocked {
		inFlight = 1
	}
	return inFlight, 0
}
