package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/ops"
)

const (
	// clusterPatience is how long a cluster may take for anything on a machine that is busy.
	clusterPatience = 2 * time.Minute
	// answerPatience is how long a client waits for one answer before it connects again.
	answerPatience = 5 * time.Second
	// clusterTail is how much of the output of a node a failure shows.
	clusterTail = 6 << 10
)

// clusterRig is nodes, each a process.
type clusterRig struct {
	t     *testing.T
	nodes []*clusterNode
	links *netLinks // nil: the nodes reach each other directly
	dial  []ipcclient.Option
	web   http.Client
}

// clusterNode is one of them. Its addresses and its directory outlive its processes.
type clusterNode struct {
	rig                 *clusterRig
	id, dir             string
	kernel, admin, peer string
	listen              string
	settings            []string // key=value
	binary              string   // "": that of the test
	out                 *lines
	cmd                 *exec.Cmd
	pid                 atomic.Int64
	ended               chan struct{}
}

// newClusterRig starts a cluster of three and waits until each node serves. settings are further
// ones of all nodes.
func newClusterRig(t *testing.T, settings ...string) *clusterRig {
	t.Helper()
	return newClusterRigIn(t, t.TempDir, settings...)
}

// newClusterRigIn is newClusterRig whose nodes have the directories that dir returns, one after the
// other.
func newClusterRigIn(t *testing.T, dir func() string, settings ...string) *clusterRig {
	t.Helper()
	r := makeClusterRig(t, 3, dir, settings)
	r.startAll(func(n *clusterNode) (peerAddr string, routes []string) {
		for _, other := range r.nodes {
			routes = append(routes, other.id+"="+other.listen)
		}
		return n.peer, routes
	})
	return r
}

// startLinked starts the nodes of a rig, whose bytes to each other pass links.
func (r *clusterRig) startLinked() {
	r.t.Helper()
	r.links = newLinks(r)
	listens, peers := make(map[*clusterNode]string), make(map[*clusterNode]string)
	for _, n := range r.nodes {
		listens[n], peers[n] = r.links.open(n, n.listen), r.links.open(n, n.peer)
	}
	r.startAll(func(n *clusterNode) (peerAddr string, routes []string) {
		for _, other := range r.nodes {
			at := listens[other]
			if other == n {
				at = n.listen
			}
			routes = append(routes, other.id+"="+at)
		}
		return peers[n], routes
	})
}

// startsCluster skips a test in a short run.
func startsCluster(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a short run starts no cluster: processes elect, die and recover")
	}
}

// clusters has a place for each test of a cluster that runs beside others: most of them wait for
// elections and leases, and more of them than these would keep each other from electing.
var clusters = make(chan struct{}, 3)

// besideOthers lets a test of a cluster run beside a few others. A short run skips it.
func besideOthers(t *testing.T) {
	t.Helper()
	startsCluster(t)
	t.Parallel()
	clusters <- struct{}{}
	t.Cleanup(func() { <-clusters })
}

// longBesideOthers is besideOthers for a test that only the long form runs.
func longBesideOthers(t *testing.T) {
	t.Helper()
	if !rounds.Long() {
		t.Skip("starts one more cluster, in the long form")
	}
	besideOthers(t)
}

// makeClusterRig returns a rig whose nodes have not started, and that ends with the test. They have
// the directories that dir returns.
func makeClusterRig(t *testing.T, nodes int, dir func() string, settings []string) *clusterRig {
	t.Helper()
	startsCluster(t)
	r := &clusterRig{t: t, web: http.Client{Timeout: answerPatience}}
	for i := range nodes {
		n := &clusterNode{rig: r, id: fmt.Sprint("n", i+1), dir: dir(), kernel: kit.Reserve(t), admin: kit.Reserve(t), peer: kit.Reserve(t), listen: kit.Reserve(t), out: newLines()}
		n.settings = append([]string{"cluster.name=demo", "cluster.node=" + n.id, "cluster.peer_addr=" + n.peer, "cluster.lease_ms=1000"}, settings...)
		r.nodes = append(r.nodes, n)
	}
	t.Cleanup(func() {
		for _, n := range r.nodes {
			n.kill()
			if text := n.out.String(); t.Failed() {
				t.Logf("node %s:\n%s", n.id, text[max(0, len(text)-clusterTail):])
			}
		}
		r.web.CloseIdleConnections()
	})
	return r
}

