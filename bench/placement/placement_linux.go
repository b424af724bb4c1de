package placement

import (
	"fmt"
	"math/rand/v2"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/part"
	"trunkline/engine/cluster/placement"
)

const (
	perNode = 100 // partitions
	zones   = 3
	keys    = 10_000 // per node
)

// Part simulates.
func Part() part.Part {
	return part.Part{
		Name: "placement", What: "a cluster of a thousand nodes, simulated: does load spread, how much moves, how long is what not served?", Serverless: true,
		Defaults: func(o *part.Options) { o.Rows, o.JSON = 1000*perNode, "" },
		Quick:    func(o *part.Options) { o.Rows = 60 * perNode },
		Run: func(r *part.Run) error {
			r.Report.Checked = true
			s, err := simulate(r.Rows)
			if err != nil {
				return err
			}
			for _, t := range s.tables {
				r.Report.Table(t)
			}
			for _, f := range s.faults {
				r.Report.Fault("%s", f)
			}
			r.Report.Note("The longest plan took %v.", s.longest.Round(time.Millisecond))
			return nil
		},
	}
}

// simulation is a cluster and what was found of it.
type simulation struct {
	nodes   []placement.Node
	opts    placement.Options // of plans without bounds on moves
	placed  placement.Assignment
	rng     *rand.Rand
	tables  []goal.Grid
	faults  []string
	longest time.Duration // a plan took, by a real clock
}

// simulate finds everything about a cluster with that many partitions.
func simulate(partitions int) (*simulation, error) {
	s := &simulation{nodes: nodes(max(zones, partitions/perNode)), opts: placement.DefaultOptions(), rng: newRandom()}
	s.opts.MaxMoves, s.opts.MaxCopiesPerNode = 0, 0
	var err error
	if s.placed, err = placement.Place(partitions, s.nodes, s.opts); err != nil {
		return nil, err
	}
	for _, f := range []func() error{s.spread, s.changes, s.failover, s.rebuild} {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// newRandom returns the same numbers in every run.
func newRandom() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func nodes(n int) (list []placement.Node) {
	for i := range n {
		list = append(list, placement.Node{ID: fmt.Sprintf("node-%04d", i), Zone: fmt.Sprintf("zone-%d", i%zones)})
	}
	return list
}

func (s *simulation) table(title string, head ...string) *goal.Grid {
	s.tables = append(s.tables, goal.Grid{Title: title, Head: head})
	return &s.tables[len(s.tables)-1]
}

func (s *simulation) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// plan plans once, with the time it takes.
func (s *simulation) plan(current placement.Assignment, nodes []placement.Node, o placement.Options) ([]placement.Move, error) {
	start := time.Now()
	moves, err := placement.Plan(current, nil, nodes, o)
	s.longest = max(s.longest, time.Since(start))
	return moves, err
}

// load is what each of some nodes has.
type load map[string]int

// loads counts owners and copies.
func loads(placed placement.Assignment) (owners, copies load) {
	owners, copies = load{}, load{}
	for _, replicas := range placed {
		owners[replicas[0]]++
		for _, id := range replicas {
			copies[id]++
		}
	}
	return owners, copies
}

// evenness returns the least, the mean and the most that a node has of its share: with weights, of
// what it would have if all weighed the same.
func (l load) evenness(nodes []placement.Node) (least, mean, most float64) {
	total, weight := 0, 0
	for _, n := range nodes {
		total += l[n.ID]
		weight += max(1, n.Weight)
	}
	mean = float64(total) / float64(len(nodes))
	for i, n := range nodes {
		has := float64(l[n.ID]) * float64(weight) / float64(max(1, n.Weight)*len(nodes))
		if i == 0 {
			least = has
		}
		least, most = min(least, has), max(most, has)
	}
	return least, mean, most
}
