package exacta

import (
	"sync/atomic"
	"time"

	"trunkline/engine/obs"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
)

// Stats is one reading of a server's counters.
type Stats struct {
	Sessions [Viewer + 1]int64 // open ones, by carrier
	Requests []RequestCount
	Repeats  uint64         // answered with what another request of the same id got
	Planner  []RequestCount // what an external planner was asked, its cache included, by Code
	Projects map[projects.State]int
	*projects.Counts
}

// RequestCount is how many messages were answered in one way. Both names are empty where they do
// not apply: Command for what cannot be read, Code for what went well.
type RequestCount struct {
	Command, Code string
	Count         uint64
}

// counters are those of a server.
type counters struct {
	core     projects.Counts
	sessions [Viewer + 1]atomic.Int64
	answers  [][]atomic.Uint64 // by command and errcode.Index
	repeats  atomic.Uint64
	planner  []atomic.Uint64 // by errcode.Index
	refused  int             // the errcode.Index of ST-001
}

func newCounters() *counters {
	c := &counters{answers: make([][]atomic.Uint64, codec.Commands), planner: make([]atomic.Uint64, len(errcode.Codes())), refused: errcode.Index("ST-001")}
	for i := range c.answers {
		c.answers[i] = make([]atomic.Uint64, len(errcode.Codes()))
	}
	return c
}

// answer counts an answer. It does not allocate.
func (c *counters) answer(command codec.Command, code string) {
	c.answers[command][errcode.Index(code)].Add(1)
}

// asked counts what came of a question to an external planner.
func (c *counters) asked(f *errcode.Fault) {
	code := ""
	if f != nil {
		code = f.Code
	}
	c.planner[errcode.Index(code)].Add(1)
}

// refuse counts an answer with ST-001.
func (c *counters) refuse(command codec.Command) { c.answers[command][c.refused].Add(1) }

// Stats reads the counters.
func (s *Server) Stats() Stats {
	st := Stats{Repeats: s.counts.repeats.Load(), Projects: make(map[projects.State]int), Counts: &s.counts.core}
	for i := range st.Sessions {
		st.Sessions[i] = s.counts.sessions[i].Load()
	}
	codes := errcode.Codes()
	for command, row := range s.counts.answers {
		name := ""
		if command > int(codec.NoCommand) {
			name = codec.Command(command).String()
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
	names := make([]string, codec.Commands)
	names[codec.NoCommand] = obs.InvalidMethod
	for c := codec.NoCommand + 1; c < codec.Commands; c++ {
		names[c] = c.String()
	}
	return names
}

// end has the askers of a request answered.
func (s *Server) end(r *projects.Request, a *projects.Answer, store bool) {
	code := codec.CodeOf(a.Line)
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
