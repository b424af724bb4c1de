package placement

import (
	"slices"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/engine/cluster/placement"
)

// What the times rest on.
const (
	claimFastest  = 1800 * time.Microsecond // of a claim, from when it is sent to its answer
	claimSlowest  = 20 * time.Millisecond
	followDelay   = 5 * time.Millisecond   // from the answer to a block to when standbys have read it
	appendTimeout = 500 * time.Millisecond // after which an append has failed
	claimsAtOnce  = 32                     // of a node
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
func (s *simulation) failover() error {
	cfg := placement.DefaultTiming()
	if err := cfg.Check(); err != nil {
		return err
	}
	t := s.table("How long partitions are not served", "change", "log", "not served at first", "without a majority", "p50 s", "p99 s", "last s", "most claims on a node")
	for _, c := range s.scenes() {
		if len(c.nodes) >= len(s.nodes) {
			continue
		}
		live := map[string]bool{}
		for _, n := range c.nodes {
			live[n.ID] = true
		}
		for _, e := range elections {
			v, missing := newVirtual(s.rng, cfg), 0
			for _, replicas := range s.placed {
				left := slices.DeleteFunc(slices.Clone(replicas), func(id string) bool { return !live[id] })
				switch {
				case len(left) <= len(replicas)/2:
					missing++
				case !live[replicas[0]]:
					v.ownerDies(replicas, left, e.from+between(s.rng, 0, e.to-e.from))
				}
			}
			v.run()
			v.add(t, s, c.what, e.what, missing)
		}
	}
	v := newVirtual(s.rng, cfg)
	for _, replicas := range s.placed {
		if replicas[0] == s.nodes[0].ID {
			v.ownerStepsDown(replicas)
		}
	}
	v.run()
	v.add(t, s, "a node is drained", elections[0].what, 0)
	return nil
}

// add adds a row, and a fault for each partition that got no owner.
func (v *virtual) add(t *goal.Grid, s *simulation, what, log string, missing int) {
	var took []time.Duration
	most := 0
	for _, c := range v.cells {
		if took = append(took, c.served-origin); c.served == 0 {
			s.fault("%s, %s: a partition is never served again", what, log)
		}
		for i := range c.own {
			if o := &c.own[i]; c.served > 0 && (o.State() == placement.Owner) != (c.names[i] == c.owner) || c.served > 0 && c.names[i] != c.owner && o.Hint() != c.owner {
				s.fault("%s, %s: %s is owned, and %s does not know", what, log, c.owner, c.names[i])
			}
		}
	}
	for _, n := range v.nodes {
		most = max(most, n.claims)
	}
	slices.Sort(took)
	at := func(share float64) any {
		if len(took) == 0 {
			return nil
		}
		return took[int(share*float64(len(took)-1))].Seconds()
	}
	t.Add(what, log, len(took)+missing, missing, at(0.5), at(0.99), at(1), most)
}
