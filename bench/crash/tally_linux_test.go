package crash

import (
	"sync/atomic"

	"trunkline/bench/internal/goal"
)

// count is something that is counted.
type count int

const (
	roundsAlways count = iota
	roundsInterval
	roundsMemory
	roundsFrequent // of the first two, those with frequent snapshots
	restarts
	snapshots
	sent          // requests
	confirmed     // changes
	unanswered    // requests whose reply never came
	retriedUnread // of them, those sent again before anything was read
	retriedKnown  // answered requests that were sent again
	historiesEvaluated
	historyOps
	historyPending
	longestVerdict // in microseconds
	historiesUnknown
	violations
	endedBy // the first of as many as there are endings
	counts  = endedBy + count(endingCount)
)

var countNames = [endedBy + 1]string{roundsAlways: "rounds of always", roundsInterval: "rounds of interval", roundsMemory: "rounds of memory",
	roundsFrequent: "rounds with frequent snapshots", restarts: "restarts", snapshots: "snapshots written", sent: "requests",
	confirmed: "changes confirmed", unanswered: "requests without a reply", retriedUnread: "of them, sent again before anything was read",
	retriedKnown: "answered requests sent again", historiesEvaluated: "histories", historyOps: "operations in them", historyPending: "of them, without a reply",
	longestVerdict: "longest search for an order, µs", historiesUnknown: "histories not decided in time", violations: "histories that no order explains",
	endedBy: "rounds ended by "}

// tally is what was counted; it is safe for concurrent use.
type tally [counts]atomic.Int64

func (t *tally) add(c count, n int64) { t[c].Add(n) }

// most keeps the largest n.
func (t *tally) most(c count, n int64) {
	for old := t[c].Load(); n > old && !t[c].CompareAndSwap(old, n); old = t[c].Load() {
	}
}

// merge adds what other counted.
func (t *tally) merge(other *tally) {
	for c := range t {
		if n := other[c].Load(); count(c) == longestVerdict {
			t.most(longestVerdict, n)
		} else {
			t.add(count(c), n)
		}
	}
}

// table shows all of it.
func (t *tally) table() goal.Grid {
	g := goal.Grid{Head: []string{"what", "count"}}
	for c := range t {
		name := countNames[min(count(c), endedBy)]
		if count(c) >= endedBy {
			name += endingNames[count(c)-endedBy]
		}
		g.Add(name, t[c].Load())
	}
	return g
}
