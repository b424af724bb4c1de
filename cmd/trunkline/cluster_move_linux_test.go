package main

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/obs"
	"trunkline/fuzz/rounds"
	"trunkline/handlers/ops"
)

// orderToken is the token of the operator of a rig that takes orders.
const orderToken = "the operator of a cluster in a test"

// newOrderedRig starts a cluster that takes orders.
func newOrderedRig(t *testing.T, set ...string) *clusterRig {
	t.Helper()
	return newClusterRig(t, append(set, takesOrders(t))...)
}

// takesOrders returns the setting of nodes that take orders.
func takesOrders(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "operator.token")
	if err := os.WriteFile(file, []byte(orderToken), 0o600); err != nil {
		t.Fatal(err)
	}
	return "admin.console_operator_token_file=" + file
}

// order gives an order to the cluster through a node, and returns its exit code and what it talks.
func (n *clusterNode) order(args ...string) (code int, talk string) {
	n.rig.t.Helper()
	return n.operate(append([]string{"cluster"}, args...)...)
}

// operate runs a command of an operator on a node.
func (n *clusterNode) operate(args ...string) (code int, talk string) {
	n.rig.t.Helper()
	file := filepath.Join(n.rig.t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(orderToken), 0o600); err != nil {
		n.rig.t.Fatal(err)
	}
	cmd := program(append(args, "--admin", n.admin, "--token-file", file)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		n.rig.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// surelyOrder gives an order until it is carried out: a node may not follow yet what it is to own.
func (n *clusterNode) surelyOrder(args ...string) {
	n.rig.t.Helper()
	n.rig.until(strings.Join(args, " ")+" at node "+n.id, func() bool {
		code, talk := n.order(args...)
		switch code {
		case cli.CodeOK, cli.CodeConflict, cli.CodeUnavailable, cli.CodeNotFound: // a node may be slow to answer
		default:
			n.rig.t.Fatalf("%v: exit code %d: %s", args, code, talk)
		}
		return code == cli.CodeOK
	})
}

// refused gives an order that is not carried out.
func (n *clusterNode) refused(code int, text string, args ...string) {
	n.rig.t.Helper()
	if got, talk := n.order(args...); got != code || !strings.Contains(talk, text) {
		n.rig.t.Errorf("%v at node %s: exit code %d, want %d: %s", args, n.id, got, code, talk)
	}
}

// ownerOf returns the node that owns a partition, "" for none that is known.
func (n *clusterNode) ownerOf(partition int) string {
	var c ops.Cluster
	n.get("/cluster", &c)
	if len(c.Partitions) == 0 {
		c.Partitions = []obs.ClusterPartition{c.ClusterPartition}
	}
	if partition >= len(c.Partitions) {
		return ""
	}
	return c.Partitions[partition].Owner
}

// byID returns a node.
func (r *clusterRig) byID(id string) *clusterNode {
	r.t.Helper()
	for _, n := range r.nodes {
		if n.id == id {
			return n
		}
	}
	r.t.Fatalf("no node is called %q", id)
	return nil
}

// TestClusterMove: while clients of all nodes work, the journal moves from node to node. No process
// ends, and the clients see counters as if there were one server.
func TestClusterMove(t *testing.T) {
	besideOthers(t)
	r := newOrderedRig(t)
	h := newCounterHistory(r, "a", "b", "c", "d")
	load := h.load(2)
	defer load.end()
	for i := range 4 {
		load.more(40)
		owner := r.owner(r.nodes...)
		to := r.but(owner)[i%2]
		r.nodes[i%3].surelyOrder("move", "0", to.id, "--reason", "a test")
		if got := r.owner(r.nodes...); got != to {
			t.Errorf("node %s owns the journal, and not %s", got.id, to.id)
		}
		r.ready(r.nodes...)
	}
	load.more(40)
	load.end()
	h.check()

	owner := r.owner(r.nodes...)
	r.until("the metric of the disk is what the copies of snapshots and the rows take", func() bool {
		var text bytes.Buffer
		owner.read("/metrics", &text)
		want := allocated(filepath.Join(owner.dir, "copies")) + allocated(filepath.Join(owner.dir, "rows"))
		_, after, _ := strings.Cut(text.String(), "\ntrunkline_store_disk_bytes ")
		shown, _, _ := strings.Cut(after, "\n")
		n, err := strconv.ParseFloat(shown, 64)
		return err == nil && want > 0 && n == float64(want)
	})
	other := r.but(owner)[0]
	other.refused(cli.CodeConflict, "owns partition 0 already", "move", "0", owner.id)
	other.refused(cli.CodeNotFound, "not of the cluster", "move", "0", "n9")
	other.refused(cli.CodeNotFound, "partition 1", "move", "1", other.id)
	owner.refused(cli.CodeUsage, "partition must be a number", "move", "first", other.id)
	if code, talk := otherToken(owner, "move", "0", other.id); code != cli.CodeNotAllowed {
		t.Errorf("without the token: exit code %d: %s", code, talk)
	}
}

// allocated returns what a directory takes on the disk.
func allocated(dir string) (n uint64) {
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		var st syscall.Stat_t
		if syscall.Lstat(path, &st) == nil {
			n += uint64(st.Blocks) * 512
		}
		return nil
	})
	return n
}