// startAll starts nodes with servers of their own. at returns where the others reach what a node
// takes from them, and the list of routes that it has.
func (r *clusterRig) startAll(at func(n *clusterNode) (peerAddr string, routes []string)) {
	r.t.Helper()
	for _, n := range r.nodes {
		peerAddr, routes := at(n)
		n.settings = append(n.settings, "cluster.mode=embedded", "cluster.listen_addr="+n.listen, "cluster.advertise_addr="+peerAddr,
			"cluster.routes="+strings.Join(routes, ","), "cluster.election_timeout_ms=500")
		n.start()
	}
	r.ready(r.nodes...)
}

// start starts the process of a node, which the system ends with this one.
func (n *clusterNode) start() {
	n.rig.t.Helper()
	n.cmd = program("serve", "--listen", n.kernel, "--http-listen=", "--admin-listen", n.admin, "--log-format=text", "--set", "store.dir="+n.dir)
	for _, kv := range n.settings {
		n.cmd.Args = append(n.cmd.Args, "--set", kv)
	}
	n.cmd.Path = cmp.Or(n.binary, n.cmd.Path)
	n.cmd.Stdout, n.cmd.Stderr = n.out, n.out
	n.ended = startTied(n.rig.t, n.cmd)
	n.pid.Store(int64(n.cmd.Process.Pid))
}

// runs reports whether the process of a node has not ended.
func (n *clusterNode) runs() bool {
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// startTied starts a process that the system ends with this one. What it returns is closed when the
// process has ended.
func startTied(t *testing.T, cmd *exec.Cmd) (ended chan struct{}) {
	t.Helper()
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	return ended
}

// signal sends one to the process of a node.
func (n *clusterNode) signal(s syscall.Signal) {
	n.rig.t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		n.rig.t.Errorf("node %s, %v: %v", n.id, s, err)
	}
}

// kill ends the process of a node with SIGKILL, and waits for its end.
func (n *clusterNode) kill() {
	if n.ended != nil {
		_ = n.cmd.Process.Kill()
		<-n.ended
	}
}

// terminate ends the process of a node in order.
func (n *clusterNode) terminate() {
	n.rig.t.Helper()
	n.signal(syscall.SIGTERM)
	<-n.ended
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		n.rig.t.Errorf("node %s has exit code %d after SIGTERM", n.id, code)
	}
}

// pause stops the process of a node until SIGCONT.
func (n *clusterNode) pause() {
	n.signal(syscall.SIGSTOP)
	n.rig.until("the process is stopped", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.cmd.Process.Pid))
		_, state, _ := strings.Cut(string(text), ") ")
		return err == nil && strings.HasPrefix(state, "T")
	})
}

// get asks the admin endpoint of a node.
func (n *clusterNode) get(path string, into any) int {
	var body bytes.Buffer
	code := n.read(path, &body)
	if into != nil && json.Unmarshal(body.Bytes(), into) != nil {
		return 0
	}
	return code
}

