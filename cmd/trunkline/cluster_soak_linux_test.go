package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/engine/obs"
	"trunkline/fuzz/kit"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/ops"
)

// soakOptions are flags of the test binary.
type soakOptions struct {
	rounds int
	seed   uint64
	fault  string
}

var soakAsked = soakFlags(flag.CommandLine)

func soakFlags(f *flag.FlagSet) *soakOptions {
	o := new(soakOptions)
	f.IntVar(&o.rounds, "rounds", 0, "rounds of TestClusterSoak; 0: soakLong")
	f.Uint64Var(&o.seed, "seed", rand.Uint64(), "of the faults of TestClusterSoak; one is drawn unless it is given")
	f.StringVar(&o.fault, "fault", "", "a part of the names of the faults of TestClusterSoak; empty is all of them")
	return o
}

const (
	// soakSnapshot has snapshots taken, and the journal purged, all the time.
	soakSnapshot = "store.snapshot_bytes=8192"
	// soakLook is how many counters of rounds before are read again in each round.
	soakLook = 20
	// soakMemory is what a node may have in memory, in bytes: far more than it needs, and far less
	// than what grows with each round or while another node stands still.
	soakMemory = 512 << 20
	// soakFresh is after how many rounds the state of two owners is compared.
	soakFresh = 10
)

// soak is a cluster under load, to which faults happen.
type soak struct {
	*clusterRig
	seed     uint64
	rng      *rand.Rand // of a round
	binaries []string   // that nodes are started with
	disk     *smallDisk // of the first node; nil: none could be mounted
	round    int
	counters *counterHistory
	load     *clusterLoad
	known    map[string]int64 // counters of rounds before
}

// newSoak starts a cluster. The first node has a disk of its own, where one can be mounted.
func newSoak(t *testing.T, seed uint64) *soak {
	t.Helper()
	startsCluster(t)
	s := &soak{seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), binaries: []string{""}, known: make(map[string]int64)}
	s.disk = newSmallDisk(t) // before the rig, which ends before it
	s.clusterRig = makeClusterRig(t, 3, t.TempDir, []string{soakSnapshot})
	if s.disk != nil {
		s.nodes[0].dir = s.disk.dir
	}
	s.startLinked()
	return s
}

// start starts a node, with any of the programs.
func (s *soak) start(n *clusterNode) {
	s.t.Helper()
	n.binary = s.binaries[s.rng.IntN(len(s.binaries))]
	n.start()
}

// some sleeps for up to a time, so that what comes next meets the cluster at any of its work.
func (s *soak) some(most time.Duration) { time.Sleep(time.Duration(s.rng.Int64N(int64(most)))) }

// one returns any of some nodes.
func (s *soak) one(of []*clusterNode) *clusterNode { return of[s.rng.IntN(len(of))] }

