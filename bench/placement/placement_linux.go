package placement

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/part"
	"trunkline/engine/cluster/placement"
)

const (
	perNode  = 100 // partitions
	zones    = 3
	replicas = 3      // of a partition
	keys     = 10_000 // per node
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
	placed  placement.Assignment
	rng     *rand.Rand
	tables  []goal.Grid
	faults  []string
	longest time.Duration // a plan took, by a real clock
}

// simulate finds everything about a cluster with that many partitions.
func simulate(partitions int) (*simulation, error) {
	if partitions < 1 {
		return nil, fmt.Errorf("cannot place %d partitions", partitions)
	}
	s := &simulation{nodes: nodes(max(zones, partitions/perNode)), rng: newRandom()}
	var err error
	if s.placed, err = s.plan(make(placement.Assignment, partitions), s.nodes); err != nil {
		return nil, err
	}
	if err := errors.Join(s.spread(), s.changes()); err != nil {
		return nil, err
	}
	s.failover()
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
func (s *simulation) plan(current placement.Assignment, nodes []placement.Node) (placement.Assignment, error) {
	start := time.Now()
	next, err := placement.Plan(current, nodes, replicas)
	s.longest = max(s.longest, time.Since(start))
	return next, err
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

// evenness returns the least, the mean and the most that a node has.
func (l load) evenness(nodes []placement.Node) (least, mean, most float64) {
	total := 0
	least = math.Inf(1)
	for _, n := range nodes {
		has := l[n.ID]
		total += has
		least, most = min(least, float64(has)), max(most, float64(has))
	}
	return least, float64(total) / float64(len(nodes)), most
}
