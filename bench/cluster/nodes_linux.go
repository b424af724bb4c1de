package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

const (
	clusterName = "bench"
	// patience is how long a cluster may take for anything on a machine that is busy.
	patience = 2 * time.Minute
	pollEach = 20 * time.Millisecond
)

const (
	ownerMetric = "trunkline_cluster_owner"
	lagMetric   = "trunkline_cluster_lag_records"
	epochMetric = "trunkline_cluster_epoch"
)

// leadsLine is what the server of a node that has begun to lead the stream of the journal logs.
const leadsLine = "new stream leader for '$G > " + clusterName + "_0'"

// nodes are three nodes of trunkline.
type nodes struct {
	run      *part.Run
	settings []string
	all      []*node
	leader   atomic.Pointer[node] // of the stream of the journal
}

// node is one of them: its directory and its place outlive its processes.
type node struct {
	id     string
	server *load.Server
	more   []string // settings of this node alone
}

// startNodes starts a cluster and waits until it serves.
func startNodes(r *part.Run, lease, election time.Duration) (*nodes, error) {
	c := &nodes{run: r}
	var routes []string
	for i := range 3 {
		at, err := freeAddrs(3) // a process that starts itself again listens there, too
		if err != nil {
			return nil, err
		}
		n := &node{id: fmt.Sprintf("n%d", i+1)}
		n.more = []string{"cluster.node=" + n.id, "cluster.listen_addr=" + at[0], "cluster.peer_addr=" + at[1], "kernel.listen_addr=" + at[2],
			"store.dir=" + filepath.Join(r.Rig.Dir, fmt.Sprintf("%s-%s", n.id, at[0]))}
		c.all, routes = append(c.all, n), append(routes, n.id+"="+at[0])
	}
	c.settings = append(server(r, "always"), "cluster.mode=embedded", "cluster.name="+clusterName,
		"cluster.routes="+strings.Join(routes, ","), ms("cluster.lease_ms", lease), ms("cluster.election_timeout_ms", election), "log.level=debug")
	for _, n := range c.all {
		if err := c.start(n); err != nil {
			return nil, err
		}
	}
	return c, c.ready()
}

func ms(name string, d time.Duration) string {
	return name + "=" + strconv.FormatInt(d.Milliseconds(), 10)
}

// server returns the settings of a server in a mode, with room for the load.
func server(r *part.Run, mode string) []string {
	return []string{"store.mode=" + mode, "kernel.loops=" + strconv.Itoa(r.Loops), "kernel.max_connections=4096", "kernel.max_processes=" + strconv.Itoa(maxProcesses)}
}

// freeAddrs returns addresses that are free, with ports that no system gives to connections: a node
// that starts again finds its own free still.
func freeAddrs(n int) (addrs []string, err error) {
	for try := 0; len(addrs) < n; try++ {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		ln, err := net.Listen("tcp", addr)
		if err == nil {
			defer ln.Close() // so that none is found twice
			addrs = append(addrs, addr)
		} else if try >= 100 {
			return nil, fmt.Errorf("cannot find a free port: %w", err)
		}
	}
	return addrs, nil
}

// start starts the process of a node.
func (c *nodes) start(n *node) (err error) {
	cmd := load.Trunkline(c.run.Binary, append(c.settings, n.more...)...)
	cmd.Name = n.id
	cmd.Line = func(line string) {
		if strings.Contains(line, leadsLine) {
			c.leader.Store(n)
		}
	}
	n.server, err = c.run.Start(cmd)
	return err
}

// ready waits until one node owns the journal and the others have all of it: one that reads it still
// cannot take over.
func (c *nodes) ready() error {
	return await("three nodes that serve", func() bool { return c.owner() != nil && c.warm() })
}

// warm reports whether all nodes follow one owner, without a lag.
func (c *nodes) warm() bool {
	epoch := 0.0
	for _, n := range c.all {
		m, err := n.server.Metrics()
		lag, known := m[lagMetric]
		if err != nil || !known || lag > 0 || m[epochMetric] == 0 || epoch != 0 && m[epochMetric] != epoch {
			return false
		}
		epoch = m[epochMetric]
	}
	return true
}

// owner returns the node that owns the journal, nil where none does, or not one alone.
func (c *nodes) owner() (owner *node) {
	for _, n := range c.all {
		if n.metric(ownerMetric) == 1 {
			if owner != nil {
				return nil
			}
			owner = n
		}
	}
	return owner
}

// metric returns one of a node, 0 where it does not answer.
func (n *node) metric(name string) float64 {
	if !n.server.Alive() {
		return 0
	}
	m, err := n.server.Metrics()
	if err != nil {
		return 0
	}
	return m[name]
}

// servers are the processes of all nodes.
func (c *nodes) servers() (list []*load.Server) {
	for _, n := range c.all {
		list = append(list, n.server)
	}
	return list
}

// await waits for a state.
func await(what string, is func() bool) error {
	for end := time.Now().Add(patience); !is(); time.Sleep(pollEach) {
		if time.Now().After(end) {
			return fmt.Errorf("still not after %v: %s", patience, what)
		}
	}
	return nil
}
