package ipc

import (
	"sync/atomic"

	"trunkline/codec/wire"
	"trunkline/engine/bus"
	"trunkline/engine/connection"
	"trunkline/engine/kernel"
	"trunkline/engine/obs"
	"trunkline/engine/orchestration"
)

// callCounters count the answers of one method by code.
type callCounters [wire.NumCodes]atomic.Int64

// tally gathers the counts of a turn by method and code: requests of one method cost one shared
// addition, whatever comes between them.
type tally struct {
	counts []int32  // by row*wire.NumCodes + code
	met    []uint16 // where counts is not zero
}

func newTally() tally { return tally{counts: make([]int32, (len(methods)+1)*wire.NumCodes)} }

// add counts one answer. It allocates only while met grows.
func (c *tally) add(row int, code wire.Code) {
	i := row*wire.NumCodes + int(code)
	if c.counts[i]++; c.counts[i] == 1 {
		c.met = append(c.met, uint16(i))
	}
}

// countSilent counts a request that has no reply of its own in this turn.
func (t *turn) countSilent() {
	if t.silent = false; !t.later {
		t.tally.add(t.row, wire.OK)
		return
	}
	t.later = false
	t.svc.calls[t.row][wire.OK].Add(1)
	if t.s.awaited == nil {
		t.s.awaited = map[asked]int64{}
	}
	t.s.awaited[t.asked()]++
}

// count adds the turn's tally to the counters, and takes the time of its requests: now, unless
// their answers wait for the journal.
func (t *turn) count(s *session) {
	c, now := &t.tally, int64(0)
	held := s.deferred.Len() > 0
	if !held && len(c.met) > 0 {
		now = connection.Mono()
	}
	for _, i := range c.met {
		row, code, n := int(i)/wire.NumCodes, wire.Code(int(i)%wire.NumCodes), int64(c.counts[i])
		c.counts[i] = 0
		t.svc.calls[row][code].Add(n)
		if held {
			s.answered.Add(row, t.came, n, failures(code, n))
		} else {
			t.svc.meter.Record(row, now-t.came, n, failures(code, n), s.port)
		}
	}
	c.met = c.met[:0]
}

// failures returns how many of n answers with a code are errors.
func failures(code wire.Code, n int64) int64 {
	if code == wire.OK {
		return 0
	}
	return n
}

// asked is a request whose answer comes by the mailbox, or with the end of a stream.
type asked struct {
	row  int
	came int64
}

// asked returns the request at hand.
func (t *turn) asked() asked { return asked{row: t.row, came: t.came} }

// answerLater is noReply for a request whose time is taken when its answer leaves.
func (t *turn) answerLater() wire.Code {
	t.later = true
	return t.noReply()
}

// answer notes that the answer of a is appended; failed: it is an error.
func (s *session) answer(a asked, failed bool) {
	if left := s.awaited[a] - 1; left > 0 {
		s.awaited[a] = left
	} else {
		delete(s.awaited, a)
	}
	n := int64(0)
	if failed {
		n = 1
	}
	s.answered.Add(a.row, a.came, 1, n)
}

// left takes the time of the answers that have left, unless the journal holds them.
func (s *session) left() {
	if s.deferred.Len() == 0 && !s.answered.Empty() {
		s.answered.Record(s.svc.meter, connection.Mono(), s.port)
	}
}

// meterNames are the names of the methods, by their rows, and one for what reached no method.
func meterNames() []string {
	names := make([]string, 0, len(methods)+1)
	for i := range methods {
		names = append(names, methods[i].service+"."+methods[i].name)
	}
	return append(names, obs.InvalidMethod)
}

// CallCount is how often a method was answered with a code. Service and Method are empty for frames
// that reached no method.
type CallCount struct {
	Service, Method string
	Code            wire.Code
	Count           int64
}

// Stats is a reading of an endpoint's counters.
type Stats struct {
	Calls  []CallCount // those that are not zero, in the order of the method table
	Counts kernel.Counts
	Bus    bus.Stats
	Orch   orchestration.Stats
	// IdempotencyKeys are those of requests that changed something, IdempotencyBytes the bytes of
	// their answers.
	IdempotencyKeys, IdempotencyBytes int64
}

// Stats reads the counters. It takes the locks of the tables it counts, one at a time.
func (s *Service) Stats() Stats {
	st := Stats{Orch: s.orch.Stats(), IdempotencyKeys: int64(s.requests.Len()), IdempotencyBytes: s.requests.Bytes()}
	st.Counts, st.Bus = s.counts(s.now(connection.Now()))
	for row := range s.calls {
		var c CallCount
		if row < len(methods) {
			c.Service, c.Method = methods[row].service, methods[row].name
		}
		for code := range s.calls[row] {
			c.Code, c.Count = wire.Code(code), s.calls[row][code].Load()
			if c.Count > 0 {
				st.Calls = append(st.Calls, c)
			}
		}
	}
	return st
}
