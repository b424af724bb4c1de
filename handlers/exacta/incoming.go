package exacta

import (
	"runtime/debug"

	"trunkline/engine/connection"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
)

// bigLine is from how many bytes on a line is read off the loop, which it would hold up (exacta
// §10).
const bigLine = 64 << 10

// scratch is memory for reading a message. It keeps no part of one.
type scratch struct {
	scanner codec.Scanner
	sums    sums
	seeds   *projects.Seeds
}

func (s *Server) newScratch() *scratch { return &scratch{seeds: &s.replays.Seeds} }

// incoming is one message, and what was found in it. Its bytes are those of the line, or of the
// scratch.
type incoming struct {
	codec.Message
	refusal codec.Refusal
	sum     projects.Sum
	payload payload
	project codec.ID
	args    projects.Args
	parsed  bool // project and args are set
}

// read makes the checks 2 to 12 of exacta §3.6 and fingerprints a request.
func (m *incoming) read(line []byte, sc *scratch) {
	m.refusal = sc.scanner.Scan(line, &m.Message)
	if m.payload.object = m.Payload; m.Usual {
		m.payload.usual = &m.Message
	}
	if m.refusal.Code == "" && m.Type == codec.Request {
		m.sum = sc.sums.of(&m.Message, sc.seeds)
	}
}

// parse reads the fields of a request. payload has the first wrong one.
func (m *incoming) parse() {
	if m.parsed {
		return
	}
	m.parsed = true
	if m.Command != codec.OpenProject {
		m.project = m.payload.id("project_id")
	}
	if m.payload.field == "" {
		m.payload.args(m.Command, &m.args)
	}
}

// sendAway has a line read off the loop. The session takes nothing of its peer until it is back.
func (s *session) sendAway(line []byte) {
	s.expects = endOfLine
	line = append([]byte(nil), line...)
	srv := s.srv
	srv.running.Go(func() {
		srv.readers <- struct{}{}
		defer func() { <-srv.readers }()
		m := srv.readBig(line)
		s.back.Store(m)
		s.port.Wake()
	})
}

// readBig reads a line with memory of its own. A defect is a failure of its message only (exacta
// §8).
func (s *Server) readBig(line []byte) (m *incoming) {
	m = new(incoming)
	defer func() {
		if v := recover(); v != nil {
			s.cfg.Logger.Error("cannot read a message", "panic", v, "stack", string(debug.Stack()))
			m.refusal = codec.Refusal{Code: "ST-002", Detail: "an internal failure"}
		}
	}()
	m.read(line, s.newScratch())
	if m.refusal.Code == "" && m.Type == codec.Request {
		m.parse()
	}
	return m
}

// returned takes a line that was read off the loop, with its end.
func (s *session) returned(in, out []byte) (used int, _ []byte, v connection.Verdict) {
	m := s.back.Swap(nil)
	if m == nil || len(in) == 0 {
		return 0, out, connection.Blocked
	}
	s.expects, s.in = wholeLine, *m
	s.srv.input.Fit(&s.charge, 0)
	return 1, s.take(out), connection.Yield
}
