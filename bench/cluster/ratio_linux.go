package main

import (
	"fmt"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

const (
	ours      = "trunkline"
	theirs    = "etcd"
	recording = "RecordUsage"
	putting   = "put 300 bytes"
	// steadyLease and steadyElection are long enough for a machine that is busy with a load.
	steadyLease    = 5 * time.Second
	steadyElection = 5 * time.Second
)

// sizes are the loads of the comparison: connections, and requests in flight on each. etcd's client
// has as many in flight in all.
var sizes = []struct {
	conns, depth int
	must         float64
}{{64, 1, 2}, {64, 16, 10}}

// measured is what a load showed: rate and latencies, and CPU time and memory of all servers.
func measured(r *part.Run, servers []*load.Server, l load.Running) (goal.Sample, error) {
	pids := make([]int, len(servers))
	for i, s := range servers {
		pids[i] = s.PID()
	}
	return load.MeasureRunning(l, pids, r.Warmup, r.Window)
}

// ratio measures acknowledged changes beside those of etcd.
func ratio(r *part.Run) error {
	c, err := startNodes(r, steadyLease, steadyElection)
	if err != nil {
		return err
	}
	owner := c.owner()
	if err := load.CreateRows(owner.server.Addr, 0, r.Rows); err != nil {
		return err
	}
	e, err := startEtcd(r)
	if err != nil {
		return err
	}
	defer e.close()
	var steps []goal.Step
	table := goal.Grid{Title: "acknowledged changes of three nodes, on a majority of disks", Head: []string{"cluster", "in flight", "acknowledged/s", "CPU µs of all nodes", "p50 ms", "p99 ms", "RSS MiB of all nodes"}}
	for _, at := range sizes {
		tapes := load.RowTapes(recording, 0, r.Rows, at.conns)
		cfg := r.Config(owner.server.Addr, load.Kernel, tapes, at.depth)
		steps = append(steps, goal.One(goal.Cell{Server: ours, Method: recording, Conns: at.conns, Depth: at.depth}, func() (goal.Sample, error) {
			s, err := load.Start(cfg)
			if err != nil {
				return goal.Sample{}, err
			}
			return measured(r, c.servers(), s)
		}), goal.One(e.cell(at.conns*at.depth), func() (goal.Sample, error) {
			return measured(r, e.servers, e.put(at.conns*at.depth, r.Rows))
		}))
	}
	if err := r.Rounds(steps); err != nil {
		return err
	}
	for _, at := range sizes {
		us, them := goal.Cell{Server: ours, Method: recording, Conns: at.conns, Depth: at.depth}, e.cell(at.conns*at.depth)
		g := goal.Goal{What: fmt.Sprintf("acknowledged changes/s of three nodes / puts of etcd, %d in flight", at.conns*at.depth), Must: at.must, AtLeast: true}
		g.AddCPU("requests/s", r.Report.Ratio(us, them, goal.Rate), r.Report.Ratio(them, us, goal.CPU))
		r.Report.Goal(g)
		for _, cell := range []goal.Cell{us, them} {
			of := func(pick func(goal.Sample) float64) float64 { return r.Report.Median(cell, pick) }
			table.Add(cell.Server, at.conns*at.depth, of(goal.Rate), of(goal.CPU)/1e3, of(func(s goal.Sample) float64 { return s.P50 / 1e3 }),
				of(func(s goal.Sample) float64 { return s.P99 / 1e3 }), of(func(s goal.Sample) float64 { return goal.MiB(s.RSS) }))
		}
	}
	r.Report.Table(table)
	return nil
}
