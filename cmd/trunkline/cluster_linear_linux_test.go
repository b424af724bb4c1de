package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"trunkline/codec/wire"
	"trunkline/fuzz/rounds"
	"trunkline/handlers/ipc/ipcclient"
)

// counterCall is an operation on the counter of a process: it adds one, or reads.
type counterCall struct {
	pid string
	add bool
}

// counterModel is a counter from 0 on. What an operation gives is the counter after it, nil where
// that is not known.
var counterModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		n := state.(int64)
		if input.(counterCall).add {
			n++
		}
		return output == nil || output == n, n
	},
}

// counterHistory is the operations of all clients by process.
type counterHistory struct {
	rig   *clusterRig
	pids  []string
	began time.Time
	mu    sync.Mutex
	ops   map[string][]porcupine.Operation
}

// newCounterHistory makes processes, whose counters are 0.
func newCounterHistory(r *clusterRig, pids ...string) *counterHistory {
	r.t.Helper()
	h := &counterHistory{rig: r, pids: pids, began: time.Now(), ops: make(map[string][]porcupine.Operation)}
	book := &usageBook{procs: make(map[string]*usageRow)}
	for i, pid := range pids {
		c := &clusterClient{node: r.nodes[i%len(r.nodes)]}
		r.until("a process", func() bool { return book.create(c, pid) })
		c.close()
	}
	return h
}

// load has clients add to the counters and read them, perNode at each node.
func (h *counterHistory) load(perNode int) *clusterLoad {
	turns := make([]int, perNode*len(h.rig.nodes))
	return newClusterLoad(h.rig, perNode, func(c *clusterClient, w int) int {
		turns[w]++
		if h.call(c, w, counterCall{pid: h.pids[(turns[w]/2+w)%len(h.pids)], add: turns[w]%2 == 0}) {
			return 1
		}
		return 0
	})
}

// call makes an operation, and notes it.
func (h *counterHistory) call(c *clusterClient, worker int, in counterCall) bool {
	op := porcupine.Operation{ClientId: worker, Input: in, Call: int64(time.Since(h.began))}
	var after int64
	sent, err := c.do(func(ctx context.Context, conn *ipcclient.Conn) error {
		if in.add {
			u, err := conn.RecordUsage(ctx, ipcclient.RecordUsage{PID: in.pid, LLMCalls: 1})
			after = u.LLMCalls
			return err
		}
		p, err := conn.GetProcess(ctx, in.pid)
		after = p.Usage.LLMCalls
		return err
	})
	var said *ipcclient.Error
	switch {
	case err == nil:
		op.Output, op.Return = after, int64(time.Since(h.began))
	case errors.As(err, &said):
		if said.Code != wire.ResourceExhausted && said.Code != wire.Unavailable {
			h.rig.t.Errorf("%s at node %s: %v", in.pid, c.node.id, err)
		}
		return false // a request that is refused has no effect
	case sent && in.add:
		op.Return = math.MaxInt64 // it may take effect at any time from now on
	default:
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops[in.pid] = append(h.ops[in.pid], op)
	return err == nil
}

// lastReader is the first number of those who read at last: no client of a load has it.
const lastReader = 1000

// last reads all counters at all nodes, where no client is at work, and returns them.
func (h *counterHistory) last() map[string]int64 {
	h.rig.t.Helper()
	all := make(map[string]int64)
	for i, n := range h.rig.nodes {
		c := &clusterClient{node: n}
		for _, pid := range h.pids {
			h.rig.until("a counter at node "+n.id, func() bool { return h.call(c, lastReader+i, counterCall{pid: pid}) })
			all[pid] = h.ops[pid][len(h.ops[pid])-1].Output.(int64)
		}
		c.close()
	}
	return all
}

// check fails the test where no order of the operations explains what clients have seen.
func (h *counterHistory) check() {
	h.rig.t.Helper()
	for pid, ops := range h.ops {
		unknown := 0
		for _, op := range ops {
			if op.Output == nil {
				unknown++
			}
		}
		at := fmt.Sprintf("%d operations of %s, %d of them with an unknown outcome", len(ops), pid, unknown)
		switch porcupine.CheckOperationsTimeout(counterModel, ops, time.Minute) {
		case porcupine.Illegal:
			h.rig.t.Errorf("no order explains the %s: %v", at, ops)
		case porcupine.Unknown:
			h.rig.t.Logf("not decided: %s", at)
		}
	}
}

// TestClusterLinearizable: while one owner is killed and another one is stopped for longer than its
// lease, the clients of all nodes see counters as if there were one server.
func TestClusterLinearizable(t *testing.T) {
	besideOthers(t)
	r := newClusterRig(t)
	h := newCounterHistory(r, "a", "b", "c", "d")
	load := h.load(2)
	defer load.end()
	for range rounds.Few(1, 1) {
		load.more(100)
		killed := r.owner(r.nodes...)
		killed.kill()
		load.more(60)
		killed.start()
		r.ready(r.nodes...)

		paused := r.owner(r.nodes...)
		paused.pause()
		r.owner(r.but(paused)...)
		load.more(30)
		paused.signal(syscall.SIGCONT)
		r.until("the node that was stopped is a standby", func() bool { return paused.role() == "standby" })
		load.more(60)
	}
	load.end()
	t.Logf("the counters: %v", h.last())
	h.check()
}