// otherToken gives an order with a wrong token.
func otherToken(n *clusterNode, args ...string) (code int, talk string) {
	file := filepath.Join(n.rig.t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("another token"), 0o600); err != nil {
		n.rig.t.Fatal(err)
	}
	cmd := program(append([]string{"cluster"}, append(args, "--admin", n.admin, "--token-file", file)...)...)
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestClusterDrain: a drained node owns nothing until it is resumed, also if the next owner dies.
// No process ends by that, and what was acknowledged is there.
func TestClusterDrain(t *testing.T) {
	besideOthers(t)
	r := newOrderedRig(t)
	book, load := newUsageLoad(r)
	defer load.end()
	load.more(30)
	drained := r.owner(r.nodes...)
	pid := drained.cmd.Process.Pid
	others := r.but(drained)
	others[0].surelyOrder("drain", drained.id)
	next := r.owner(others...)
	load.more(30)
	next.refused(cli.CodeConflict, "is drained", "move", "0", drained.id)
	last := r.but(drained, next)[0]
	r.until("the node that was drained follows again", func() bool { return drained.role() == "standby" })
	r.until("the third node follows", func() bool { return last.role() == "standby" })

	next.kill()
	if owner := r.owner(drained, last); owner != last {
		t.Errorf("the drained node %s takes over", owner.id)
	}
	load.more(30)
	next.start()
	r.ready(r.nodes...)
	drained.surelyOrder("resume")
	drained.surelyOrder("move", "0", drained.id)
	load.more(30)
	load.end()
	if drained.cmd.Process.Pid != pid {
		t.Error("the drained node was started again")
	}
	book.checkAll(r)
}

// post gives an order to the cluster through a node, without a process of its own.
func (n *clusterNode) post(verb string) error {
	req, err := http.NewRequest(http.MethodPost, "http://"+n.admin+"/console/cluster/"+verb, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+orderToken)
	web := n.rig.web
	web.Timeout = clusterPatience // a hand-over takes what the machine takes
	resp, err := web.Do(req)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

// TestClusterDrainOfAll: nodes that are drained at once do not count on each other, and the cluster
// keeps a node that may own the journal.
func TestClusterDrainOfAll(t *testing.T) {
	longBesideOthers(t)
	r := newOrderedRig(t)
	for range rounds.Few(20, 20) {
		var orders sync.WaitGroup
		for _, n := range r.nodes {
			orders.Go(func() {
				if err := n.post("drain"); err != nil {
					t.Error(err)
				}
			})
		}
		orders.Wait()
		if drained := r.drained(); drained == len(r.nodes) {
			t.Fatal("all nodes are drained")
		}
		for _, n := range r.nodes {
			r.until("node "+n.id+" is resumed", func() bool { return n.post("resume") == nil })
		}
		r.ready(r.nodes...)
	}
}

// drained counts the nodes that take nothing over.
func (r *clusterRig) drained() (count int) {
	for _, n := range r.nodes {
		var c ops.Cluster
		n.get("/cluster", &c)
		if c.Drained {
			count++
		}
	}
	return count
}

// TestClusterOfAnotherSize: a node with another number of partitions does not join.
func TestClusterOfAnotherSize(t *testing.T) {
	longBesideOthers(t)
	r := newClusterRig(t)
	n := r.but(r.owner(r.nodes...))[0]
	n.terminate()
	made := n.settings
	n.settings = append(slices.Clone(made), "cluster.partitions=2")
	n.start()
	r.until("the node has ended", func() bool { return !n.runs() })
	if text := n.out.String(); n.cmd.ProcessState.Success() || !strings.Contains(text, "partitions") {
		t.Errorf("exit %v: %s", n.cmd.ProcessState, text)
	}
	n.settings = made
	n.start()
	r.ready(n)
}
