package main

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
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
	longestVerdict // in milliseconds
	historiesUnknown
	violations
	endedBy // the first of as many as there are endings
	counts  = endedBy + count(endingCount)
)

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

// summary writes all of it for people.
func (t *tally) summary(w io.Writer) {
	n := func(c count) int64 { return t[c].Load() }
	fmt.Fprintf(w, "rounds      %d: always %d, interval %d; in %d of them snapshots were frequent; memory %d\n",
		n(roundsAlways)+n(roundsInterval), n(roundsAlways), n(roundsInterval), n(roundsFrequent), n(roundsMemory))
	var how []string
	for e := range endingCount {
		how = append(how, fmt.Sprintf("%s %d", endingNames[e], n(endedBy+count(e))))
	}
	fmt.Fprintf(w, "ended by    %s\n", strings.Join(how, ", "))
	fmt.Fprintf(w, "restarts    %d; %d snapshots were written\n", n(restarts), n(snapshots))
	fmt.Fprintf(w, "operations  %d; %d changes confirmed, %d requests without a reply\n", n(sent), n(confirmed), n(unanswered))
	fmt.Fprintf(w, "retries     %d of requests without a reply, %d of answered ones\n", n(retriedUnread), n(retriedKnown))
	fmt.Fprintf(w, "histories   %d of %d operations, %d of these pending; longest search %d ms; unknown %d, violations %d\n",
		n(historiesEvaluated), n(historyOps), n(historyPending), n(longestVerdict), n(historiesUnknown), n(violations))
}
