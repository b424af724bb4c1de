package placement

import (
	"time"

	"trunkline/engine/cluster/placement"
)

// A copy of a partition: of a billion rows on a hundred thousand partitions, with the sizes and
// rates of bench/data/restart.json.
const (
	rowsPerPartition = 10_000
	snapshotBytes    = 193       // per row: what a snapshot of a million processes adds to the store
	loadRate         = 3_400_000 // rows/s that a start reads of a snapshot
	bandwidth        = 125e6     // bytes/s of a node: 1 Gbit/s
	copiesAtOnce     = 10        // of a node, which share its bandwidth
)

// rebuild shows how long partitions lack copies, with bounds on the copies of a node.
func (s *simulation) rebuild() error {
	o := placement.DefaultOptions()
	o.MaxCopiesPerNode, o.MaxMoves = copiesAtOnce, copiesAtOnce*len(s.nodes)
	t := s.table("How long copies are missing or moving", "change", "copies built", "GB", "plans", "until all are there s")
	takes := time.Duration(float64(time.Second)*float64(copiesAtOnce*rowsPerPartition*snapshotBytes)/bandwidth) +
		copiesAtOnce*rowsPerPartition*time.Second/loadRate + claimSlowest + followDelay
	for _, c := range s.scenes() {
		placed, copies, plans, took := s.placed, 0, 0, time.Duration(0)
		for {
			moves, err := s.plan(placed, c.nodes, o)
			if err != nil {
				return err
			}
			if len(moves) == 0 {
				break
			}
			if plans++; plans > 1000 {
				s.fault("%s: bounded plans do not come to an end", c.what)
				break
			}
			step := 2*claimSlowest + followDelay // of a switch: a release, and a claim behind it
			for _, m := range moves {
				if builds(placed, m) {
					copies++
					step = takes
				}
			}
			took += step
			placed = placement.Apply(placed, moves)
		}
		t.Add(c.what, copies, float64(copies)*rowsPerPartition*snapshotBytes/1e9, plans, took.Seconds())
	}
	return nil
}
