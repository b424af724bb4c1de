package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"trunkline/engine/cluster/placement"
	"trunkline/handlers/ops"
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
// has made its rows anew owns all of them. Every number is there once, and every key gets its first
// answer.
func TestClusterWorkspaces(t *testing.T) {
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
	r.until("the journals were purged", func() bool { return r.purged(partitions) })

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
}

// purged reports whether the owner of each partition has written snapshots, and forgotten what is
// in them.
func (r *clusterRig) purged(partitions int) bool {
	found := 0
	for _, n := range r.nodes {
		var v ops.Store
		n.get("/store", &v)
		for _, p := range v.Partitions {
			if p.Journal != nil && p.Journal.Snapshots > 2 {
				found++
			}
		}
	}
	return found >= partitions
}
