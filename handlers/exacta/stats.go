package exacta

import (
	"sync/atomic"
	"time"

	"trunkline/engine/exacta"
	"trunkline/engine/exacta/fault"
	"trunkline/engine/exacta/wire"
	"trunkline/engine/obs"
)

// Stats is one reading of a server's counters.
type Stats struct {
	Sessions [Viewer + 1]int64 // open ones, by carrier
	Requests []RequestCount
	Repeats  uint64         // answered with what another request of the same id got
	Planner  []RequestCount // what an external planner was asked, its cache included, by Code
	Projects map[exacta.State]int
	*exacta.Counts
}

// RequestCount is how many messages were answered in one way. Both names are empty where they do
// not apply: Command for what cannot be read, Code for what went well.
type RequestCount struct {
	Command, Code string
	Count         uint64
}

// counters are those of a server.
type counters struct {
	core     exacta.Counts
	sessions [Viewer + 1]atomic.Int64
	answers  [][]atomic.Uint64 // by command and fault.Index
	repeats  atomic.Uint64
	planner  []atomic.Uint64 // by fault.Index
	refused  int             // the fault.Index of ST-001
}

func newCounters() *counters {
	c := &counters{answers: make([][]atomic.Uint64, wire.Commands), planner: make([]atomic.Uint64, len(fault.Codes())), refused: fault.Index("ST-001")}
	for i := range c.answers {
		c.answers[i] = make([]atomic.Uint64, len(fault.Codes()))
	}
	return c
}

// answer counts an answer. It does not allocate.
func (c *counters) answer(command wire.Command, code string) {
	c.answers[command][fault.Index(code)].Add(1)
}

// asked counts what came of a question to an external planner.
func (c *counters) asked(f *fault.Fault) {
	code := ""
	if f != nil {
		code = f.Code
	}
	c.planner[fault.Index(code)].Add(1)
}

// refuse counts an answer with ST-001.
func (c *counters) refuse(command wire.Command) { c.answers[command][c.refused].Add(1) }

// Stats reads the counters.
func (s *Server) Stats() Stats {
	st := Stats{Repeats: s.counts.repeats.Load(), Projects: make(map[exacta.State]int), Counts: &s.counts.core}
	for i := range st.Sessions {
		st.Sessions[i] = s.counts.sessions[i].Load()
	}
	codes := fault.Codes()
	for command, row := range s.counts.answers {
		name := ""
		if command > int(wire.NoCommand) {
			name = wire.Command(command).String()
		}
		for i := range row {
			if n := row[i].Load(); n > 0 {
				st.Requests = append(st.Requests, RequestCount{name, codes[i], n})
			}
		}
	}
	for i := range s.counts.planner {
		if n := s.counts.planner[i].Load(); n > 0 {
			st.Planner = append(st.Planner, RequestCount{"", codes[i], n})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.projects {
		st.Projects[p.journal.Status().State]++
	}
	return st
}

// meterNames are the names of the commands, by their numbers.
func meterNames() []string {
	names := make([]string, wire.Commands)
	names[wire.NoCommand] = obs.InvalidMethod
	for c := wire.NoCommand + 1; c < wire.Commands; c++ {
		names[c] = c.String()
	}
	return names
}

// end has the askers of a request answered.
func (s *Server) end(r *exacta.Request, a *exacta.Answer, store bool) {
	code := wire.CodeOf(a.Line)
	s.counts.answer(r.Command, string(code))
	failed := int64(0)
	if len(code) > 0 {
		failed = 1
	}
	var from obs.Peer
	if c, ok := r.Asker.(*session); ok {
		from = c.port
	}
	took := time.Since(r.Deadline) + time.Duration(r.Timeout)*time.Millisecond
	s.meter.Record(int(r.Command), int64(took), 1, failed, from)
	s.replays.End(r.Key, a, store)
}
