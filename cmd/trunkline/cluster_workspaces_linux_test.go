package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/engine/cluster/placement"
	"trunkline/engine/obs"
	"trunkline/handlers/ops"
	"trunkline/handlers/threads/token"
)

// steadyPosts has a client post over one connection of lines of a node, until end, which returns
// what ended the connection, nil if nothing has.
func (b *threadBook) steadyPosts(n *clusterNode) (end func() (posted int, err error)) {
	b.rig.t.Helper()
	var c *threadLines
	b.rig.until("lines at node "+n.id, func() (is bool) {
		var err error
		c, err = b.rig.lines(n)
		return err == nil
	})
	ctx, stop := context.WithCancel(b.rig.t.Context())
	var wg sync.WaitGroup
	var posted int
	var failed error
	wg.Go(func() {
		defer c.Close()
		for ; ctx.Err() == nil && failed == nil; posted++ {
			key := fmt.Sprint("steady", posted)
			_, failed = c.ask(fmt.Sprintf(`{"id":2,"method":"post_message","params":{"thread_id":%q,"schema_version":1,"kind":"chat","body":%q,"idempotency_key":%[2]q}}`, b.threads[0], key))
		}
	})
	return func() (int, error) {
		stop()
		wg.Wait()
		return posted, failed
	}
}

// TestClusterWorkspaces: agent threads of workspaces of three partitions, through each node and
// over each surface, while clients post and read. The owner of one partition dies and loses its
// directory, and the clients of the others see nothing; partitions move in order; the node that
// has made its rows again owns all of them. Every number is there once, and every key gets its
// first answer. At last another key verifies the tokens, by a reload of all nodes.
func TestClusterWorkspaces(t *testing.T) {
	longBesideOthers(t)
	const partitions = 3
	r := newThreadRig(t, fmt.Sprint("cluster.partitions=", partitions))
	even := map[string]int{"n1": 1, "n2": 1, "n3": 1}
	r.nodes[0].surelyOrder("rebalance")
	r.spread(partitions, even)
	var books []*threadBook
	var loads []*clusterLoad
	for _, workspaces := range keysOf(t, placement.Workspace, partitions, 1) {
		book := newThreadBook(r.as(workspaces[0]), 2)
		for _, n := range r.nodes {
			r.until("a post at node "+n.id, func() bool { return book.post(n, 0, "hello") == nil })
			book.rig.lookAtSurfaces(n, book.threads[0], "hello")
		}
		books, loads = append(books, book), append(loads, book.load(1))
	}
	more := func() {
		t.Helper()
		for _, load := range loads {
			load.more(30)
		}
	}
	defer func() {
		for _, load := range loads {
			load.end()
		}
	}()
	more()
	var got struct{}
	if err := books[1].rig.ask(r.nodes[0], "/v1/get_thread", fmt.Sprintf(`{"thread_id":%q}`, books[2].threads[0]), &got); !errors.Is(err, errRefused) || !strings.Contains(err.Error(), fmt.Sprint(http.StatusNotFound)) {
		t.Errorf("a thread of another workspace: %v", err)
	}
	r.until("each partition has a snapshot", func() bool { return r.snapshots() == partitions })

	dies := r.byID(r.nodes[0].ownerOf(0))
	left := r.but(dies)
	before := r.owners(partitions, left...)
	var ends []func() (int, error)
	for _, book := range books[1:] {
		ends = append(ends, book.steadyPosts(left[0]))
	}
	dies.kill()
	r.until("another node owns the partition", func() bool {
		owner := left[0].ownerOf(0)
		return owner != "" && owner != dies.id
	})
	more()
	after := r.owners(partitions, left...)
	for i, end := range ends {
		p := i + 1
		posted, err := end()
		t.Logf("partition %d, %s, then %s: %d posted, %v", p, before[p], after[p], posted, err)
		if before[p] == after[p] && err != nil {
			t.Errorf("partition %d stays with its owner, and a client fails: %v", p, err)
		}
	}

	if err := os.RemoveAll(dies.dir); err != nil {
		t.Fatal(err)
	}
	started := len(dies.out.String())
	dies.start()
	r.ready(r.nodes...)
	r.until("node "+dies.id+" follows", func() bool {
		var c ops.Cluster
		dies.get("/cluster", &c)
		return len(c.Partitions) == partitions && !slices.ContainsFunc(c.Partitions, func(p obs.ClusterPartition) bool { return p.Role == obs.RoleJoining || p.Lag == nil })
	})
	more() // an owner that is not there in time loses its right
	for p := range partitions {
		if dies.ownerOf(p) != dies.id {
			dies.surelyOrder("move", fmt.Sprint(p), dies.id)
		}
	}
	r.spread(partitions, map[string]int{dies.id: partitions})
	more()
	for _, load := range loads {
		load.end()
	}
	if n := strings.Count(dies.out.String()[started:], "from the archive"); n < partitions {
		t.Errorf("node %s has read %d sets of archives, and has the rows of %d partitions", dies.id, n, partitions)
	}
	for p, dir := range []string{"rows", "rows_1", "rows_2"} {
		if _, err := os.Stat(filepath.Join(dies.dir, dir)); err != nil {
			t.Errorf("partition %d has no rows: %v", p, err)
		}
	}
	for _, book := range books {
		for _, n := range r.nodes {
			book.check(n)
		}
		for _, key := range book.keys[:min(len(book.keys), 20)] {
			var w, i int
			if _, err := fmt.Sscanf(key, "w%d-%d", &w, &i); err == nil {
				r.until(key+" again", func() bool { return book.post(r.nodes[0], (w+i)%len(book.threads), key) == nil })
			}
		}
	}
	r.lookAtPartitions(dies, partitions)
	r.replaceKey(books)
}

