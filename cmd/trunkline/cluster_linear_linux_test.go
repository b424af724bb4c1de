package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"trunkline/fuzz/rounds"
	"trunkline/handlers/ipc/client"
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
	began time.Time
	mu    sync.Mutex
	ops   map[string][]porcupine.Operation
}

// newCounterHistory makes the processes.
func newCounterHistory(r *clusterRig, pids []string) *counterHistory {
	r.t.Helper()
	first := &clusterClient{node: r.nodes[0]}
	defer first.close()
	for _, pid := range pids {
		first.surely("a process", func(ctx context.Context, conn *client.Conn) error {
			_, err := conn.CreateProcess(ctx, client.CreateProcess{PID: pid, UserID: pid})
			return err
		})
	}
	return &counterHistory{began: time.Now(), ops: make(map[string][]porcupine.Operation)}
}

// call makes an operation, and notes it.
func (h *counterHistory) call(c *clusterClient, worker int, in counterCall) bool {
	op := porcupine.Operation{ClientId: worker, Input: in, Call: int64(time.Since(h.began))}
	var after int64
	sent, err := c.do(func(ctx context.Context, conn *client.Conn) error {
		if in.add {
			u, err := conn.RecordUsage(ctx, client.RecordUsage{PID: in.pid, LLMCalls: 1})
			after = u.LLMCalls
			return err
		}
		p, err := conn.GetProcess(ctx, in.pid)
		after = p.Usage.LLMCalls
		return err
	})
	switch {
	case err == nil:
		op.Output, op.Return = after, int64(time.Since(h.began))
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

// TestClusterLinearizable: while one owner is killed and another one is stopped for longer than its
// lease, the clients of all nodes see counters as if there were one server.
func TestClusterLinearizable(t *testing.T) {
	r := newClusterRig(t)
	pids := []string{"a", "b", "c", "d"}
	h := newCounterHistory(r, pids)
	turns := make([]int, 2*len(r.nodes))
	load := newClusterLoad(r, 2, func(c *clusterClient, w int) int {
		turns[w]++
		in := counterCall{pid: pids[(turns[w]/2+w)%len(pids)], add: turns[w]%2 == 0}
		if h.call(c, w, in) {
			return 1
		}
		return 0
	})
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
	h.check(t)
}

// check checks that there is an order of the operations of each process that explains them.
func (h *counterHistory) check(t *testing.T) {
	t.Helper()
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
			t.Errorf("no order explains the %s: %v", at, ops)
		case porcupine.Unknown:
			t.Logf("not decided: %s", at)
		default:
			t.Log(at)
		}
	}
}
