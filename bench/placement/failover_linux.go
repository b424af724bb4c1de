package placement

import (
	"math/rand/v2"
	"slices"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/engine/cluster/owner"
	"trunkline/engine/cluster/placement"
)

// What the times rest on.
const (
	lease         = time.Second             // the default of cluster.lease_ms
	lookEvery     = lease / 50              // a standby looks whether it may take over
	appendFastest = 1800 * time.Microsecond // from when a block is sent to its answer
	appendSlowest = 20 * time.Millisecond
	followDelay   = 5 * time.Millisecond   // from the answer to a block to when standbys have read it
	appendTimeout = 500 * time.Millisecond // after which an append has failed
	givenUp       = time.Minute            // a partition that is not served by then never is
)

// elections are how long the log of a partition takes nothing after its leader has died.
var elections = []struct {
	what     string
	from, to time.Duration
}{
	{"leader elsewhere", 0, 0},
	{"election timeout 1 s", 1100 * time.Millisecond, 1600 * time.Millisecond},
	{"election timeout 4 to 9 s", 4 * time.Second, 8400 * time.Millisecond},
}

// failover shows how long partitions are without an owner.
func (s *simulation) failover() {
	t := s.table("How long partitions are not served", "change", "log", "not served at first", "without a majority", "p50 s", "p99 s", "last s", "most claims on a node")
	for _, c := range s.scenes() {
		if len(c.nodes) >= len(s.nodes) {
			continue
		}
		live := ids(c.nodes)
		for _, e := range elections {
			v := newVirtual(s.rng)
			for _, replicas := range s.placed {
				left := slices.DeleteFunc(slices.Clone(replicas), func(id string) bool { return !live[id] })
				switch {
				case len(left) <= len(replicas)/2:
					v.missing++
				case !live[replicas[0]]:
					v.ownerDies(replicas, left, between(s.rng, e.from, e.to))
				}
			}
			v.add(t, s, c.what, e.what)
		}
	}
	v := newVirtual(s.rng)
	for _, replicas := range s.placed {
		if replicas[0] == s.nodes[0].ID {
			v.ownerStepsDown(replicas)
		}
	}
	v.add(t, s, "a node is drained", elections[0].what)
}

// virtual is partitions that lose their owners at time 0 of a clock that all nodes share.
type virtual struct {
	rng     *rand.Rand
	took    []time.Duration // until they were served again
	missing int             // partitions that have no majority
	never   int             // partitions that no standby took over
	claims  map[string]int  // of each node
}

func newVirtual(rng *rand.Rand) *virtual { return &virtual{rng: rng, claims: map[string]int{}} }

func between(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Int64N(int64(to-from)+1))
}

func (v *virtual) latency() time.Duration { return between(v.rng, appendFastest, appendSlowest) }

// ownerDies adds a partition whose owner dies between two beats. The log takes nothing for a while.
func (v *virtual) ownerDies(replicas placement.Replicas, left []string, silence time.Duration) {
	last := followDelay - between(v.rng, 0, lease/owner.BeatShare)
	v.takeOver(replicas, left, last, owner.Beat{Node: replicas[0], Term: lease}, silence)
}

// ownerStepsDown adds a partition whose owner hands it over to the first standby.
func (v *virtual) ownerStepsDown(replicas placement.Replicas) {
	heard := v.latency() + followDelay
	v.takeOver(replicas, replicas[1:], heard, owner.Beat{Node: replicas[0], Term: lease, Released: true, To: replicas[1]}, 0)
}

// standby is a node that follows a partition.
type standby struct {
	id   string
	view *owner.View
	rank int
	look time.Duration // when it looks next
}

// takeOver has standbys look at what they have heard of the owner, and claim the partition, until
// one has it. The log takes nothing before opens.
func (v *virtual) takeOver(replicas placement.Replicas, left []string, heard time.Duration, last owner.Beat, opens time.Duration) {
	standbys := make([]*standby, len(left))
	for i, id := range left {
		n := &standby{id: id, view: owner.NewView(int64(heard)), look: max(0, heard) + between(v.rng, 0, lookEvery)}
		n.view.Saw(last)
		n.rank = n.view.Rank(replicas, id, 0, 1)
		standbys[i] = n
	}
	for {
		n := slices.MinFunc(standbys, func(a, b *standby) int { return int(a.look - b.look) })
		switch now := n.look; {
		case now > givenUp:
			v.never++
			return
		case !n.view.Due(int64(now), lease, n.rank):
			n.look += lookEvery
		case now < opens:
			v.claims[n.id]++
			n.look += appendTimeout
		default: // a claim, and the first beat behind it
			v.claims[n.id]++
			v.took = append(v.took, now+v.latency()+v.latency())
			return
		}
	}
}

// add adds a row, and a fault for partitions that got no owner.
func (v *virtual) add(t *goal.Grid, s *simulation, what, log string) {
	if v.never > 0 {
		s.fault("%s, %s: %d partitions are never served again", what, log, v.never)
	}
	slices.Sort(v.took)
	at := func(share float64) any {
		if len(v.took) == 0 {
			return nil
		}
		return v.took[int(share*float64(len(v.took)-1))].Seconds()
	}
	most := 0
	for _, n := range v.claims {
		most = max(most, n)
	}
	t.Add(what, log, len(v.took)+v.missing, v.missing, at(0.5), at(0.99), at(1), most)
}
