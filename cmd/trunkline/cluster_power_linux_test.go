package main

import (
	"math/rand/v2"
	"syscall"
	"testing"

	"trunkline/fuzz/rounds"
	"trunkline/handlers/ops"
)

// powerRig is a cluster whose nodes have such disks.
type powerRig struct {
	*clusterRig
	disks map[*clusterNode]*crashDisk
	rand  *rand.Rand
}

func newPowerRig(t *testing.T) *powerRig {
	t.Helper()
	startsCluster(t)
	var disks []*crashDisk
	r := &powerRig{disks: make(map[*clusterNode]*crashDisk)}
	r.clusterRig = newClusterRigIn(t, func() string {
		disks = append(disks, newCrashDisk(t))
		return disks[len(disks)-1].dir
	})
	for i, n := range r.nodes {
		r.disks[n] = disks[i]
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r.rand = rand.New(rand.NewPCG(seed, 0))
	return r
}

// lose takes the power of nodes: their processes end first, all before the first disk forgets.
func (r *powerRig) lose(nodes ...*clusterNode) {
	r.t.Helper()
	for _, n := range nodes {
		n.kill()
	}
	for _, n := range nodes {
		var chance *rand.Rand
		if r.rand.IntN(2) == 0 {
			chance = r.rand
		}
		r.disks[n].lose(chance)
	}
}

func (r *powerRig) start(nodes ...*clusterNode) {
	for _, n := range nodes {
		n.start()
	}
}

// streamLeader returns the node that leads the stream of the journal.
func (r *powerRig) streamLeader() *clusterNode {
	r.t.Helper()
	var leader *clusterNode
	r.until("the stream has a leader", func() bool {
		for _, n := range r.nodes {
			var c ops.Cluster
			if n.get("/cluster", &c); c.LeadsStream {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}

// TestClusterPowerLoss: while clients of all nodes work, nodes lose their power: the owner, a
// standby, the leader of the stream, all at once, and one while another is stopped. Nothing that
// was acknowledged is lost or done twice, the counters of processes are linearizable, and all nodes
// have the same journal at the end.
func TestClusterPowerLoss(t *testing.T) {
	besideOthers(t)
	r := newPowerRig(t)
	book := &usageBook{procs: make(map[string]*usageRow)}
	h := newCounterHistory(r.clusterRig, "a", "b", "c")
	turns := make([]int, 2*len(r.nodes))
	load := newClusterLoad(r.clusterRig, 2, func(c *clusterClient, w int) int {
		turns[w]++
		if w < len(r.nodes) { // one client of each node keeps the book, the other one the history
			pid := "p-" + c.node.id
			if (book.row(pid).created || book.create(c, pid)) && book.add(c, pid) {
				return 1
			}
			return 0
		}
		if h.call(c, w, counterCall{pid: h.pids[(turns[w]/2+w)%len(h.pids)], add: turns[w]%2 == 0}) {
			return 1
		}
		return 0
	})
	defer load.end()
	load.more(100)
	faults := []func() []*clusterNode{
		func() []*clusterNode { return []*clusterNode{r.owner(r.nodes...)} },
		func() []*clusterNode { return r.nodes },
		func() []*clusterNode { return r.but(r.owner(r.nodes...))[:1] },
		func() []*clusterNode { return []*clusterNode{r.streamLeader()} },
	}
	for range rounds.Few(1, 1) {
		if !rounds.Long() {
			faults = faults[:2]
		}
		for _, fault := range faults {
			lost := fault()
			r.lose(lost...)
			if len(lost) == 1 && rounds.Long() {
				load.more(20) // another node has taken over, or goes on, before it is back
			}
			r.start(lost...)
			r.ready(r.nodes...)
			load.more(50)
		}
		if rounds.Long() {
			r.loseBesideStopped(load)
		}
	}
	load.end()
	h.check()
	r.sameCopies()
	book.checkAll(r.clusterRig)
	t.Logf("%d acknowledged", load.acked.Load())
}

// loseBesideStopped stops one node in order, takes the power of another one, and starts the first
// one while the third, which has all that was acknowledged meanwhile, is paused: the two that are
// left must not agree on a log without it.
func (r *powerRig) loseBesideStopped(load *clusterLoad) {
	r.t.Helper()
	owner := r.owner(r.nodes...)
	rest := r.but(owner)
	stopped, lost, third := rest[0], rest[1], owner
	stopped.terminate()
	load.more(20)
	r.lose(lost)
	third.pause()
	r.start(stopped, lost)
	r.owner(stopped, lost)
	third.signal(syscall.SIGCONT)
	load.more(20)
	r.ready(r.nodes...)
}