// read is get for a body in any form.
func (n *clusterNode) read(path string, into io.Writer) int {
	req, err := http.NewRequest(http.MethodGet, "http://"+n.admin+path, nil)
	if err != nil {
		n.rig.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+orderToken) // of nodes that take orders; others ask for none
	resp, err := n.rig.web.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(into, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}

func (n *clusterNode) isReady() bool { return n.get("/readyz", nil) == http.StatusOK }

func (n *clusterNode) role() string {
	var c ops.Cluster
	n.get("/cluster", &c)
	return c.Role
}

// ready waits until nodes serve.
func (r *clusterRig) ready(nodes ...*clusterNode) {
	r.t.Helper()
	for _, n := range nodes {
		r.until("node "+n.id+" is ready", func() bool {
			select {
			case <-n.ended:
				r.t.Fatalf("node %s has ended: %v", n.id, n.cmd.ProcessState)
			default:
			}
			return n.isReady()
		})
	}
}

// owner waits until one of the nodes owns the journal, and returns it.
func (r *clusterRig) owner(among ...*clusterNode) (owner *clusterNode) {
	r.t.Helper()
	r.until("a node owns the journal", func() bool {
		i := slices.IndexFunc(among, func(n *clusterNode) bool { return n.role() == "owner" })
		if i >= 0 {
			owner = among[i]
		}
		return i >= 0
	})
	return owner
}

// but returns the nodes without some.
func (r *clusterRig) but(without ...*clusterNode) []*clusterNode {
	return slices.DeleteFunc(slices.Clone(r.nodes), func(n *clusterNode) bool { return slices.Contains(without, n) })
}

// until waits for a state.
func (r *clusterRig) until(what string, is func() bool) {
	r.t.Helper()
	for end := time.Now().Add(clusterPatience); !is(); time.Sleep(20 * time.Millisecond) {
		if r.t.Failed() || time.Now().After(end) {
			r.t.Fatal("still not: " + what)
		}
	}
}

// clusterClient is a client of one node that connects again when its connection ends.
type clusterClient struct {
	node *clusterNode
	conn *ipcclient.Conn
	wait time.Duration // for an answer, if not answerPatience
}

// do makes one request. sent is false if the server has not had it; with an error and true, it may
// have taken effect.
func (c *clusterClient) do(request func(context.Context, *ipcclient.Conn) error) (sent bool, err error) {
	ctx, cancel := context.WithTimeout(c.node.rig.t.Context(), cmp.Or(c.wait, answerPatience))
	defer cancel()
	if c.conn == nil || c.conn.Err() != nil {
		c.close()
		if c.conn, err = ipcclient.Dial(ctx, c.node.kernel, c.node.rig.dial...); err != nil {
			c.conn = nil
			return false, err
		}
	}
	if err = request(ctx, c.conn); err != nil {
		var said *ipcclient.Error
		if !errors.As(err, &said) {
			c.close() // nothing is known of what it still answers
		}
	}
	return true, err
}

func (c *clusterClient) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// surely repeats a request until it is answered.
func (c *clusterClient) surely(what string, request func(context.Context, *ipcclient.Conn) error) {
	t := c.node.rig.t
	t.Helper()
	c.node.rig.until(what+" at node "+c.node.id, func() bool {
		_, err := c.do(request)
		return err == nil
	})
}

// clusterLoad is clients of all nodes at work, until stop.
type clusterLoad struct {
	rig   *clusterRig
	acked atomic.Int64
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

// newClusterLoad starts clients, perNode at each node. step makes requests of one, and returns how
// many were acknowledged.
func newClusterLoad(r *clusterRig, perNode int, step func(c *clusterClient, worker int) (acked int)) *clusterLoad {
	l := &clusterLoad{rig: r}
	ctx, cancel := context.WithCancel(r.t.Context())
	l.stop = cancel
	for w := range perNode * len(r.nodes) {
		l.wg.Go(func() {
			c := &clusterClient{node: r.nodes[w%len(r.nodes)]}
			defer c.close()
			for ctx.Err() == nil {
				n := step(c, w)
				l.acked.Add(int64(n))
				pause := 5 * time.Millisecond
				if n == 0 {
					pause = 50 * time.Millisecond // the cluster has other work to do
				}
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
		})
	}
	return l
}

// more waits until further requests are acknowledged.
func (l *clusterLoad) more(n int64) {
	l.rig.t.Helper()
	want := l.acked.Load() + n
	l.rig.until(fmt.Sprintf("%d more requests are acknowledged", n), func() bool { return l.acked.Load() >= want })
}

// end ends the clients. Each waits for its last answer, so that nothing is under way afterwards.
func (l *clusterLoad) end() {
	l.stop()
	l.wg.Wait()
}
