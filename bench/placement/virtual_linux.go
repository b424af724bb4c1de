package placement

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"trunkline/engine/cluster/placement"
)

// origin is when partitions lose their owners, by the virtual clock of all nodes.
const origin = time.Hour

// virtual is a cluster in virtual time: the nodes that live, and partitions that need an owner.
type virtual struct {
	rng    *rand.Rand
	timing placement.Timing
	now    time.Duration
	queue  events
	sent   int
	cells  []*cell
	nodes  map[string]*node
}

// node is what the partitions of a node share.
type node struct {
	cfg     placement.Config
	claims  int // sent
	running int
	waiting []func()
}

// cell is a partition: what it is on the nodes that live, and its log.
type cell struct {
	own    []placement.Ownership
	names  []string
	opens  time.Duration // before it the log takes nothing
	owner  string        // whose claim the log has taken
	served time.Duration // when the new owner began to serve
}

func newVirtual(rng *rand.Rand, timing placement.Timing) *virtual {
	return &virtual{now: origin, rng: rng, timing: timing, nodes: map[string]*node{}}
}

func between(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Int64N(int64(to-from)+1))
}

// standby adds a node that follows a partition whose owner was seen last at some time.
func (v *virtual) standby(c *cell, id string, replicas placement.Replicas, seen time.Duration) {
	n := v.nodes[id]
	if n == nil {
		n = &node{cfg: placement.Config{Node: id, Timing: v.timing}}
		v.nodes[id] = n
	}
	own, _ := placement.Start(&n.cfg, 0, replicas)
	own, _ = own.Step(placement.Event{Kind: placement.Rebuilt})
	if id != replicas[0] {
		own, _ = own.Step(placement.Event{Kind: placement.Observed, Now: seen, Node: replicas[0]})
	}
	c.own, c.names = append(c.own, own), append(c.names, id)
}

// ownerDies adds a partition whose owner dies at origin, between two heartbeats. The log takes
// nothing for a while.
func (v *virtual) ownerDies(replicas placement.Replicas, left []string, silence time.Duration) {
	c := &cell{opens: origin + silence}
	last := origin - between(v.rng, 0, v.timing.Renew)
	for i, id := range left {
		v.standby(c, id, replicas, last+followDelay)
		v.schedule(c, i)
	}
	v.cells = append(v.cells, c)
}

// ownerStepsDown adds a partition whose owner hands it over to the first standby.
func (v *virtual) ownerStepsDown(replicas placement.Replicas) {
	c := &cell{}
	for i, id := range replicas {
		v.standby(c, id, replicas, origin-followDelay)
		if i > 0 {
			v.schedule(c, i)
		}
	}
	const claimed = origin - 20*time.Millisecond
	c.own[0], _ = c.own[0].Step(placement.Event{Kind: placement.Tick, Now: claimed})
	c.own[0], _ = c.own[0].Step(placement.Event{Kind: placement.ClaimWon, Now: claimed, Sent: claimed})
	to := append(append(placement.Replicas(nil), replicas[1:]...), replicas[0])
	for i := range c.own {
		v.step(c, i, placement.Event{Kind: placement.Assigned, Replicas: to})
	}
	v.cells = append(v.cells, c)
}

// step takes an event at a node of a partition, and does what comes of it.
func (v *virtual) step(c *cell, i int, e placement.Event) {
	e.Now = v.now
	own, do := c.own[i].Step(e)
	c.own[i] = own
	if do&placement.Claim != 0 {
		v.nodes[c.names[i]].claims++
		v.claim(c, i, v.now)
	}
	if do&placement.Release != 0 {
		v.after(v.latency(), func() {
			v.step(c, i, placement.Event{Kind: placement.Released})
			v.observed(c, i, placement.ObservedRelease)
		})
	}
	if do&placement.Renew != 0 {
		sent := v.now
		v.after(v.latency(), func() { v.step(c, i, placement.Event{Kind: placement.Acked, Sent: sent}) })
	}
	if do&placement.Serve != 0 && c.served == 0 && own.MayServe(v.now) {
		c.served = v.now
	}
	v.schedule(c, i)
}

func (v *virtual) latency() time.Duration { return between(v.rng, claimFastest, claimSlowest) }

// observed has the other nodes read a block.
func (v *virtual) observed(c *cell, of int, kind placement.EventKind) {
	for i := range c.own {
		if i != of {
			v.after(followDelay, func() { v.step(c, i, placement.Event{Kind: kind, Node: c.names[of]}) })
		}
	}
}

// claim sends a claim when the node has room for it.
func (v *virtual) claim(c *cell, i int, sent time.Duration) {
	n := v.nodes[c.names[i]]
	if n.running == claimsAtOnce {
		n.waiting = append(n.waiting, func() { v.claim(c, i, sent) })
		return
	}
	n.running++
	kind, takes := placement.Failed, appendTimeout
	if v.now >= c.opens {
		kind, takes = placement.ClaimRefused, v.latency()
		if c.owner == "" {
			kind, c.owner = placement.ClaimWon, c.names[i]
		}
	}
	v.after(takes, func() {
		n.running--
		if len(n.waiting) > 0 {
			next := n.waiting[0]
			n.waiting = n.waiting[1:]
			next()
		}
		v.step(c, i, placement.Event{Kind: kind, Sent: sent})
		if kind == placement.ClaimWon {
			v.observed(c, i, placement.Observed)
		}
	})
}

// schedule ticks a partition on a node when that is due. A partition that is served is not followed
// any further.
func (v *virtual) schedule(c *cell, i int) {
	if due := c.own[i].Due(); due != placement.Never && c.served == 0 {
		v.after(due-v.now, func() {
			if c.own[i].Due() == due && c.served == 0 {
				v.step(c, i, placement.Event{Kind: placement.Tick})
			}
		})
	}
}

// event is something to do at a time; of those at one time, the first that was added.
type event struct {
	at     time.Duration
	number int
	do     func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].number < q[j].number
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds an event, for package heap.
func (q *events) Push(x any) { *q = append(*q, x.(event)) }

// Pop removes the last event, for package heap.
func (q *events) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (v *virtual) after(d time.Duration, do func()) {
	v.sent++
	heap.Push(&v.queue, event{v.now + max(0, d), v.sent, do})
}

func (v *virtual) run() {
	for len(v.queue) > 0 {
		e := heap.Pop(&v.queue).(event)
		v.now = e.at
		e.do()
	}
}
