package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"trunkline/engine/cluster/placement"
	"trunkline/handlers/ipc/client"
	"trunkline/handlers/ops"
)

// keysOf returns keys of a kind of each partition, several of each.
func keysOf(t *testing.T, kind placement.Kind, partitions, each int) (all [][]string) {
	t.Helper()
	keys, err := placement.NewKeyspace(partitions)
	if err != nil {
		t.Fatal(err)
	}
	all = make([][]string, partitions)
	for i, found := 0, 0; found < partitions*each; i++ {
		key := fmt.Sprint("p", i)
		if p := keys.Partition(kind, key); len(all[p]) < each {
			all[p] = append(all[p], key)
			found++
		}
	}
	return all
}

// spread waits until each node owns as many partitions as it is to.
func (r *clusterRig) spread(partitions int, want map[string]int) {
	r.t.Helper()
	owned := make(map[string]int)
	r.until(fmt.Sprintf("the nodes own %v partitions", want), func() bool {
		for _, n := range r.nodes {
			if _, asked := want[n.id]; !asked {
				continue
			}
			clear(owned)
			for p := range partitions {
				owned[n.ownerOf(p)]++
			}
			for id, count := range want {
				if owned[id] != count {
					return false
				}
			}
		}
		return true
	})
}

// steadyClient adds to a counter over one connection, and counts what fails.
type steadyClient struct {
	partition, acked, failed int
	err                      error
}

// steady starts clients of a node, one for each partition, which work until end. Each has made its
// process when steady returns.
func steady(n *clusterNode, pids ...string) (clients []*steadyClient, end func()) {
	ctx, stop := context.WithCancel(n.rig.t.Context())
	var wg sync.WaitGroup
	for p, pid := range pids {
		if pid == "" {
			continue
		}
		c := &clusterClient{node: n}
		c.surely("a process", func(ctx context.Context, conn *client.Conn) error {
			_, err := conn.CreateProcess(ctx, client.CreateProcess{PID: pid, UserID: pid})
			return err
		})
		counts := &steadyClient{partition: p}
		clients = append(clients, counts)
		wg.Go(func() {
			defer c.close()
			for ctx.Err() == nil {
				_, err := c.do(func(ctx context.Context, conn *client.Conn) error {
					_, err := conn.RecordUsage(ctx, client.RecordUsage{PID: pid, LLMCalls: 1})
					return err
				})
				if err == nil {
					counts.acked++
				} else {
					counts.failed, counts.err = counts.failed+1, err
				}
			}
		})
	}
	return clients, func() {
		stop()
		wg.Wait()
	}
}

// owners returns the owner of each partition with its fence, which rises with each change.
func (r *clusterRig) owners(partitions int, among ...*clusterNode) []string {
	r.t.Helper()
	owners := make([]string, partitions)
	for _, n := range among {
		var c ops.Cluster
		n.get("/cluster", &c)
		for _, p := range c.Partitions {
			if p.Role == "owner" {
				owners[p.Partition] = fmt.Sprintf("%s with fence %d", n.id, p.Fence)
			}
		}
	}
	return owners
}

// TestClusterPartitions: three partitions spread over three nodes. The owner of one dies, and the
// others go on; then partitions move in order. The clients see counters as if there were one
// server.
func TestClusterPartitions(t *testing.T) {
	const partitions = 3
	r := newOrderedRig(t, fmt.Sprint("cluster.partitions=", partitions))
	out, err := program("cluster", "status", "--admin", r.nodes[2].admin).Output()
	if err != nil || !strings.Contains(string(out), fmt.Sprint("PARTITION ", partitions-1)) {
		t.Errorf("the status is %v: %s", err, out)
	}
	even := map[string]int{"n1": 1, "n2": 1, "n3": 1}
	t.Logf("at first: %v", r.owners(partitions, r.nodes...)) // by rank, if no node is late
	r.nodes[0].surelyOrder("rebalance")
	r.spread(partitions, even)
	pids := keysOf(t, placement.Process, partitions, 2)
	h := newCounterHistory(r, pids[0][0], pids[1][0], pids[2][0])
	load := h.load(2)
	defer load.end()
	load.more(60)

	dies := r.byID(r.nodes[0].ownerOf(0))
	left := r.but(dies)
	before := r.owners(partitions, left...)
	clients, end := steady(left[0], "", pids[1][1], pids[2][1])
	dies.kill()
	r.until("another node owns the partition", func() bool {
		owner := left[0].ownerOf(0)
		return owner != "" && owner != dies.id
	})
	load.more(60)
	end()
	after := r.owners(partitions, left...)
	for _, c := range clients {
		t.Logf("partition %d, %s, then %s: %d acknowledged, %d failed", c.partition, before[c.partition], after[c.partition], c.acked, c.failed)
		if before[c.partition] == after[c.partition] && c.failed > 0 {
			t.Errorf("partition %d stays with its owner, and a client fails: %v", c.partition, c.err)
		}
	}
	dies.start()
	r.ready(r.nodes...)
	r.nodes[1].surelyOrder("rebalance")
	r.spread(partitions, even)
	load.more(60)

	to := r.but(r.byID(r.nodes[0].ownerOf(2)))[0]
	r.nodes[0].surelyOrder("move", "2", to.id)
	r.until("the partition has moved", func() bool { return r.nodes[0].ownerOf(2) == to.id })
	load.more(60)
	r.nodes[0].surelyOrder("drain", to.id)
	r.spread(partitions, map[string]int{to.id: 0})
	load.more(60)
	r.nodes[0].surelyOrder("resume", to.id)
	r.nodes[0].surelyOrder("rebalance")
	r.spread(partitions, even)
	load.more(60)
	load.end()
	h.check()
	to.refused(3, "partition 3", "move", "3", to.id)
}
