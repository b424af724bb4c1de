package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/cluster/placement"
	"trunkline/handlers/ipc/ipcclient"
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
		c.surely("a process", func(ctx context.Context, conn *ipcclient.Conn) error {
			_, err := conn.CreateProcess(ctx, ipcclient.CreateProcess{PID: pid, UserID: pid})
			return err
		})
		counts := &steadyClient{partition: p}
		clients = append(clients, counts)
		wg.Go(func() {
			defer c.close()
			for ctx.Err() == nil {
				_, err := c.do(func(ctx context.Context, conn *ipcclient.Conn) error {
					_, err := conn.RecordUsage(ctx, ipcclient.RecordUsage{PID: pid, LLMCalls: 1})
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

// mutualTLS returns the settings of nodes that ask clients for certificates, and the form of a
// client that has one and of one that has none.
func mutualTLS(t *testing.T) (set []string, known, stranger *tls.Config) {
	t.Helper()
	cert, key := filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	writeIdentity(t, cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	stranger = &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: x509.NewCertPool()}
	stranger.RootCAs.AddCert(pair.Leaf)
	known = stranger.Clone()
	known.Certificates = []tls.Certificate{pair}
	return []string{"kernel.tls_cert_file=" + cert, "kernel.tls_key_file=" + key, "kernel.tls_client_ca_file=" + cert}, known, stranger
}

// TestClusterPartitions: three partitions spread over three nodes, whose clients come over TLS with
// certificates. The owner of one dies, and the others go on; then partitions move in order, and
// away from a disk without room. The clients see counters as if there were one server.
func TestClusterPartitions(t *testing.T) {
	besideOthers(t)
	const partitions = 3
	startsCluster(t)
	set, known, stranger := mutualTLS(t)
	dirs, disk := []string{t.TempDir(), t.TempDir(), t.TempDir()}, newSmallDisk(t)
	if disk != nil {
		dirs[0] = disk.dir
	}
	nextDir := func() (dir string) {
		dir, dirs = dirs[0], dirs[1:]
		return dir
	}
	r := newClusterRigIn(t, nextDir, append(set, fmt.Sprint("cluster.partitions=", partitions), takesOrders(t))...)
	r.dial = []ipcclient.Option{ipcclient.WithTLS(known)}
	for name, opts := range map[string][]ipcclient.Option{"without a certificate": {ipcclient.WithTLS(stranger)}, "without TLS": nil} {
		conn, err := ipcclient.Dial(t.Context(), r.nodes[0].kernel, opts...)
		if err == nil {
			_, err = conn.Ping(t.Context(), nil)
			conn.Close()
		}
		if err == nil {
			t.Errorf("a client %s is served", name)
		}
	}
	if code, out := r.nodes[2].operate("cluster", "status"); code != 0 ||
		!strings.Contains(out, fmt.Sprint("PARTITION ", partitions-1)) {
		t.Errorf("the status is %d: %s", code, out)
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
	if n := r.nodes[0]; disk != nil {
		disk.leave(lowRoom)
		r.spread(partitions, map[string]int{n.id: 0})
		load.more(60)
		r.until("nothing moves to a disk without room", func() bool {
			code, talk := r.nodes[1].order("move", "0", n.id)
			return code == cli.CodeConflict && strings.Contains(talk, "no room on its disk")
		})
		disk.leave(muchRoom)
		r.until("the node with room owns a partition again", func() bool { // once it has looked
			n.surelyOrder("rebalance")
			return n.ownerOf(0) == n.id || n.ownerOf(1) == n.id || n.ownerOf(2) == n.id
		})
		r.spread(partitions, even)
		load.more(60)
	}
	load.end()
	h.check()
	to.refused(3, "partition 3", "move", "3", to.id)
	for p := range partitions {
		owner := r.byID(r.nodes[0].ownerOf(p))
		if text := owner.out.String(); !regexp.MustCompile(fmt.Sprint(`recovered\b.*\bpartition\W+`, p, `\b`)).MatchString(text) {
			t.Errorf("the log of the owner does not name partition %d:\n%s", p, text)
		}
	}
}
