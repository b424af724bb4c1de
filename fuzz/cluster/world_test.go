package cluster

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/cluster/placement"
	"trunkline/fuzz/kit/memstream"
)

// bug is what a world has wrong, to show that the simulation would find it.
type bug int

// The bugs.
const (
	none      bug = iota
	noLease       // an owner answers what it reads for ever
	noFence       // the stream takes what does not follow
	early         // replies leave before what they report is durable
	eager         // a standby does not wait for the end of a lease
	rerun         // a tool of which the outcome is not known is run again
	hasty         // a tool is run before it is known to be started
	lingering     // an owner that has given its journal away answers readers for a while
	pooled        // the lease of one partition counts for all that a node owns
	astray        // a node has another number of partitions
	numBugs
)

// String names the bug.
func (b bug) String() string {
	return [numBugs]string{"none", "no lease", "no fence", "early replies", "eager standby", "runs again", "hasty tool", "lingering owner", "pooled lease", "keys astray"}[b]
}

// stats are what happened in a world, so that a test knows that it tests something.
type stats struct {
	answered, unanswered, claims, compared, snapshots, pauses, stalls, stale, late, keys, unknown, undecided, given, taken int
}

func (s *stats) add(o *stats) {
	s.answered += o.answered
	s.unanswered += o.unanswered
	s.claims += o.claims
	s.compared += o.compared
	s.snapshots += o.snapshots
	s.pauses += o.pauses
	s.stalls += o.stalls
	s.stale += o.stale
	s.late += o.late
	s.keys += o.keys
	s.unknown += o.unknown
	s.undecided += o.undecided
	s.given += o.given
	s.taken += o.taken
}

// world is a cluster with its clients.
type world struct {
	seed     uint64
	bug      bug
	dice     *dice // of who decides what goes wrong
	parts    []*partition
	keyspace placement.Keyspace
	ids      []string
	nodes    []*node
	clients  []*client
	ways     [][]*way // by client and node
	began    time.Time
	closed   context.Context
	close    context.CancelFunc
	tasks    sync.WaitGroup
	made     atomic.Int64 // dice

	procs processes
	keys  keys

	mu       sync.Mutex
	stats    stats
	history  uint64            // the sum of the hashes of all events
	trace    func(line string) // may be nil
	problems []string
}

// Sizes of a world.
const (
	numClients = 5
	lifetime   = 10 * time.Second
	// stepTime is the longest time between two things that go wrong.
	stepTime = 600 * time.Millisecond
	// settleTime is how long a cluster may take to serve once nothing is wrong any more.
	settleTime = time.Minute
)

// maxPartitions is how many partitions a world has at most.
const maxPartitions = 3

func newWorld(seed uint64, b bug, trace func(string)) *world {
	w := &world{seed: seed, bug: b, began: time.Now(), trace: trace}
	w.dice = w.newDice("world")
	w.closed, w.close = context.WithCancel(context.Background())
	w.procs.w, w.keys.w = w, w
	partitions, maxData := 1+int(seed%maxPartitions), []int{0, 0, 4096, 300}[w.dice.below(4)]
	w.keyspace = keyspace(partitions)
	for i := range partitions {
		log := memstream.New()
		log.SetMaxData(maxData)
		w.parts = append(w.parts, &partition{w: w, number: i, log: log, reigns: make(map[uint64]*reign)})
	}
	count := []int{3, 3, 3, 2, 5}[w.dice.below(5)]
	for i := range count {
		w.nodes = append(w.nodes, newNode(w, i))
		w.ids = append(w.ids, w.nodes[i].id)
	}
	for i := range numClients {
		w.clients = append(w.clients, newClient(w, i))
		w.ways = append(w.ways, nil)
		for j := range count {
			w.ways[i] = append(w.ways[i], &way{dice: w.newDice("way", i, j)})
		}
	}
	return w
}

// keyspace returns that of so many partitions.
func keyspace(partitions int) placement.Keyspace {
	k, err := placement.NewKeyspace(partitions)
	if err != nil {
		panic(err) // there are few
	}
	return k
}

// several reports whether there are several partitions.
func (w *world) several() bool { return len(w.parts) > 1 }

// some returns one of the partitions.
func (w *world) some() *partition {
	if !w.several() { // worlds with one partition are what they were before others had more
		return w.parts[0]
	}
	return w.parts[w.dice.below(len(w.parts))]
}

// of returns the partition of a process as a node has it.
func (w *world) of(pid string, at *node) int {
	k := w.keyspace
	if w.bug == astray && at == w.nodes[0] && w.several() {
		k = keyspace(len(w.parts) - 1)
	}
	return int(k.Partition(placement.Process, pid))
}

func (w *world) open() bool { return w.closed.Err() == nil }

func (w *world) way(c *client, n *node) *way {
	for j, at := range w.nodes {
		if at == n {
			return w.ways[c.number][j]
		}
	}
	return nil
}

// event adds to the history. The order of events at one moment has no meaning.
func (w *world) event(format string, args ...any) {
	line := fmt.Sprintf("%12d ", time.Since(w.began)) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	_, _ = h.Write([]byte(line))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history += h.Sum64()
	if w.trace != nil {
		w.trace(line)
	}
}

