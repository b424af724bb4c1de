package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"trunkline/engine/cluster/placement"
	"trunkline/fuzz/rounds"
	"trunkline/handlers/ipc/ipcclient"
)

// clientPatience is how long a client of these tests waits for an answer before it gives up: longer
// than a lease.
const clientPatience = 1500 * time.Millisecond

// TestClusterLateRequests: a client sends a change to a node that cannot bring it to the owner, as
// its link to that is cut or it is stopped, and gives up. The change has no effect, as a third
// node has shown, and has none when the node reaches the owner again: neither on a connection that
// was open before nor on a new one.
func TestClusterLateRequests(t *testing.T) {
	besideOthers(t)
	for _, partitions := range []int{3, 1}[:rounds.Pick(1, 2)] {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			t.Parallel() // both mostly wait
			r := makeClusterRig(t, 3, t.TempDir, []string{fmt.Sprint("cluster.partitions=", partitions)})
			r.startLinked()
			pids := keysOf(t, placement.Process, partitions, 2*rounds.Pick(1, 4))[0]
			for i, pid := range pids {
				from, owner := r.outsider(0)
				third := r.but(from, owner)[0]
				if i%2 == 0 {
					r.gaveUp(from, third, pid, func() { r.links.cut(linkHeld, from, owner) }, r.links.heal)
				} else {
					r.gaveUp(from, third, pid, from.pause, func() { from.signal(syscall.SIGCONT) })
				}
			}
		})
	}
}

// outsider returns the owner of a partition, and a node that does not own it.
func (r *clusterRig) outsider(partition int) (from, owner *clusterNode) {
	r.ready(r.nodes...)
	r.until("all nodes know one owner", func() bool {
		id := r.nodes[0].ownerOf(partition)
		for _, n := range r.nodes {
			if n.ownerOf(partition) != id {
				return false
			}
		}
		owner = r.byID(id)
		return id != ""
	})
	return r.but(owner)[0], owner
}

// gaveUp has clients of a node change something while the node is cut off.
func (r *clusterRig) gaveUp(from, third *clusterNode, pid string, cut, heal func()) {
	t := r.t
	t.Helper()
	c := &clusterClient{node: third}
	defer c.close()
	c.surely("a process", func(ctx context.Context, conn *ipcclient.Conn) error {
		_, err := conn.CreateProcess(ctx, ipcclient.CreateProcess{PID: pid, UserID: pid})
		return err
	})
	calls := func(c *clusterClient) (n int64) {
		c.surely("the quota", func(ctx context.Context, conn *ipcclient.Conn) error {
			q, err := conn.CheckQuota(ctx, pid)
			n = int64(q.LLMCalls)
			return err
		})
		return n
	}
	known := &clusterClient{node: from}
	calls(known) // its way to the owner is open
	cut()
	var acked int64 // it may become the owner itself
	for _, what := range []string{"open", "new"} {
		ctx, cancel := context.WithTimeout(t.Context(), clientPatience)
		conn := known.conn
		if what == "new" {
			nc, err := net.Dial("tcp", from.kernel) // the system accepts it also where the process is stopped
			if err != nil {
				t.Fatal(err)
			}
			conn = ipcclient.New(nc)
		}
		if _, err := conn.RecordUsage(ctx, ipcclient.RecordUsage{PID: pid, LLMCalls: 1}); err == nil {
			acked++
		}
		cancel()
		conn.Close()
	}
	if n := calls(c); n != acked {
		t.Errorf("%d changes took effect, and %d were acknowledged", n, acked)
	}
	heal()
	r.ready(from)
	again := &clusterClient{node: from}
	defer again.close()
	for range 50 {
		calls(again)
	}
	if n := calls(c); n != acked {
		t.Errorf("%d changes more took effect after a read had shown that they had not, and their clients had given up", n-acked)
	}
}

// TestClusterLateMessages: a message of agent threads that a client sent to a node while that was
// stopped, and gave up, is not posted when the node goes on.
func TestClusterLateMessages(t *testing.T) {
	longBesideOthers(t)
	for _, partitions := range []int{1, 3} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			r := newThreadRig(t, fmt.Sprint("cluster.partitions=", partitions))
			keys, err := placement.NewKeyspace(partitions)
			if err != nil {
				t.Fatal(err)
			}
			book := newThreadBook(r, 1)
			from, owner := r.outsider(int(keys.Partition(placement.Workspace, r.workspace)))
			third := r.but(from, owner)[0]
			posted := func(n *clusterNode) (seq uint64) {
				r.until("the thread is read", func() bool {
					next, _, err := book.page(n, 0, 0)
					seq = next
					return err == nil
				})
				return seq
			}
			posted(from) // a connection is open
			from.pause()
			var acked uint64
			for _, what := range []string{"open", "new"} {
				gives := *r
				gives.web.Timeout = clientPatience
				if what == "new" {
					gives.web.Transport = &http.Transport{DisableKeepAlives: true}
				}
				body := fmt.Sprintf(`{"thread_id":%q,"schema_version":1,"kind":"chat","body":"b"}`, book.threads[0])
				if err := gives.ask(from, "/v1/post_message", body, new(threadMessage)); err == nil {
					acked++
				}
			}
			if n := posted(third); n != acked {
				t.Errorf("%d messages are posted, %d were acknowledged", n, acked)
			}
			from.signal(syscall.SIGCONT)
			r.ready(from)
			for range 50 {
				posted(from)
			}
			if n := posted(third); n != acked {
				t.Errorf("%d messages more are posted after a read had shown that they were not, and their clients had given up",
					n-acked)
			}
		})
	}
}
