package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"trunkline/codec/wire"
	"trunkline/fuzz/rounds"
	"trunkline/handlers/ipc/ipcclient"
)

// usageBook is what clients know of the counters of processes.
type usageBook struct {
	mu    sync.Mutex
	procs map[string]*usageRow
}

// newUsageLoad has a client at each node that adds to the counters of a process of its own.
func newUsageLoad(r *clusterRig) (*usageBook, *clusterLoad) {
	book := &usageBook{procs: make(map[string]*usageRow)}
	rows := make([]bool, len(r.nodes))
	return book, newClusterLoad(r, 1, func(c *clusterClient, w int) int {
		pid := "p-" + c.node.id
		if rows[w] = rows[w] || book.create(c, pid); rows[w] && book.add(c, pid) {
			return 1
		}
		return 0
	})
}

// usageRow is one process: whether its creation was acknowledged, and how many additions to its
// counter were, or have an unknown outcome.
type usageRow struct {
	created        bool
	acked, unknown int64
}

// row makes the row of a process.
func (b *usageBook) row(pid string) *usageRow {
	b.mu.Lock()
	defer b.mu.Unlock()
	row := b.procs[pid]
	if row == nil {
		row = new(usageRow)
		b.procs[pid] = row
	}
	return row
}

// create makes a process; an earlier attempt may have succeeded.
func (b *usageBook) create(c *clusterClient, pid string) bool {
	row := b.row(pid)
	_, err := c.do(func(ctx context.Context, conn *ipcclient.Conn) error {
		_, err := conn.CreateProcess(ctx, ipcclient.CreateProcess{PID: pid, UserID: pid})
		return err
	})
	var said *ipcclient.Error
	row.created = row.created || err == nil || errors.As(err, &said) && strings.Contains(said.Message, "already exists")
	return row.created
}

// add adds one to the counter of a process.
func (b *usageBook) add(c *clusterClient, pid string) bool {
	row := b.row(pid)
	var got ipcclient.Usage
	sent, err := c.do(func(ctx context.Context, conn *ipcclient.Conn) (err error) {
		got, err = conn.RecordUsage(ctx, ipcclient.RecordUsage{PID: pid, LLMCalls: 1})
		return err
	})
	var said *ipcclient.Error
	switch {
	case err == nil:
		row.acked++
		if got.LLMCalls < row.acked || got.LLMCalls > row.acked+row.unknown {
			c.node.rig.t.Errorf("%s at node %s: the counter is %d after %d acknowledged and %d unknown", pid, c.node.id, got.LLMCalls, row.acked, row.unknown)
		}
	case errors.As(err, &said) && said.Code == wire.NotFound:
		c.node.rig.t.Errorf("%s at node %s was acknowledged, and is gone", pid, c.node.id)
	case sent:
		row.unknown++
	}
	return err == nil
}

// check compares the book with what a node answers. No client is at work.
func (b *usageBook) check(n *clusterNode) map[string]int64 {
	t := n.rig.t
	t.Helper()
	c := &clusterClient{node: n}
	defer c.close()
	got := make(map[string]int64)
	for pid, row := range b.procs {
		var p ipcclient.Process
		var missing bool
		c.surely("an answer", func(ctx context.Context, conn *ipcclient.Conn) (err error) {
			p, err = conn.GetProcess(ctx, pid)
			var said *ipcclient.Error
			if missing = errors.As(err, &said) && said.Code == wire.NotFound; missing {
				return nil
			}
			return err
		})
		calls := p.Usage.LLMCalls
		switch {
		case missing && row.created:
			t.Errorf("node %s: %s is lost", n.id, pid)
		case !missing && (calls < row.acked || calls > row.acked+row.unknown):
			t.Errorf("node %s: the counter of %s is %d, with %d acknowledged and %d unknown", n.id, pid, calls, row.acked, row.unknown)
		case !missing:
			got[pid] = calls
		}
	}
	return got
}

// checkAll compares the book with every node, and the states of two owners.
func (b *usageBook) checkAll(r *clusterRig) {
	r.t.Helper()
	r.ready(r.nodes...)
	first := b.check(r.nodes[0])
	for _, n := range r.nodes[1:] {
		if got := b.check(n); !maps.Equal(got, first) {
			r.t.Errorf("node %s answers %v, node %s %v", n.id, got, r.nodes[0].id, first)
		}
	}
	r.sameState()
}

// sameState compares the state of the owner with that of the one that takes over. No client is at
// work.
func (r *clusterRig) sameState() {
	r.t.Helper()
	before, owner := r.digest(r.nodes...), r.owner(r.nodes...)
	owner.kill()
	left := r.but(owner)
	r.owner(left...)
	if after := r.digest(left...); !reflect.DeepEqual(before, after) {
		r.t.Errorf("the state of the former owner %s was %v, that of the next is %v", owner.id, before, after)
	}
	owner.start()
	r.ready(owner)
}

// digest returns that of the state of the owner.
func (r *clusterRig) digest(nodes ...*clusterNode) (d [][]string) {
	r.t.Helper()
	c := &clusterClient{node: nodes[0]}
	defer c.close()
	c.surely("a digest", func(ctx context.Context, conn *ipcclient.Conn) error {
		s, err := conn.GetSystemStatus(ctx, true)
		if err == nil {
			d = [][]string{s.Digest.Kernel, s.Digest.Orchestration}
		}
		return err
	})
	return d
}

// killNodes kills the owner, a standby and all nodes, and starts them again. Between these, more
// requests have to be acknowledged.
func (l *clusterLoad) killNodes() {
	r := l.rig
	r.t.Helper()
	for range rounds.Few(1, 1) {
		for _, kill := range []func() []*clusterNode{
			func() []*clusterNode { return []*clusterNode{r.owner(r.nodes...)} },
			func() []*clusterNode { return r.but(r.owner(r.nodes...))[:1] },
			func() []*clusterNode { return slices.Clone(r.nodes) },
		} {
			killed := kill()
			for _, n := range killed {
				n.kill()
			}
			if len(killed) < len(r.nodes) {
				l.more(50)
			}
			for _, n := range killed {
				n.start()
			}
			r.ready(r.nodes...)
			l.more(50)
		}
	}
}

// TestClusterOwnerDies: while clients of all nodes work, nodes are killed and started again. What
// was acknowledged is there, nothing is done twice, and all nodes answer the same.
func TestClusterOwnerDies(t *testing.T) {
	besideOthers(t)
	r := newClusterRig(t)
	book := &usageBook{procs: make(map[string]*usageRow)}
	made := make([]int, 2*len(r.nodes)) // processes of each worker
	load := newClusterLoad(r, 2, func(c *clusterClient, w int) (acked int) {
		pid := fmt.Sprintf("p%d-%d", w, made[w])
		if !book.create(c, pid) {
			return 0
		}
		made[w]++
		acked = 1
		for range 2 {
			if book.add(c, pid) {
				acked++
			}
		}
		return acked
	})
	defer load.end()
	load.more(100)
	load.killNodes()
	load.end()
	book.checkAll(r)
	t.Logf("%d processes, %d acknowledged", len(book.procs), load.acked.Load())
}