func (w *world) fail(format string, args ...any) {
	w.event("PROBLEM: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.problems) > 0
}

func (w *world) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

// run is the whole life of a world. It returns once nothing of it is left.
func (w *world) run() {
	for _, n := range w.nodes {
		for _, s := range n.seats {
			w.tasks.Go(s.run)
		}
	}
	var asking sync.WaitGroup
	for _, c := range w.clients {
		asking.Go(c.run)
	}
	for {
		time.Sleep(w.dice.upTo(stepTime))
		if time.Since(w.began) >= lifetime {
			break
		}
		w.step()
	}
	w.heal()
	asking.Wait()
	w.settle()
	w.close()
	for _, n := range w.nodes {
		n.kill(false)
	}
	w.tasks.Wait()
}

// victim returns a node, often the owner.
func (w *world) victim() *node {
	if l := w.some().last(); l != nil && w.dice.hits(500) {
		return l.n
	}
	return w.nodes[w.dice.below(len(w.nodes))]
}

// step has one thing go wrong, or right again.
func (w *world) step() {
	if w.several() && w.dice.hits(200) {
		w.handOver()
		return
	}
	n := w.victim()
	switch k := w.dice.below(100); {
	case k < 10:
		power := w.dice.hits(500)
		w.event("%s dies, power %v", n.id, power)
		n.kill(power)
	case k < 12:
		w.event("all die")
		for _, n := range w.nodes {
			n.kill(w.dice.hits(500))
		}
	case k < 22:
		t := w.dice.between(term/2, 4*term)
		w.event("%s pauses for %v", n.id, t)
		w.count(&w.stats.pauses)
		n.pause(t)
	case k < 30:
		cut, seats := memstream.Cut(1+w.dice.below(3)), n.seats
		if w.several() && w.dice.hits(500) { // one stream, as one without a leader is
			seats = n.seats[w.some().number:][:1]
		}
		w.event("%s is cut off: %d, %d streams", n.id, cut, len(seats))
		n.part(cut, seats...)
	case k < 46:
		w.event("%s is joined", n.id)
		n.part(0, n.seats...)
	case k < 52:
		w.event("the network of %s is bad", n.id)
		n.disturb(memstream.Faults{
			Lose: w.dice.below(200), LoseAnswer: w.dice.below(200), Double: w.dice.below(500), Stale: w.dice.below(300),
			Delay: w.dice.upTo(60 * time.Millisecond),
		})
	case k < 62:
		w.event("the network of %s is good", n.id)
		n.disturb(fine)
	case k < 70:
		w.weather(n)
	case k < 80:
		w.clear(n)
	case k < 84:
		offset := time.Duration(w.dice.below(7200)-3600) * time.Second
		w.event("the wall clock of %s is wrong by %v", n.id, offset)
		n.clock.set(offset)
	default:
		w.snapshot()
	}
}

// weather disturbs the ways of all clients to a node.
func (w *world) weather(n *node) {
	bad := weather{lose: w.dice.below(300), slow: w.dice.below(300)}
	if w.dice.hits(300) {
		bad.cut[w.dice.below(int(directions))] = true
	}
	w.event("the ways to %s are bad: %+v", n.id, bad)
	for _, c := range w.clients {
		w.way(c, n).set(bad)
	}
}

// clear ends that.
func (w *world) clear(n *node) {
	w.event("the ways to %s are good", n.id)
	for _, c := range w.clients {
		w.way(c, n).set(weather{})
	}
}

// snapshot has the owner write one, while everything goes on.
func (w *world) snapshot() {
	l := w.some().last()
	if l == nil || l.ctx.Err() != nil {
		return
	}
	w.event("%s writes a snapshot", l.name)
	if power := w.dice.hits(500); w.dice.hits(300) { // and dies over it
		time.AfterFunc(w.dice.upTo(20*time.Millisecond), func() {
			if l.seat.alive() == l {
				l.n.kill(power)
			}
		})
	}
	w.tasks.Go(func() {
		if l.svc.Runtime().Store.Snapshot() == nil {
			w.count(&w.stats.snapshots)
		}
	})
}

// handOver has the owner of a partition give it to another node, which may be dead or behind.
func (w *world) handOver() {
	l, to := w.some().last(), w.nodes[w.dice.below(len(w.nodes))]
	if l != nil && l.n != to {
		l.post(func() { l.give(to.id) })
	}
}

// heal ends all that is wrong.
func (w *world) heal() {
	w.event("all is healed")
	for _, n := range w.nodes {
		n.wake()
		n.part(0, n.seats...)
		n.disturb(fine)
		w.clear(n)
	}
}

// settle asks for everything once more, and then has each node take over from another.
func (w *world) settle() {
	w.clients[0].askAll()
	for _, n := range w.nodes {
		if w.failed() {
			return
		}
		for _, other := range w.nodes {
			other.hold(other != n)
			other.kill(other.dice.hits(500))
		}
		for end := time.Now().Add(settleTime); ; {
			time.Sleep(w.dice.upTo(term / 10)) // what was killed ends at a moment of its own
			if n.ownsAll() {
				break
			}
			if time.Now().After(end) {
				w.fail("%s does not take over alone", n.id)
				return
			}
		}
	}
	for _, p := range w.parts {
		p.check(p.last())
	}
}