// lookAtPartitions checks what the owner of all partitions shows of their agent threads, and that
// its clients are listed, and dropped by name.
func (r *threadRig) lookAtPartitions(n *clusterNode, partitions int) {
	r.t.Helper()
	c, err := r.lines(n)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	var metrics bytes.Buffer
	n.read("/metrics", &metrics)
	for p := range partitions {
		if line := fmt.Sprintf("trunkline_threads{partition=\"%d\"} 2\n", p); !strings.Contains(metrics.String(), line) {
			r.t.Errorf("the metrics of node %s have no %q", n.id, line)
		}
	}
	var o obs.Overview
	if n.get("/overview", &o); o.Connections["threads"] == 0 {
		r.t.Errorf("the overview of node %s has no client of agent threads: %v", n.id, o.Connections)
	}
	var rows struct{ Connections []obs.Connection }
	n.get("/connections", &rows)
	protocol := func(c obs.Connection) string { return c.ID[:strings.LastIndexByte(c.ID, '-')] }
	i := slices.IndexFunc(rows.Connections, func(row obs.Connection) bool { return row.Peer == c.LocalAddr().String() && protocol(row) == "threads" })
	if i < 0 || !slices.ContainsFunc(rows.Connections, func(row obs.Connection) bool {
		return row.Peer == c.LocalAddr().String() && strings.HasPrefix(protocol(row), "threads.")
	}) {
		r.t.Fatalf("the client %s of lines is not listed with its connection to its owner: %+v", c.LocalAddr(), rows)
	}
	if !slices.ContainsFunc(rows.Connections, func(row obs.Connection) bool { return strings.HasPrefix(row.ID, "threads-http.") }) {
		r.t.Errorf("no connection of HTTP to its owner is listed: %+v", rows)
	}
	if code, talk := n.operate("connections", "drop", rows.Connections[i].ID); code != 0 {
		r.t.Errorf("drop %s: exit code %d: %s", rows.Connections[i].ID, code, talk)
	}
	_ = c.SetDeadline(time.Now().Add(clusterPatience))
	if _, err := c.in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		r.t.Errorf("a client that was dropped reads %v", err)
	}
}

// replaceKey has all nodes verify tokens by another key: tokens of the former one are refused, and
// those of the new one are taken, in each workspace and through each node.
func (r *threadRig) replaceKey(books []*threadBook) {
	r.t.Helper()
	private, public, err := token.NewKey()
	if err == nil {
		err = os.WriteFile(r.key, public, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	for _, n := range r.nodes {
		n.signal(syscall.SIGHUP)
	}
	next := *r
	next.private = private
	for _, book := range books {
		former := book.rig
		for _, n := range r.nodes {
			var got struct{}
			body := fmt.Sprintf(`{"thread_id":%q}`, book.threads[0])
			r.until("the new key is used by node "+n.id, func() bool { return next.as(former.workspace).ask(n, "/v1/get_thread", body, &got) == nil })
			if err := former.ask(n, "/v1/get_thread", body, &got); !errors.Is(err, errRefused) || !strings.Contains(err.Error(), fmt.Sprint(http.StatusUnauthorized)) {
				r.t.Errorf("a token of the former key at node %s: %v", n.id, err)
			}
		}
	}
}

// snapshots returns how many partitions have an owner that has written a snapshot.
func (r *clusterRig) snapshots() (count int) {
	for _, n := range r.nodes {
		var v ops.Store
		n.get("/store", &v)
		for _, p := range v.Partitions {
			if p.Journal != nil && p.Journal.Snapshots > 0 {
				count++
			}
		}
	}
	return count
}
