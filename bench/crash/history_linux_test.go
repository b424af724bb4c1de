package crash

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	// historySpan is how many rounds a history goes over; the last ones of a directory may go over
	// more.
	historySpan = 3
	// historiesAtOnce is how many processes the clients of the histories share.
	historiesAtOnce = 3
	// historyCalls bounds the calls that clients make on one process in a round, so that an order
	// is found in little time.
	historyCalls = 300
	// historyPriority is that of the processes, in the middle of what is on the ready queue.
	historyPriority = "NORMAL"
)

// history is what clients did to one process and its session, and the replies they got.
type history struct {
	pid string
	is  world // as it was read after the last restart

	created atomic.Bool // as far as clients know

	mu    sync.Mutex
	ops   []porcupine.Operation
	began int // of the ops, the first of this round
}

// histories are those that clients work on, and what is left of the earlier ones.
type histories struct {
	g      *game
	rounds int // of the present ones
	born   int
	serial atomic.Int64 // of calls
	open   []*history
	past   []world
}

// since orders the calls and replies of all clients.
func (g *game) since() int64 { return time.Since(g.began).Nanoseconds() }

func newHistories(g *game) *histories {
	h := &histories{g: g}
	h.begin()
	return h
}

// begin begins histories on processes that are not there yet.
func (hs *histories) begin() {
	hs.open, hs.rounds = nil, 0
	for range historiesAtOnce {
		pid := fmt.Sprintf("h-%d", hs.born)
		hs.born++
		hs.open = append(hs.open, &history{pid: pid, is: world{pid: pid}})
	}
}

// of returns the open history of a process, nil if there is none.
func (hs *histories) of(pid string) *history {
	for _, h := range hs.open {
		if h.pid == pid {
			return h
		}
	}
	return nil
}

// full reports whether the history has had its share of this round.
func (h *history) full() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ops)-h.began >= historyCalls
}

func (h *history) record(client int, in call, from int64, out reply, to int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: from, Output: out, Return: to})
}

// stamp ends the calls without a reply: the server is dead by now, and what they did is done.
func (hs *histories) stamp() {
	now := hs.g.since()
	for _, h := range hs.open {
		for i := range h.ops[h.began:] {
			if o := &h.ops[h.began+i]; o.Output.(reply).lost {
				o.Return = now
				hs.g.count.add(historyPending, 1)
			}
		}
	}
}

// evaluate has an order looked for, of the operations of each process by itself.
func (hs *histories) evaluate() {
	var wg sync.WaitGroup
	for _, h := range hs.open {
		wg.Go(func() {
			slices.SortStableFunc(h.ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
			began := time.Now()
			result, fault := verdict(h.pid, h.ops, hs.g.pages())
			hs.g.count.most(longestVerdict, time.Since(began).Microseconds())
			hs.g.count.add(historiesEvaluated, 1)
			hs.g.count.add(historyOps, int64(len(h.ops)))
			switch result {
			case porcupine.Unknown:
				hs.g.count.add(historiesUnknown, 1)
			case porcupine.Illegal:
				hs.g.count.add(violations, 1)
				hs.g.fault("%s", fault)
			}
		})
	}
	wg.Wait()
}
