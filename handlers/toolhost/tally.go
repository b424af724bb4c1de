package toolhost

import (
	"sync/atomic"
	"time"

	"trunkline/handlers/toolhost/tool"
)

// toolCounts are the counters of one tool (toolhost §4.12).
type toolCounts struct {
	ok, fail atomic.Int64
	took     atomic.Int64 // ns
	inFlight atomic.Int64 // off the loop
	_        [32]byte     // a cache line of its own: loops count different tools at once
}

// count counts a call that was executed.
func (s *Server) count(e *Entry, o *outcome, took time.Duration) {
	n := &s.counts[e.index]
	if o.status == tool.OK {
		n.ok.Add(1)
	} else {
		n.fail.Add(1)
	}
	n.took.Add(int64(took))
}

// tally is what a tool on the loop did in a row of lines. It is added to the tool's counters when another tool follows or the turn ends,
// so that two readings of the clock serve the whole row. Where events contain how long each call took, each is measured.
type tally struct {
	entry    *Entry
	ok, fail int64
	begun    int64 // ns of the monotonic clock
}

// begin records that the tool is about to run.
func (t *tally) begin(e *Entry, s *session) {
	if t.entry == e && !s.observed {
		return
	}
	t.flush(s)
	t.entry, t.begun = e, s.nowMono()
}

// end counts a call whose outcome was judged.
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
	n := &s.srv.counts[t.entry.index]
	n.ok.Add(t.ok)
	n.fail.Add(t.fail)
	n.took.Add(int64(took))
	*t = tally{}
	return took
}