// run is a round: clients work at all nodes, something happens, and it ends. Then all nodes have
// all that was acknowledged, once.
func (s *soak) run(f soakFault) {
	s.t.Helper()
	s.round++
	s.rng = rand.New(rand.NewPCG(s.seed, uint64(s.round)))
	began := time.Now()
	var pids []string
	for i := range 4 {
		pids = append(pids, fmt.Sprintf("r%d-%d", s.round, i))
	}
	s.counters = newCounterHistory(s.clusterRig, pids...)
	s.load = s.counters.load(2)
	defer s.load.end()
	s.load.more(30)
	f.do(s)
	s.links.heal()
	for _, n := range s.nodes {
		if !n.runs() {
			s.start(n)
		}
	}
	s.ready(s.nodes...)
	s.load.more(30)
	s.load.end()
	s.caughtUp(s.nodes...)
	s.whole()
	last := s.counters.last()
	s.counters.check()
	s.compare()
	maps.Copy(s.known, last)
	memory := int64(0)
	for _, n := range s.nodes {
		memory = max(memory, n.memory())
	}
	if memory > soakMemory {
		s.t.Errorf("a node has %d MiB in memory", memory>>20)
	}
	if s.round%soakFresh == 0 {
		s.sameState()
	}
	s.t.Logf("round %d, %s: %d acknowledged, %d MiB, %v", s.round, f.name, s.load.acked.Load(), memory>>20, time.Since(began).Round(time.Millisecond))
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// compare reads some counters of rounds before, which no one has changed since.
func (s *soak) compare() {
	s.t.Helper()
	pids := slices.Sorted(maps.Keys(s.known))
	s.rng.Shuffle(len(pids), func(i, j int) { pids[i], pids[j] = pids[j], pids[i] })
	for _, pid := range pids[:min(len(pids), soakLook)] {
		c := &clusterClient{node: s.one(s.nodes)}
		c.surely("a counter of before", func(ctx context.Context, conn *ipcclient.Conn) error {
			p, err := conn.GetProcess(ctx, pid)
			if err == nil && p.Usage.LLMCalls != s.known[pid] {
				s.t.Errorf("node %s: the counter of %s is %d, and was %d", c.node.id, pid, p.Usage.LLMCalls, s.known[pid])
			}
			return err
		})
		c.close()
	}
}

// whole waits until each node sees nothing wrong.
func (r *clusterRig) whole() {
	r.t.Helper()
	for _, n := range r.nodes {
		r.until("node "+n.id+" sees a whole cluster", func() bool {
			var c ops.Cluster
			n.get("/cluster", &c)
			return c.Quorum && c.Problem == "" && !slices.ContainsFunc(c.Peers, func(p obs.ClusterPeer) bool { return !p.Seen })
		})
	}
}

// caughtUp waits until nodes have what the owner has now.
func (r *clusterRig) caughtUp(nodes ...*clusterNode) {
	r.t.Helper()
	var now ops.Cluster
	r.owner(r.nodes...).get("/cluster", &now)
	for _, n := range nodes {
		r.until(fmt.Sprintf("node %s has record %d", n.id, now.Index), func() bool {
			var c ops.Cluster
			n.get("/cluster", &c)
			return c.Index >= now.Index
		})
	}
}

// memory returns the resident memory of the process of a node, in bytes.
func (n *clusterNode) memory() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.pid.Load()))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	size, err := strconv.ParseInt(kib, 10, 64)
	if err != nil {
		n.rig.t.Errorf("the memory of node %s is %q KiB", n.id, kib)
	}
	return size << 10
}

// soakLong is how many rounds the long form has.
const soakLong = 8

// TestClusterSoak has faults happen, one after the other. The seed decides which and when; what the
// nodes are just doing then it does not.
func TestClusterSoak(t *testing.T) {
	longBesideOthers(t)
	n := cmp.Or(soakAsked.rounds, soakLong)
	t.Logf("the seed is %d", soakAsked.seed)
	s := newSoak(t, soakAsked.seed)
	if soakAsked.rounds > 0 {
		dir := t.TempDir()
		newer := filepath.Join(dir, "newer")
		kit.Build(t, newer, "v1.0.1")
		s.binaries = append(s.binaries, kit.Program(t, dir), newer)
	}
	counts := make(map[string]int)
	for _, f := range s.plan(n) {
		counts[f.name]++
		s.run(f)
	}
	s.sameState()
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%d × %s", counts[name], name)
	}
	t.Logf("%d rounds, %d counters, the seed is %d", s.round, len(s.known), soakAsked.seed)
}

// plan returns the faults of some rounds, all kinds before any a second time.
func (s *soak) plan(n int) (plan []soakFault) {
	all := slices.DeleteFunc(soakFaults(), func(f soakFault) bool { return !strings.Contains(f.name, soakAsked.fault) })
	if len(all) == 0 {
		return all
	}
	for len(plan) < n {
		s.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		plan = append(plan, all...)
	}
	return plan[:n]
}
